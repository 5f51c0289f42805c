"""Extraction without a model: sentences that state something durable, taken verbatim.

They are recognised by their words, in English only, so recall is low. Deterministic: equal transcripts give equal
facts. Code, text removed by hygiene, and turns of tools and systems are skipped. Linear in the transcript.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from souvenir.core.ledger import Category, LedgerFact, TextSpan
from souvenir.core.text import sentences
from souvenir.learning.transcripts.hygiene import code_blocks
from souvenir.learning.transcripts.turns import Piece, Transcript, TranscriptTurn, TurnRole

MIN_CHARS, MAX_CHARS = 24, 280
MIN_WORDS = 4

MIN_PLAIN_CHARS, MIN_PLAIN_WORDS = 9, 2
"""The same for a sentence that begins with a plain statement of a person: "I'm vegan"."""

_TURN_ORDER = {TurnRole.USER: 0, TurnRole.UNKNOWN: 1, TurnRole.ASSISTANT: 2}
"""Priority of roles if not all sentences may be taken; other roles have none."""


class _Pattern(NamedTuple):
    """`strength` orders sentences within a role: 0 is explicitly durable, 2 may be small talk."""

    category: Category
    strength: int
    words: re.Pattern[str]


def _pattern(category: Category, strength: int, *words: str) -> _Pattern:
    return _Pattern(category, strength, re.compile(rf"\b(?:{'|'.join(words)})", re.IGNORECASE))


_PEOPLE = (
    "wife|husband|partner|girlfriend|boyfriend|spouse|fianc[eé]e?|mother|father|mom|mum|dad|sister|brother|son|daughter"
    "|kids?|children|dog|cat|pet|boss|manager|team|company|birthday|email|phone|address|job|hometown|nickname"
)
_RELATIVES = (
    "wife|husband|partner|girlfriend|boyfriend|spouse|fianc[eé]e?|mother|father|mom|mum|dad|parents|sisters?|brothers?"
    "|twin|siblings|sons?|daughters?|kids?|children|baby|aunt|uncle|cousin|niece|nephew|grand(?:mother|father|ma|pa|son"
    "|daughter|parents)|in-laws|best friend|roommate|flatmate|neighbou?r|colleague|doctor|dentist|therapist|lawyer"
    "|landlord|landlady|boss|manager|dog|cat|pet|puppy|kitten"
)
_BELONGINGS = (
    "(?:first |last |middle |full |user|nick|sur)?name|birthday|age|height|weight|(?:shoe )?size|blood type|pronouns"
    "|e-?mail(?: address)?|phone(?: number)?|address|job(?: title)?|salary|company|team|employer|hometown|nationality"
    "|native language|mother tongue|time ?zone|diet|religion|car|bike|flat|apartment|house|laptop|school|university"
    "|allerg(?:y|ies)|hobb(?:y|ies)|favou?rite (?:[a-z]+ )?[a-z]+"
)
_ILLNESSES = (
    "allerg(?:y|ies)|intolerance|diabetes|asthma|c(?:o)?eliac(?: disease)?|migraines?|epilepsy|adhd|autism|arthritis"
    "|anxiety|depression|eczema|insomnia|tinnitus|high blood pressure"
)
_PROFESSIONS = (
    "nurse|teacher|student|doctor|engineer|developer|designer|lawyer|architect|chef|pilot|writer|musician|artist"
    "|accountant|consultant|scientist|researcher|journalist|translator"
)
_STATES = (
    "allergic|intolerant|vegan|vegetarian|pescatarian|diabetic|c(?:o)?eliac|asthmatic|pregnant|married|divorced|widowed"
    "|single|engaged|retired|unemployed|self-employed|freelance|left-handed|right-handed|colou?r[- ]?blind|dyslexic"
    "|autistic|deaf|blind|bilingual|jewish|muslim|christian|catholic|buddhist|hindu|scared of|afraid of"
)
_SITUATIONS = (
    "from|based in|called|living in|working (?:as|at|for|in)|studying|learning (?-i:[A-Z])[a-z]+|training for"
    "|[0-9]{1,3}(?: years old)?(?=[.,!]|$| and)|born (?:in|on)"
)
_VAGUE = r"\b(?! ?(?:it|its|this|that|these|those|them|him|her|you|your|what|how|when|about)\b)"
"""A plain statement names what it is about."""
_PLAIN = _Pattern(
    Category.DETAIL,
    1,
    re.compile(
        r"(?:(?:and|but|also|so|well|oh|yes|no|fyi|btw|by the way|just so you know|unfortunately|actually)[,:]? )?"
        r"(?:"
        rf"(?:i|we)(?:['’]m|['’]re| am| are) (?:not )?(?:[a-z]+ly )?(?:[a-z]+ )?(?:{_STATES}){_VAGUE}"
        rf"|(?:i|we)(?:['’]m|['’]re| am| are) (?:also |originally |currently )?(?:{_SITUATIONS}){_VAGUE}"
        rf"|(?:i['’]m|i am) (?:an? (?:{_PROFESSIONS})|the [a-z]+ (?:of|at){_VAGUE})"
        r"|(?:i|we) (?:really )?(?:can['’]?t|cannot|can not|don['’]?t|do not|never|won['’]?t)"
        rf" (?:eat|drink|tolerate|stand|digest|smoke|drive|swim|own|speak){_VAGUE}"
        rf"|(?:i|we)(?: have|['’]ve got|['’]ve| suffer from| got) (?:an? |the )?(?:[a-z-]+ )?(?:{_ILLNESSES})\b"
        rf"|(?:i|we)(?: have|['’]ve got| got) (?:an?|one|two|three|four|five|[0-9]+) (?:[a-z-]+ )?"
        rf"(?:{_RELATIVES}|cats|dogs)\b"
        rf"|i (?:was|got|have been) (?:recently )?(?:diagnosed with|born (?:in|on)|raised in){_VAGUE}"
        rf"|(?:i|we) (?:live|work|study|grew up|studied|graduated|teach) (?:as|at|for|in|from|with|near|on){_VAGUE}"
        rf"|i (?:speak|hate|dislike|detest) {_VAGUE}(?!(?:to|up|for|with)\b)"
        r"|i (?:play|drive|teach|take|use|wear) (?:[a-z]+ ){1,4}(?:every|each|daily|twice|once) "
        r"|i play (?:the )?(?:piano|guitar|violin|cello|drums|bass|flute|saxophone|trumpet|chess|tennis|football|soccer"
        r"|basketball|volleyball|golf|hockey|rugby|cricket|badminton)\b"
        r"|i (?:quit|stopped|gave up) (?:smoking|drinking|eating)\b"
        r"|(?:i|we) (?:[a-z]+ ){1,5}every (?:day|morning|evening|night|week|weekend|month|year|[a-z]+day)\b"
        rf"|(?:my|our) (?:[a-z]+ ){{0,2}}(?:{_RELATIVES}|{_BELONGINGS})(?-i: [A-Z][a-z]+)?"
        r"(?:['’]s [a-z]+\b| (?:is|are|was|has|have|lives?|works?|studies|goes|turned|turns|plays?|speaks?|died"
        r"|passed away|moved)\b)"
        r")",
        re.IGNORECASE,
    ),
)
"""Statements of people about themselves and those close to them; matched at the beginning of a sentence."""

_PATTERNS = (
    _pattern(Category.DETAIL, 0, r"remember (?:that|to|this|my|our|i|we|the)\b", r"(?:please|always) remember\b"),
    _pattern(
        Category.DECISION,
        0,
        r"decid(?:e|ed|es|ing)\b",
        r"decisions?\b",
        r"agreed (?:to|on|that)\b",
        r"(?:going|went|go) with\b",
        r"settled on\b",
        r"polic(?:y|ies)\b",
        r"standard(?:s|ise|ize|ised|ized)?\b",
        r"(?:commit(?:ted|ting)? to|promised)\b",
    ),
    _pattern(
        Category.DETAIL,
        0,
        r"(?:strongly )?prefer(?:s|red|ence|ences)?\b",
        r"(?:i|we|he|she|they)(?:'d|’d| would) rather\b",
    ),
    _pattern(
        Category.DETAIL,
        1,
        r"my name is\b",
        r"(?:please )?call me\b",
        r"(?:i|we) (?:live|lived|work|worked|study|studied|own|grew up|moved|was born|were born|speak)\b",
        r"(?:i['’]m|i am) (?:allergic|vegan|vegetarian|married|divorced|single|called|from|based|living|working|an? )"
        r"(?! ?bit| ?little| ?lot)",
        r"(?:i|we) have (?:an?|one|two|three|four|five|\d+) ",
        rf"(?:my|our) (?:[a-z]+ )?(?:{_PEOPLE})(?:'s|’s)?\b",
        r"(?:my|our) favou?rite\b",
        r"(?:i|we) (?:always|never|usually|only)\b",
    ),
    _pattern(
        Category.LEARNING,
        1,
        r"(?:turns|turned) out\b",
        r"(?:i|we|they)(?:'ve|’ve| have)? (?:learned|learnt|found out|realised|realized|discovered)\b",
        r"confirmed\b",
        r"root cause\b",
        r"the (?:fix|reason|cause|problem) (?:is|was)\b",
    ),
    _pattern(
        Category.DECISION,
        2,
        r"(?:we|i) (?:should|will|must)\b",
        r"(?:we|i)(?:'ll|’ll)\b",
        r"let(?:'s|’s| us) (?!see\b|say\b|talk\b|hope\b|know\b|start\b|look\b|check\b)",
        r"(?:switch(?:ing|ed)?|mov(?:ing|ed)|adopt(?:ing|ed)?|updat(?:ing|ed)|re-?run(?:ning)?) "
        r"(?:\S+ ){0,4}?(?:to|from|the|all)\b",
        r"(?:always|never|please|only|not|we|they|to) use[sd]?\b",
    ),
    _Pattern(Category.DECISION, 2, re.compile(r"\s*use\s+\S", re.IGNORECASE)),
    _pattern(
        Category.DETAIL,
        2,
        r"(?:i|we) (?:really )?(?:love|like|enjoy|hate|dislike|can't stand|can’t stand|need|want)\b",
        r"(?:deadline|due)\b",
    ),
)
_QUESTION = re.compile(
    r"(?:who|what|when|where|why|which|how|whose|do|does|did|is|are|was|were|can|could|should|would|will|have|has)"
    r"(?:n't|n’t)? (?:i|you|we|they|he|she|it|the|this|that|your|my|there)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:if i|if we|if you|what if|suppose|imagine|hypothetically|for example|maybe|might|perhaps)\b", re.IGNORECASE
)
"""Matches sentences that leave open whether something is true."""
_LEAD = re.compile(r"\s*(?:(?:[-*•>]|[0-9]{1,3}[.)]|#{1,6}|\[[ xX]?\])\s+)*")


def durable_facts(transcript: Transcript, *, max_facts: int) -> list[LedgerFact]:
    """Return at most `max_facts` sentences that state something durable, in the order of the transcript.

    Priority: users, then unknown speakers, then assistants; within a role, the most explicit wording first.
    """
    found: list[tuple[int, int, int, LedgerFact]] = []
    texts: set[str] = set()
    for turn in transcript.turns:
        if turn.role not in _TURN_ORDER:
            continue
        for strength, fact in _facts(turn):
            key = " ".join(fact.text.casefold().split())
            if key not in texts:
                texts.add(key)
                found.append((_TURN_ORDER[turn.role], strength, len(found), fact))
    taken = sorted(found, key=lambda one: one[:3])[:max_facts]
    return [fact for *_, fact in sorted(taken, key=lambda one: one[2])]


def _facts(turn: TranscriptTurn) -> Iterator[tuple[int, LedgerFact]]:
    for piece in turn.pieces:
        for start, end in _sentences(piece):
            said = piece.text[start:end]
            if pattern := _durable(said):
                span = TextSpan(piece.offset(start), piece.offset(end))
                yield pattern.strength, LedgerFact(said, pattern.category, turn.origin, span, turn.speaker, turn.at)


def _sentences(piece: Piece) -> Iterator[tuple[int, int]]:
    """Return the spans of sentences outside of code, without list markers."""
    blocks = code_blocks(piece.text)
    at = 0
    for start, end in sentences(piece.text):
        while at < len(blocks) and blocks[at][1] <= start:
            at += 1
        if at < len(blocks) and blocks[at][0] < end:
            continue
        lead = _LEAD.match(piece.text, start, end)
        start = lead.end() if lead else start
        yield start, start + len(piece.text[start:end].rstrip())


def _durable(said: str) -> _Pattern | None:
    if said.endswith(("?", "？", ":")) or _QUESTION.match(said) or _OPEN.search(said) or len(said) > MAX_CHARS:
        return None
    words = len(said.split())
    if len(said) >= MIN_CHARS and words >= MIN_WORDS:
        found = next((pattern for pattern in _PATTERNS if pattern.words.search(said)), None)
        if found is not None:
            return found
    is_plain = len(said) >= MIN_PLAIN_CHARS and words >= MIN_PLAIN_WORDS and _PLAIN.words.match(said)
    return _PLAIN if is_plain else None
