"""The time for 1 MB of ordinary text, text full of numbers, and texts built to be slow."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from string import digits

from benchmarks.privacy.finders import Finder
from souvenir.privacy.policy import Action, PrivacyPolicy
from souvenir.privacy.rules import PrivacyRules

CHARACTERS = 1_000_000
SEED = 7

PROSE, LOG = "prose, no personal data", "a log: a date and numbers on every line"

STRICTEST = PrivacyPolicy(secrets=Action.REDACT, pii=Action.REDACT)
"""Of the policies that store a text; rejecting ends with the first round."""

_WORDS = """
    the of and to in a is that it was for on are with they be at one have this from or had by but some what there we
    out other were all your when up use how said each she which their time will way about many then them write would
    like so these her long make thing see him two has look more day could go come did sound no most people over know
    water than first been who its now find down may part meeting project garden library weather coffee bicycle memory
""".split()
_NUMBERS = ("2023-05-08", "10:30", "42", "1,250", "v2.1.0", "$19.99", "1984")
_ENDS = (". ", ". ", "? ", ".\n")

EMPTY_PIECES = ("1", "@", "a", "eyJ", "1 ", "12-", "a@", "AB12", "password ", "::", "-----BEGIN PRIVATE KEY-----")
"""Each is repeated to 1 MB, and nothing is found in it."""
SCREENED_CHARACTERS = 50_000
"""The longest text of one memory or message."""
SCREENED_PIECES = (
    "01100-555-123 4111]sk-",
    "####[x1ax1password: #####//.555//##1 ",
    "###4567@#####-###(##[+",
    "###2024-01-0100::00(###123#555##)###",
)
"""Found by a search for texts whose screening takes long: each redaction uncovers another finding. # is any digit."""
FULL_PIECES = ("1.2.3.4 ", "555-123-4567 ", "a@b.cc ", "https://u:p@h ")
"""The same, and every piece is a finding."""


def cpu_seconds(finder: Finder, text: str) -> float:
    """Of this thread, since a shared machine makes the time on the wall say little."""
    started = time.thread_time()
    finder.find(text)
    return time.thread_time() - started


def screening_seconds(rules: PrivacyRules, piece: str) -> float:
    """CPU seconds of screening the longest text under the strictest policy."""
    text = _with_digits(piece)
    started = time.thread_time()
    rules.screen(text, STRICTEST)
    return time.thread_time() - started


def _with_digits(piece: str) -> str:
    random = Random(SEED)
    text = (piece * (SCREENED_CHARACTERS // len(piece) + 1))[:SCREENED_CHARACTERS]
    return "".join(random.choice(digits) if character == "#" else character for character in text)


def repeated(piece: str) -> str:
    return (piece * (CHARACTERS // len(piece) + 1))[:CHARACTERS]


def prose() -> str:
    """Sentences of ordinary words; one in eight holds a date, a time, a number, a version or a price."""
    return _cut(_sentences(Random(SEED)))


def log() -> str:
    return _cut(_log_lines(Random(SEED)))


def _cut(parts: Iterator[str]) -> str:
    text: list[str] = []
    length = 0
    while length < CHARACTERS:
        text.append(next(parts))
        length += len(text[-1])
    return "".join(text)[:CHARACTERS]


def _sentences(random: Random) -> Iterator[str]:
    while True:
        words = random.choices(_WORDS, k=random.randrange(6, 18))
        if random.random() < 1 / 8:
            words.insert(random.randrange(len(words)), random.choice(_NUMBERS))
        yield " ".join(words).capitalize() + random.choice(_ENDS)


def _log_lines(random: Random) -> Iterator[str]:
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    while True:
        moment += timedelta(seconds=random.random() * 20)
        yield (
            f"{moment:%Y-%m-%d %H:%M:%S} INFO worker-{random.randrange(9)} request {random.randrange(10**6)} took "
            f"{random.random() * 90:.3f} ms, {random.randrange(10**5)} bytes, status {random.choice([200, 404, 500])}\n"
        )
