"""Find the statements of a person that an insight may report: promises, changes and the like.

By rules on the words of a sentence, in English, with promises and appointments in German and Spanish too. A sentence
that is a question or a condition states nothing. Only messages of people are read, not those of the assistant. The
result is a function of the text and of the day on which it was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from functools import cache

import structlog

from souvenir.core.text import sentences
from souvenir.core.types import Mentioned, MessageRole
from souvenir.core.types.statements import Definition, Statement, StatementKind
from souvenir.index.analyser import Analyser
from souvenir.knowledge.recognition.definitions import definitions_in
from souvenir.knowledge.recognition.due_dates import NamedDay, named_days
from souvenir.knowledge.recognition.extraction import said

log = structlog.get_logger(__name__)

MAX_SENTENCE_CHARS = 300
"""Longer sentences state nothing."""

MAX_CHARS_READ = 8_000
"""Only the beginning of a longer text is read, which bounds the time."""

FEW_WORDS = 8
"""A change that is said in fewer words is shown with the sentence after it."""

MAX_TERMS = 48
"""Maximum number of compared terms."""


_VAGUE = re.compile(
    r"\b(?:it|them|they)\b|\b(?:her|him)\b(?= (?:i['’]?d|i['’]?ll|that|it|a|by)\b|$|[.,!])", re.IGNORECASE
)
"""Pronouns by which a promise refers to a preceding sentence."""


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(rf"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_I = r"\b(?:i|we)"
_ADVERBS = r"(?:\s+(?:also|still|just|really|now|finally|already|have|had|recently))*"
_COMMITMENT = _any(
    rf"{_I}(?:['’]?ll| will| shall)\b",
    r"\bill (?:send|do|write|call|bring|give|get|ring|finish|pay|be)\b",
    rf"{_I}{_ADVERBS}\s+(?:promised|agreed|committed|volunteered)\b|^(?:and |also )?promised\b",
    r"\b(?:told|said|promised)(?: [\w.,]+){0,5}? (?:that )?(?:i|we|he|she|they|it)(?:['’]?d|['’]?ll| will| would)\b",
    rf"{_I}(?:['’]ve| have)? got to\b|{_I}{_ADVERBS} (?:(?:have|need|ought) to|must)\b",
    rf"{_I}{_ADVERBS} owe\b|\bremind me\b",
    r"^(?:have|need|must) to\b|^(?:also |and )?(?:have|need) to\b",
    r"\b(?:ich|wir)\b.*\b(?:versprochen|muss|müssen|soll|werde|schicke|bringe|gebe|mache|liefere|sage)\b",
    r"\b(?:muss|versprochen|zugesagt)\b.*\bbis\b",
    r"\b(?:he prometido|prometí|tengo que|debo|voy a|quedé en)\b",
)
_IS_DUE = _any(r"\bdue\b", r"\bdeadline\b", r"\bfällig\b", r"\babgabe\b")
_CONDITION = _any(
    r"^(?:if|when|should|could|would|can|may|shall|what|how|which|who|where|why|do|does|is|are)\b",
    r"\b(?:if i|if we|might|maybe|perhaps|vielleicht|quizás|i wish|hopefully|imagine|not sure)\b",
)
_UNDECIDED = _any(
    _CONDITION.pattern,
    r"\b(?:should|could(?! not)|would|says|wants?|thinking of|considering|i['’]ll|trying|wondering)\b",
)
_NEGATED = _any(r"\b(?:not|never|no longer|nothing|nobody|cannot|\w+n['’]t|dont|wont|cant|nicht|kein\w*)\b")

_CHANGES = (
    _any(
        r"\b(?:moved?|postponed|put off|changed?|switched|extended|rescheduled|shifted|pushed|brought forward"
        r"|migrated)"
        r"\b.*\bfrom\b.+\bto\b",
        r"\bis now\b.*\bnot\b|\bare now\b.*\bnot\b|\bwill now be\b",
        rf"\bno longer\b|\b(?:i|we|they|he|she|it|['’]ve|['’]s)\b.*\binstead of\b|\binstead\b(?=\s*[,.;!]|$)"
        rf"|{_I}\b.*(?:\bnot|n['’]t)\b.*\bany ?more\b",
        r"\bis now (?:on |in )?(?:the )?(?:\d|january|february|march|april|may|june|july|august|september|october"
        r"|november"
        r"|december)",
        r"\b(?:has|have|had|was|were|is|are|been|got)\s+(?:been\s+)?(?:moved|postponed|cancell?ed|called off"
        r"|rescheduled"
        r"|put off|brought forward|extended|replaced)\b",
        r"\bnot going\b.*\b(?:agreed|until|but)\b",
        r"\bfrom (?:now on|january|february|march|april|may|june|july|august|september|october|november|december"
        r"|next \w+),?\s+(?:it|we|i|they|he|she|on)\b",
    ),
    _any(
        rf"(?:^|: |, (?=moving)|{_I}{_ADVERBS}|{_I}['’](?:ve|m|re)(?: just| now| finally)?|\bim)\s*"
        r"(?<!since i )(?<!when i )(?<!before i )(?<!after i )(?:quit|dropped (?-i:[A-Z])\w*|leaving (?:the|my)"
        r"|gave up on|stopped using|given up|gave up|moved|moving|switched"
        r"|signed with|migrated|replaced)\b",
        r"\b(?:is|are|['’]re|['’]m|am) moving\b|\bnew job\b|\bgot (?:a|the) (?:new )?job\b|\bstarted (?:a|at"
        r"|my) new\b",
        r"\b(?:is|are) on [\w ]+ since\b",
        r"\b(?:verschoben|umgezogen|gewechselt|gekündigt|abgesagt|statt)\b|\b(?:se ha cambiado|me he mudado"
        r"|aplazad[oa])\b",
    ),
)
"""Changes of plans, which replace something, and new circumstances."""

_PLACE = r"(?P<value>[^\W\d_][\w'’-]+(?:(?: (?:de|da|do|la|of|the))? (?-i:[A-ZÀ-Ý])[\w'’-]+)*)"
_FACTS = (
    (
        "home",
        re.compile(
            rf"(?:{_I}(?:['’]\w+)?(?: \w+)? |, |^)(?:live|living|based|moved?|moving) (?:in"
            rf"|to) {_PLACE}",
            re.IGNORECASE,
        ),
    ),
    (
        "home",
        re.compile(
            rf"\b(?:my|our|the) (?:new )?(?:flat|house|apartment|place|kitchen) (?:is )?in {_PLACE}", re.IGNORECASE
        ),
    ),
    ("home", re.compile(rf"\b(?:our|my) [\w ]+ here in {_PLACE}", re.IGNORECASE)),
    ("work", re.compile(r"\bsigned with (?:the )?(?P<value>[\w'’&-]+(?: (?-i:[A-ZÀ-Ý])[\w'’&-]+)*)", re.IGNORECASE)),
    (
        "work",
        re.compile(
            r"\b(?:i work|i teach(?: \w+)?|(?:i['’]?m|i am) an? [\w-]+(?: [\w-]+){0,2}|dev|developer|engineer|(?:a"
            r"|my|the|staff) job)"
            r" (?:at|for) (?:the )?(?P<value>[\w'’&-]+(?: (?-i:[A-ZÀ-Ý])[\w'’&-]+)*)",
            re.IGNORECASE,
        ),
    ),
)
"""Attributes of the person, of which only the latest value holds."""

_NEVER = _any(
    rf"{_I}(?:['’]m|['’]ve| have| am)? never\b|{_I}\b.{{0,20}}\b(?:don['’]?t|do not|can['’]?t"
    rf"|cannot)\b.*\b(?:any ?more|at all|ever)\b",
    rf"{_I}(?:['’]ve| have)?(?: just)? (?:quit|stopped|given up|gave up)\b",
    r"\b(?:i['’]?m|i am|been|became|went|turned)\b.{0,15}\b(?:vegetarian|vegan|teetotal|pescatarian)\b"
    r"|\bzero caffeine\b|\bno \w+ at all\b|\b(?:no|keine?n?) \w+ (?:for|until|für|mehr)\b",
    rf"{_I} (?:don['’]?t|do not) (?:eat|drink|smoke|drive|fly|use|watch|work|allow)\b|{_I} hate\b",
    r"\b(?:allergic to|intolerant)\b",
    r"\bich (?:esse|trinke|rauche|arbeite|fahre|benutze)\b.*\b(?:nie|niemals|kein\w*|nicht mehr)\b|\bnunca\b",
)
_HABIT_FREQUENCY = _any(
    r"\b(?:every|each)\b|\balways\b|\b(?:a|per) (?:day|week)\b|\b(?:daily|weekly|usually|nowadays|these days"
    r"|tradition|best thing ever)\b",
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days\b|\bnew normal\b|\bjede[nrs]?\b|\bcada\b|\bimmer\b",
)
_EVENT_PAST = _any(rf"{_I}\s+(?:had|ate|drank|drove|smoked|bought|ordered|watched|worked|ran|tried|enjoyed)\b")
_PEOPLE_ONLY = _any(
    rf"{_I}\b|\bmy\b|\bour\b|\bus\b|^(?:pork|sushi|writing|had|back|on)\b", r"\b(?:ich|wir|mein\w*|yo|mi)\b"
)

_STEP = _any(
    r"\b(?:done|finished|sent|submitted|paid|delivered|handed in|handed over|given|gave|gone|went|got|told|signed"
    r"|wrote"
    r"|written|posted|booked|called|rang|brought|bought|fixed|shipped|merged|published|completed|returned|already"
    r"|answered"
    r"|confirmed|is out|out|was|were|sold|have it|has it|has one|cried|loved|liked|registered|cooked|baked|arrived"
    r"|received|ready"
    r"|dropped off|emailed|uploaded|launched|released|picked up|collected)\b",
    r"\b(?:erledigt|geschickt|fertig|abgegeben|bezahlt|gebracht|geschafft|gesendet|gegeben|war|hecho|enviado"
    r"|entregado"
    r"|mandé|envié|pagado|listo|terminado)\b",
)
_CLASSES = {
    "fish": "sushi salmon tuna cod prawns prawn shrimp seafood mackerel sardines anchovies sashimi trout fisch lachs "
    "thunfisch pescado salmón",
    "meat": "pork beef chicken bacon ham steak burger sausage sausages lamb turkey kebab salami schnitzel fleisch "
    "wurst "
    "carne vegetarian vegan",
    "coffee": "espresso espressos latte cappuccino caffeine americano kaffee café",
    "alcohol": "beer wine whisky gin cocktail cocktails champagne bier wein cerveza vino teetotal pint pints",
    "smoke": "cigarette cigarettes smoking smoked rauche",
    "sugar": "cake chocolate sweets dessert candy zucker schokolade kuchen",
    "screen": "screens tv telly television youtube netflix bluey ipad tablet cartoon cartoons peppa",
    "weekend": "weekends saturday saturdays sunday sundays wochenende samstag sonntag",
    "dark": "night nights midnight dunkel nachts",
    "drive": "drove driving driven fahre gefahren",
    "milk": "cheese yoghurt yogurt cream dairy lactose milch käse",
    "gluten": "bread pasta pizza bun brot",
    "fly": "flying flight flights flew plane planes fliege geflogen volar",
    "gym": "gyms treadmill",
    "meeting": "meetings call calls",
}
"""Classes of things that people rule out, with words that name a member of the class."""

_CLASS_OF = {word: name for name, words in _CLASSES.items() for word in (name, *words.split())}
_CONSUMED = frozenset("fish meat coffee alcohol sugar screen milk gluten smoke".split())
"""Classes that are compared without the verb: "has sushi" contradicts "eats no fish"."""

_GENERIC = frozenset(
    "i'm i'll i've i'd also again all any anyth about after before by down get give go good great have just know "
    "let lol made make much my new next now ok one our out over please pleas quick realli say said so some someth "
    "still sure take tell than thank thanks that then there thing think time told too two up us very want way "
    "week well while work year yes you your day month morn night today tomorrow her him them it he she they we me "
    "not no never ani more becaus but can could do done due first last friday monday tuesday wednesday thursday "
    "saturday sunday january february march april may june july august september october november december jan "
    "feb mar apr jun jul aug sept oct nov dec promis need must owe remind send sent bring write call put moved "
    "move will would should into if only ever im ill id septemb octob novemb decemb januari februari instead is's "
    "don't didn't won't can't isn't am pm use big both right left littl lot th st nd rd".split()
)


@cache
def _analyser() -> Analyser:
    return Analyser()


def content_terms(text: str) -> list[str]:
    """Return the distinct index terms of a text, without generic words and numbers, in order."""
    found = dict.fromkeys(_analyser().terms(text))
    return [term for term in found if term not in _GENERIC and not term[0].isdigit() and len(term) > 1][:MAX_TERMS]


def definitions_and_statements(
    text: str, role: MessageRole | None, mentions: Sequence[Mentioned], at: datetime
) -> tuple[Mapping[str, Definition], Sequence[Statement]]:
    """Return the definitions of the concepts that a text mentions, by key, and the statements of a person's message.

    :param role: The role of the author of a message; None for a memory.
    """
    try:
        read = said(text, role)
        stated = statements_in(read, at.date()) if role is MessageRole.USER else ()
        return definitions_in(read, role, mentions), stated
    except Exception:  # the boundary of background work: one text must not block the queue
        log.exception("statement_extraction_failed", chars=len(text))
        return {}, ()


def statements_in(text: str, said_on: date) -> tuple[Statement, ...]:
    """Return the statements of a person's message, in order of appearance.

    :param text: Without recalled text. :param said_on: The day to which relative dates refer.
    """
    found = [" ".join(text[start:end].split()) for start, end in _sentences(text[:MAX_CHARS_READ])]
    stated: list[Statement] = []
    for place, sentence in enumerate(found):
        if 0 < len(sentence) <= MAX_SENTENCE_CHARS and not sentence.endswith("?"):
            after = next((one for one in found[place + 1 :] if not one.endswith("?")), "")
            stated += _stated(sentence, found[:place], after, said_on)
    return (*stated, *_step(found))


_REFERS_BACK = re.compile(r"(?:he|she|it|they|we|that|this)\b", re.IGNORECASE)
"""A sentence that says of whom it is only together with the one before."""

_ORDINAL = re.compile(r"\b(?:am|bis|vom|zum|der|den|dem|ab) \d{1,2}\.$", re.IGNORECASE)
"""The end of a part of a German sentence, before the name of a month."""


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield sentences outside of blocks of code."""
    fenced = [match.span() for match in re.finditer(r"```.*?(?:```|\Z)", text, re.DOTALL)]
    begin: int | None = None
    for start, end in sentences(text):
        if any(first <= start < last for first, last in fenced):
            continue
        begin = start if begin is None else begin
        if not _ORDINAL.search(text[begin:end].rstrip()):
            yield begin, end
            begin = None
    if begin is not None:
        yield begin, len(text)


