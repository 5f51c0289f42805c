"""Sentences that can be understood alone: a pronoun that begins one is replaced by the subject of the sentence before.

Only plain cases of English are resolved: the sentence before begins with its subject, and nothing else in it could be
meant. Any other sentence that begins with a pronoun is given the one before it as context. Deterministic and linear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from enum import Enum

MAX_TOGETHER_CHARS = 500
"""Maximum length of a sentence with those before it; a longer one stays alone."""


class _Referent(Enum):
    WOMAN = "woman"
    MAN = "man"
    THING = "thing"
    SEVERAL = "several"


_PRONOUNS = {
    **dict.fromkeys(("she", "her"), _Referent.WOMAN),
    **dict.fromkeys(("he", "his"), _Referent.MAN),
    **dict.fromkeys(("it", "its"), _Referent.THING),
    **dict.fromkeys(("they", "their"), _Referent.SEVERAL),
}
_POSSESSIVES = frozenset(("her", "his", "its", "their"))
_CONTRACTED = {None: "", "s": " is", "re": " are", "ve": " have", "ll": " will", "d": "'d"}
_LEAD = r"(?:(?:and|but|so|then|now|also),? )?"
_OPENING = re.compile(
    rf"(?P<lead>{_LEAD})(?P<pronoun>she|her|he|his|it|its|they|their)\b"
    r"(?:['’](?P<contracted>s|re|ve|ll|d)\b)?",
    re.IGNORECASE,
)
_HAS = re.compile(r" (?:(?:just|already|always|never|not|also) )?(?:been|had|got|gone|become|done|made|\w+ed)\b")
"""After "she's" that means "she has"."""
_IMPERSONAL = re.compile(
    r"it(?:['’]s| is| was| has been| seems| appears| turns out| turned out)(?: \S+){0,3} that\b", re.IGNORECASE
)
"""Matches "it" that stands for nothing: "it turned out that"."""
_VAGUE = re.compile(
    rf"{_LEAD}it(?:(?:['’]s| is| was| will be| would be| has been)(?: \S+){{0,3}} (?:to|who|when|if|how)\b"
    r"|(?:['’]s| is| was) (?:raining|snowing|time|late|early|hot|cold|sunny)\b"
    r"| (?:turn|look|seem|appear|depend|matter|rain|snow|take|took|mean|feel|felt|sound)(?:s|ed)?\b)",
    re.IGNORECASE,
)
"""Matches "it" that may stand for nothing, or for what the sentence before says as a whole."""

_WOMEN = frozenset(
    "mother mom mum sister daughter wife girlfriend fiancée aunt grandmother grandma niece woman girl lady".split()
)
_MEN = frozenset("father dad brother son husband boyfriend fiancé uncle grandfather grandpa nephew man boy guy".split())
_PERSONS = (
    _WOMEN
    | _MEN
    | frozenset(
        "partner spouse fiance fiancee cousin friend flatmate roommate neighbour neighbor colleague coworker boss "
        "manager teammate lead doctor dentist therapist nurse vet teacher tutor coach landlord landlady lawyer "
        "accountant engineer developer designer director owner customer client patient student assistant user baby "
        "child kid someone somebody person".split()
    )
)
_ANIMALS = frozenset("dog cat pet puppy kitten horse rabbit parrot hamster".split())
_NO_NAMES = frozenset(
    "A An The I We You He She It They My Our Your His Her Its Their This That These Those There Here Who What Which "
    "When Where Why How If As At By For From In On Of To With After Before While Since And But Or So Then Now Also Yes "
    "No Not All Any Both Each Every Some Many Most One Everyone Everybody Nobody Someone Somebody Everything Nothing "
    "Something Today Tomorrow Yesterday Please Maybe Ok Okay".split()
)
_TIMES = frozenset(
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August "
    "September October November December Christmas Easter".split()
)
_NOMINAL = re.compile(r"(?:ment|tion|sion|ing|ness|ity|ance|ence)s?$")
"""Endings of capitalised nouns that begin a sentence and are no names of persons."""
_PREDICATE = re.compile(
    r" (?:also |always |never |usually |often |still |now |just |really )?(?:is|was|isn|wasn|has|had|will|would|can"
    r"|could|does|doesn|did|didn|works?|worked|lives?|lived|moved|likes?|liked|loves?|loved|hates?|hated|prefers?|preferred"
    r"|wants?|wanted|needs?|needed|leads?|led|runs?|ran|manages?|managed|owns?|owned|stud(?:y|ies|ied)|teach(?:es)?"
    r"|taught|speaks?|spoke|plays?|played|joined|left|started|stopped|retired|married|bought|sold|got|goes|went|said"
    r"|told|thinks?|thought|uses?|used|drives?|drove|plans?|planned|turns?|turned|looks?|looked|takes?|took)\b"
)
"""The verb after a name, without which the name may be a verb itself: "Likes cats"."""

_PLACE = re.compile(r"\b(?:in|at|from|near|to|on) ([A-ZÀ-Þ]\w+)")
_PLACING = frozenset(("in", "at", "from", "near", "on", "the", "since", "until", "every"))
_MOVING = frozenset("move moved moves went goes travels travelled traveled flew flies returned relocated".split())
_JOINING = frozenset("and or of in on at from for with who whose which that to by as than vs".split())
"""Words after a noun that continue its phrase."""

_DETERMINED = r"(?:The|A|An|My|Our|Your|His|Her|Their|This|That|These|Those|[A-ZÀ-Þ]\w*['’]s)"
_PERSON = re.compile(
    rf"{_DETERMINED} (?:[\w'’-]+ ){{0,3}}?(?P<noun>{'|'.join(sorted(_PERSONS | _ANIMALS))})(?: [A-ZÀ-Þ][\w-]+){{0,2}}"
    r"(?= [a-z])"
)
_NOT_IDENTITY = r"(?!,| (?:not )?(?:the|that|to|because|how|what|why|when|where)\b)"
"""After "is": "the problem is the cache" speaks of the cache next."""
_IS = re.compile(
    r" (?:(?:is|was|isn['’]t|wasn['’]t|will be|has been)\b"
    rf"{_NOT_IDENTITY}|(?:runs|works|lives|starts|opens|closes|ends|costs|weighs|belongs|lies|stands|happens|expires"
    r"|comes|goes|started|ended|opened|closed|expired|arrived|broke)\b)"
)
_ARE = re.compile(
    rf" (?:(?:are|were|aren['’]t|weren['’]t|will be|have been)\b{_NOT_IDENTITY}"
    r"|(?:run|work|live|start|open|close|end|cost|weigh|belong|lie|stand|happen|expire|come|go|started|ended|opened"
    r"|closed|expired|arrived|broke|lived|worked|met|moved)\b)"
)
_PHRASE = re.compile(rf"{_DETERMINED} |(?=\S*(?:[a-z][A-Z]|[A-Z]{{2}}|[0-9]|\w[./-]\w))\S+(?: [0-9.]+)?\Z")
"""The beginning of a noun phrase, or the name of a thing: one with capitals, digits or marks inside."""

_PHRASE_WORD = re.compile(r"[\w'’./-]+")
MAX_PHRASE_WORDS = 7
_COMPETITOR = re.compile(
    r"\b(?:the|my|our|your|his|her|its|their|this|that|these|those)\b"
    r"|\b(?:in|on|at|of|for|with|by|from|near|under|behind|into|than) an?\b"
    r"|\b(?:but|so|because|while|which|who|if|when|i|we|you)\b",
    re.IGNORECASE,
)
"""Matches what "it" or "they" could stand for instead."""
_NAMES = re.compile(r"[A-ZÀ-Þ][\w'’-]*(?:, [A-ZÀ-Þ][\w'’-]*)* and [A-ZÀ-Þ][\w'’-]*")
_CLAUSE = frozenset("that which who whose whom when where while if because and or but i we you he she it they".split())
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_NAME_WORD = re.compile(r"(?:Dr|Mr|Mrs|Ms|Prof)\.|[^\W_]+(?:-[^\W_]+)*|[A-Z]['’][^\W_]+")


def standalone(sentences: Sequence[str]) -> list[str]:
    """Return the sentences in order, each with a subject for its pronoun, or else with the one before in front of it.

    :param sentences: Consecutive, each with the white space that follows it.
    """
    found: list[str] = []
    before, places = "", set[str]()
    for sentence in sentences:
        opening = None if _IMPERSONAL.match(sentence) else _OPENING.match(sentence)
        subject = _subject(before, sentence, opening, places) if opening else None
        if opening and subject:
            sentence = _named(sentence, opening, subject)
        together = opening and not subject and found and len(found[-1]) + len(sentence) <= MAX_TOGETHER_CHARS
        found.append(found[-1] + sentence if together else sentence)
        before = sentence
        places.update(_PLACE.findall(sentence))
    return found


def _named(sentence: str, opening: re.Match[str], subject: str) -> str:
    first, blank, rest = subject.partition(" ")
    if opening["lead"] and first in _NO_NAMES:
        subject = first.lower() + blank + rest
    if opening["pronoun"].lower() in _POSSESSIVES:
        subject += "'" if subject.endswith("s") else "'s"
    rest = sentence[opening.end() :]
    contracted = opening["contracted"]
    verb = " has" if contracted == "s" and _HAS.match(rest) else _CONTRACTED.get(contracted, "")
    return f"{opening['lead']}{subject}{verb}{rest}"


def _subject(before: str, sentence: str, opening: re.Match[str], places: Set[str]) -> str | None:
    """Return what the pronoun that opens the sentence stands for, if the sentence before leaves no doubt."""
    referent = _PRONOUNS[opening["pronoun"].lower()]
    if before.rstrip().endswith(("?", "？", ":")):
        return None
    match referent:
        case _Referent.WOMAN | _Referent.MAN:
            return _person(before, _MEN if referent is _Referent.WOMAN else _WOMEN, places)
        case _Referent.SEVERAL:
            return _several(before)
        case _Referent.THING:
            return None if _VAGUE.match(sentence) else _thing(before)


def _person(before: str, others: frozenset[str], places: Set[str]) -> str | None:
    """:param others: Nouns for persons of the other gender. :param places: Names of places so far."""
    described = _PERSON.match(before)
    subject = described[0] if described else _name(before)
    if subject is None or subject in places or (described and described["noun"] in others):
        return None
    rest = before[len(subject) :]
    return None if rest.split(maxsplit=1)[0] in _JOINING or _mentions_person(rest) else subject


def _name(before: str) -> str | None:
    """Return the name of up to three words that begins a sentence and is followed by a verb."""
    words = before.split(maxsplit=4)
    count = next((at for at, word in enumerate(words) if not word.istitle() or word in _NO_NAMES), 0)
    name = " ".join(words[:count])
    is_name = 1 <= count <= 3 and before.startswith(name) and all(map(_NAME_WORD.fullmatch, words[:count]))
    return name if is_name and not _NOMINAL.search(name) and _PREDICATE.match(before, len(name)) else None


def _mentions_person(rest: str) -> bool:
    """Return True if a person might be mentioned after the subject."""
    words = _WORD.findall(rest)
    described = words[0] in ("is", "was", "isn't", "wasn't") if words else False
    for at, word in enumerate(words):
        before = words[at - 1] if at else ""
        placed = before in _PLACING or (before == "to" and at > 1 and words[at - 2] in _MOVING)
        if word.istitle() and len(word) > 1 and word not in _TIMES and not placed:
            return True
        if word.lower() in _PERSONS and not described:
            return True
    return False


def _thing(before: str) -> str | None:
    phrase = _phrase(before, _IS)
    return None if phrase is None or not _PERSONS.isdisjoint(phrase.lower().split()) else phrase


def _several(before: str) -> str | None:
    names = _NAMES.match(before)
    if names is None or before.split(maxsplit=1)[0] in _NO_NAMES:
        return _phrase(before, _ARE)
    rest = before[names.end() :]
    return None if _mentions_person(rest) or _COMPETITOR.search(rest) or not _ARE.match(rest) else names[0]


def _phrase(before: str, verb: re.Pattern[str]) -> str | None:
    """Return the noun phrase that begins a sentence, if one of these verbs follows it."""
    found = verb.search(before)
    phrase = before[: found.start()] if found else ""
    words = phrase.split()
    fits = len(words) <= MAX_PHRASE_WORDS and _PHRASE.match(phrase) and not _COMPETITOR.search(before, len(phrase))
    return phrase if fits and all(map(_is_of_phrase, words)) else None


def _is_of_phrase(word: str) -> bool:
    return word.lower() not in _CLAUSE and _PHRASE_WORD.fullmatch(word) is not None
