"""Any number of English sentences and questions about them, so that the real model and analyser have real work."""

from __future__ import annotations

import random
from collections.abc import Iterator

WHO = (
    "Alma Boris Chen Dalia Emeka Farah Goran Hana Ivo Jun Kofi Lena Mateo Nadia Omar Priya Quinn Rosa Sven Tala".split()
)
DID = (
    "bought repaired borrowed painted planned reviewed shipped cancelled recommended photographed measured described "
    "sold returned rebuilt tested ordered wrapped lost found"
).split()
WHAT = (
    "bicycle kayak bookshelf dashboard recipe invoice telescope greenhouse passport keyboard violin database tent "
    "contract staircase newsletter lantern spreadsheet camera curtain heater garden visa password roof piano report"
).split()
WHERE = (
    "Lisbon Oslo Nairobi Kyoto Bergen Quito Tallinn Porto Seville Cork Leipzig Utrecht Malmö Split Varna Ghent Turin"
).split()
WHY = (
    "because the old one had rusted through",
    "after the meeting with the auditors ran late",
    "so that the children could use it in summer",
    "although the budget for it was spent already",
    "since nobody had answered the second letter",
    "before the landlord came to look at the flat",
    "and wrote a long note about it that evening",
    "while the rest of the team was on holiday",
)
ASKED = (
    "What did {who} do with the {what} in {where}?",
    "Who {did} the {what} near {where}, and why?",
    "Why was the {what} in {where} {did} by {who}?",
    "Did {who} say anything about a {what} and {where}?",
)


def memories(seed: int) -> Iterator[str]:
    """Different sentences of some twenty words, without end."""
    dice = random.Random(seed)
    number = 0
    while True:
        number += 1
        yield (
            f"{dice.choice(WHO)} {dice.choice(DID)} the {dice.choice(WHAT)} in {dice.choice(WHERE)} on day {number} "
            f"{dice.choice(WHY)}; {dice.choice(WHO)} {dice.choice(DID)} it again later."
        )


def questions(seed: int) -> Iterator[str]:
    """Different questions of some ten words, without end; the number keeps the cache of query vectors out of it."""
    dice = random.Random(seed)
    number = 0
    while True:
        number += 1
        asked = dice.choice(ASKED).format(
            who=dice.choice(WHO), did=dice.choice(DID), what=dice.choice(WHAT), where=dice.choice(WHERE)
        )
        yield f"{asked} Case {seed}-{number}."