def _stated(sentence: str, before: Sequence[str], after: str, said_on: date) -> Iterator[Statement]:
    days = named_days(sentence, said_on)
    denied = _denied(sentence)
    change = None if denied else _change(sentence, days, said_on)
    fact = _fact(sentence)
    if change is not None:
        attribute, value = (fact.attribute, fact.value) if fact else (None, None)
        due, replaced = change
        shown = sentence
        if _REFERS_BACK.match(sentence) and before and _names_matter(before[-1]):
            shown = f"{before[-1]} {sentence}"
        elif len(sentence.split()) < FEW_WORDS and len(after) < MAX_SENTENCE_CHARS // 2:
            shown = f"{sentence} {after}"
        yield Statement(StatementKind.CHANGE, shown, _terms(shown), attribute, value, due, replaced)
    elif fact is not None:
        yield fact
    ahead = [one for one in days if one.day >= said_on]
    if (
        ahead
        and change is None
        and not _CONDITION.search(sentence)
        and not re.search(r"\bevery\b", sentence, re.IGNORECASE)
    ):
        yield from _due(sentence, before, ahead, said_on)
    if denied:
        yield Statement(StatementKind.DENIAL, sentence, " ".join(denied))
    elif not _NEGATED.search(sentence) and _PEOPLE_ONLY.search(sentence):
        terms = _classes(sentence)
        past = _EVENT_PAST.search(sentence) and any(term in _CLASSES for term in terms)
        if past or _HABIT_FREQUENCY.search(sentence):
            yield Statement(StatementKind.HABIT, sentence, " ".join(terms))


def _change(sentence: str, days: Sequence[NamedDay], said_on: date) -> tuple[date | None, date | None] | None:
    """Return the new and the replaced day of a change; None if the sentence states no change."""
    plan, circumstance = (pattern.search(sentence) for pattern in _CHANGES)
    if not (plan or circumstance) or _UNDECIDED.search(sentence) or len(sentence.split()) < 3:
        return None
    exact = [one for one in days if one.is_exact]
    ordinals = [one for one in days if not one.is_exact and sentence[one.start : one.end].strip("the )")[:1].isdigit()]
    if plan and len(exact) == 1 and ordinals:
        with suppress(ValueError):
            return exact[0].day, exact[0].day.replace(day=ordinals[0].day.day)
    if plan and len(exact) > 1:
        negated = re.compile(r"\b(?:not|from|couldn['’]t|could not|instead of)\b[^,.;]*$", re.IGNORECASE)
        is_now = re.search(r"\bis now [^,.;]*$", sentence[: exact[0].start], re.IGNORECASE)
        usual = exact[1] if is_now else exact[0]
        old = next((one for one in exact if negated.search(sentence[: one.start])), usual)
        new = next(one for one in exact if one is not old)
        return new.day, old.day
    ahead = [one.day for one in exact if one.day >= said_on]
    return (ahead[0] if plan and ahead else None), None


def _due(sentence: str, before: Sequence[str], ahead: Sequence[NamedDay], said_on: date) -> Iterator[Statement]:
    committed = _COMMITMENT.search(sentence) or _IS_DUE.search(sentence)
    if committed:
        due = max(ahead, key=lambda one: (_is_deadline(sentence, one), one.is_exact, -one.start))
        is_vague = _VAGUE.search(sentence) is not None
        context = before[-2:] if is_vague else ()
        shown = f"{before[-1]} {sentence}" if is_vague and before and _names_matter(before[-1]) else sentence
        terms = content_terms(" ".join([*context, sentence]))
        if len(terms) > 1 or not is_vague:
            yield Statement(StatementKind.PROMISE, shown[-MAX_SENTENCE_CHARS:], " ".join(terms), due=due.day)
    elif _is_appointment(sentence):
        later = next((one.day for one in ahead if one.is_exact and one.day > said_on), None)
        if later is not None:
            yield Statement(StatementKind.APPOINTMENT, sentence, _terms(sentence), due=later)


def _is_appointment(sentence: str) -> bool:
    is_past = re.search(
        r"\b(?:yesterday|last|ago|since|done|got|went|was|did|used|figure out)\b", sentence, re.IGNORECASE
    )
    is_told = len(content_terms(sentence)) > 1 or re.search(rf"{_I}\b", sentence, re.IGNORECASE)
    return bool(is_told) and not is_past and len(sentence.split()) > 3


def _names_matter(sentence: str) -> bool:
    """Return whether a preceding sentence may be shown with one that refers to it."""
    return 2 < len(sentence.split()) <= 20 and not sentence.endswith("?")


def _is_deadline(sentence: str, day: NamedDay) -> bool:
    return (
        re.search(
            r"\b(?:by|until|before|due|bis|para"
            r"|antes de)\b[^,.;]*$",
            sentence[: day.start],
            re.IGNORECASE,
        )
        is not None
    )


def _fact(sentence: str) -> Statement | None:
    """Return the statement of an attribute that changes rarely: home or work."""
    if (
        _NEGATED.search(sentence)
        or _CONDITION.search(sentence)
        or re.search(r"\b(?:lost|may|used to)\b", sentence, re.IGNORECASE)
    ):
        return None
    for attribute, pattern in _FACTS:
        match = pattern.search(sentence)
        if match is not None:
            return Statement(StatementKind.FACT, sentence, _terms(sentence), attribute=attribute, value=match["value"])
    return None


def _denied(sentence: str) -> list[str]:
    """Return the terms of the clause that rules something out, if it names a known class."""
    for clause in re.split(r"[,;:]|\b(?:and|but|und|aber)\b", sentence):
        known = [term for term in _classes(clause) if term in _CLASSES] if _NEVER.search(clause) else []
        consumed = [term for term in known if term in _CONSUMED]
        if consumed:
            return consumed[:1]
        if known:
            verb = re.search(r"\b(?:never|don['’]?t|do not|stopped|quit|nie)\s+(\w+)", clause, re.IGNORECASE)
            return list(dict.fromkeys([*(_classes(verb[1]) if verb else []), *known]))
    return []


def _classes(sentence: str) -> list[str]:
    """Return the terms of a sentence, with members of a class as that class."""
    words = re.findall(r"[^\W\d_]+", sentence.casefold())
    found = [_CLASS_OF[word] if word in _CLASS_OF else next(iter(_analyser().terms(word)), word) for word in words]
    return list(dict.fromkeys(found))[:MAX_TERMS]


def _step(found: Sequence[str]) -> Iterator[Statement]:
    """Yield one statement with the terms of a message that reports something as done."""
    short = [one for one in found if len(one) <= MAX_SENTENCE_CHARS and not one.endswith("?")]
    done = [one for one in short if _STEP.search(one)]
    if done:
        value = " ".join(term for one in done for term in content_terms(one))
        yield Statement(StatementKind.STEP, "", _terms(" ".join(found)), value=value)


def _terms(text: str) -> str:
    return " ".join(content_terms(text))
