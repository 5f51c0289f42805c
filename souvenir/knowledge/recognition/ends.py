"""Find the sentences of a person by which roles end ("Bev has resigned", "my new boss is Ravi"), or someone has died.

English, and German, Spanish and Dutch where the form exists there. What is planned for a later time ends nothing, nor
does a departure for a while: "Bev left early", "Inga is moving out in October".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from souvenir.core.ended_roles import EndCause, new_holder
from souvenir.core.types import ConceptKind, Mentioned
from souvenir.core.types.statements import Definition, Statement, StatementKind
from souvenir.knowledge.recognition.definition_forms import N
from souvenir.knowledge.recognition.definitions import with_mark
from souvenir.knowledge.recognition.spelling import key_of

_STOP = (
    r"(?=[,.;:!)]|$| (?:in|on|last|from|with|and|after|yesterday|today|because|so|as|now|this|the (?:same|next)|btw"
    r"|effective)\b)"
)
_WHO = (
    rf"{N}(?:, [^,.;:]{{3,40}},|,)?(?:['’]s)?"
    r"(?: (?:has|have|had|is|was|been|just|already|finally|also|now|got)(?:, \w+,)?)* "
)
_MONTHS = (
    r"january|february|march|april|may|june|july|august|september|october|november|december|spring|summer|autumn|fall"
    r"|winter"
)
_NOT_LATER = rf"(?![^.;]*\b(?:next|soon|tomorrow|end of|{_MONTHS}|\d+)\b)"
_FOR_ANOTHER = r"(?:for|got|to start) an? (?:[\w-]+ ){0,2}(?:job|post|role|position|company|firm|bank|school|startup)\b"
_NOT_MY = r"(?:(?:no longer|not) (?:my|our)|isn['’]?t (?:my|our)) (?:[\w-]+ )?"
_I = r"(?:^(?:and |also |so )?|\b(?:i|we)(?:['’]ve)?(?: (?:have|had|just|finally|also|already))* )"
_STAFF_LEFT = (
    rf"{_I}(?:(?:fired|sacked|dismissed|laid off|got rid of) (?:(?:my|our|the) )?{N}|let {N} go){_STOP}",
    rf"{_WHO}(?:quit|resigned|retired|stepped down|(?:fired|sacked|laid off|let go|made redundant)"
    rf"|(?:quit|left|handed in) (?:his|her|their) (?:job|notice|resignation)){_STOP}",
    rf"{_WHO}(?:transferred to (?-i:[A-Z]|the |another )|left (?:me|us)(?=[,.!]|$))",
    rf"\bno more {N}(?=[,.;!]|$)",
    rf"{_WHO}left (?:(?:us|the (?:company|firm|business|team))(?=[.!]|$| last )"
    rf"|(?:us |(?:the|our) \w+ )?{_FOR_ANOTHER})",
    rf"{_WHO}left[,;]? (?:and |so )?(?:now (?:is|it['’]?s|we have|there['’]?s)|{_FOR_ANOTHER})\b",
    rf"{_WHO}(?:no longer works|(?:doesn['’]?t|does not) work) (?:here|there|with us|for us|at|for)\b",
    rf"{_WHO}{_NOT_MY}(?:boss|manager|supervisor|colleague|assistant|coworker)\b",
    rf"{N} (?:hat (?:gestern |heute |jetzt |zum \w+ )?gekündigt|ist (?:jetzt |nun )?in (?:rente|pension)"
    r"|hat uns verlassen|arbeitet (?:hier |bei uns )?nicht mehr|ist nicht mehr (?:mein|unser)e? (?:chef|kolleg)\w*)",
    rf"{N} (?:renunció|ha renunciado|dimitió|ha dimitido|se jubiló|se ha jubilado|dejó (?:la empresa|el trabajo)"
    r"|ya no (?:trabaja|es mi (?:jef[ea]|compañer[oa])))\b",
    rf"{N} (?:heeft (?:[\w ]{{1,20}} )?ontslag genomen|is (?:nu )?met pensioen|werkt (?:hier |bij ons )?niet meer"
    r"|is opgestapt|is niet meer mijn (?:baas|collega))\b",
)
_MOVED_OUT = (
    rf"{_WHO}(?:moved (?:out|away){_STOP}|moved in with (?:his|her|their)\b"
    rf"|moving (?:out|away|in with (?:his|her|their))\b{_NOT_LATER})",
    rf"{_WHO}{_NOT_MY}(?:(?:flat|room|house)mate|neighbou?r)\b",
    rf"{N} (?:ist (?:[\w ]{{1,20}} )?(?:aus|weg)gezogen|se (?:mudó|ha mudado)|is (?:[\w ]{{1,20}} )?verhuisd)\b",
)
_PLACE_LEFT = (
    rf"{_I}(?:quit|resigned from|retired from|got (?:fired|sacked|laid off) from|stopped working (?:at|for)"
    rf"|(?:quit|left) (?:my|the) job at|handed in my notice at|moved (?:out of|away from|from)"
    rf"|no longer (?:work|live) (?:at|for|in)) (?:the )?{N}",
    rf"\b(?:i|we)(?:['’]ve| have) left (?:the )?{N}(?=[,.!]|$)",
    rf"\b(?:i|we) left (?:the )?{N} (?:for good|to start|(?:in|last) (?:month|year|{_MONTHS}))\b",
    rf"\b(?:i|we) (?:don['’]?t|do not) (?:work|live) (?:at|for|in) (?:the )?{N} any ?more\b",
    rf"\bich (?:habe bei {N} gekündigt|(?:arbeite|wohne|bin) nicht mehr (?:bei|beim|am|im|in) {N})",
    rf"\b(?:ya no (?:trabajo|vivo) en|(?:renuncié a|dejé|he dejado)) {N}",
    rf"\bik (?:werk|woon) niet meer (?:bij|in) {N}|\bik heb ontslag genomen bij {N}",
)
_JOB_LEFT = (
    r"\b(?:i|we)(?:['’]ve| have)?(?: just| finally| also)? (?:(?:quit|left|resigned from) (?:my|the|this) (?:old )?job"
    r"|resigned(?=[,.;!]|$| (?:today|yesterday|last)\b)|handed in my (?:notice|resignation)"
    r"|(?:was|got|been) (?:fired|sacked|laid off|made redundant))\b",
    rf"\bi(?:['’]?m| am) leaving the (?:er|hospital|ward|company|firm|office|school|shop|practice|bank)\b{_NOT_LATER}",
    r"\b(?:ich habe (?:meinen job |die stelle )?gekündigt|dejé (?:el|mi) trabajo|me despidieron"
    r"|ik heb ontslag genomen|ik ben ontslagen)\b",
)


def _patterns(texts: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{text})" for text in texts), re.IGNORECASE)


_OF_CONCEPT = {
    EndCause.STOPPED_WORK: _patterns(_STAFF_LEFT),
    EndCause.MOVED_OUT: _patterns(_MOVED_OUT),
    EndCause.PLACE_LEFT: _patterns(_PLACE_LEFT),
}
_OF_JOB = _patterns(_JOB_LEFT)
_MAY_END = re.compile(
    r"\b(?:quit|left|resigned|retired|stepped|fired|sacked|dismissed|got rid|laid off|let|made redundant|transferred"
    r"|handed in|moved|moving|leaving|no longer|no more|not my|not our|isn|doesn|does not|don|do not|stopped|in rente"
    r"|in pension|verlassen|nicht mehr|renunci|dimiti|dimitido|se jubil|se ha|dej|ya no|se mud|despidieron|ontslag"
    r"|pensioen|niet meer|opgestapt|verhuisd)|gekündigt|gezogen|he dejado",
    re.IGNORECASE,
)
_QUIT_WORD = re.compile(rf"{_I}quit (?:the )?(?P<place>[\w'’-]+)", re.IGNORECASE)
"""A place that is written like no name: "i quit torchys"."""

_IN_YEAR = re.compile(r"\b(?:in|en|im jahr) (?:19|20)\d\d\b", re.IGNORECASE)
"""The year of an end, which makes it a part of a life story, and no news."""

_QUITS = re.compile(
    r"quit|resign|retire|fired|sacked|laid|work|job|notice|arbeit|kündig|trabaj|renunci|werk|ontslag", re.IGNORECASE
)
"""Words of "I quit Acme" and its like, unlike "we moved out of Leeds"."""

_OF_WORK = re.compile(
    r"\b(?:job|shifts?|notice|boss|manager|colleagues?|employer|firm|salary|last day)\b", re.IGNORECASE
)
"""Words of a text about work, by which "I quit Acme" means a job and no gym."""

_MORTAL = frozenset((ConceptKind.PERSON, ConceptKind.ANIMAL, ConceptKind.NAME))

_IS_NEW = re.compile(r"\b(?:new|now|neu(?:e[rnsm]?)?|jetzt|nuev[oa]|ahora|nieuwe?|nu)\b", re.IGNORECASE)

_SINCE = r"(?:(?:has|had|have|just|sadly|recently|peacefully|then) )*"
_OWNED = r"(?:[\w-]+ ){0,2}"
_DIED = re.compile(
    rf"{N}(?:, [^,.;:]{{3,40}},|,)? {_SINCE}(?:died|passed away)\b|{N} is (?:dead|no longer with us)\b"
    rf"|{N}['’]s (?:funeral|death|burial)\b|\b(?:funeral|death|burial) of {_OWNED}{N}|\b(?:my|our) late {_OWNED}{N}"
    rf"|\b(?:i|we) buried {_OWNED}{N}"
    rf"|{N} (?:ist (?:[\w.]+ ){{0,3}}?(?:gestorben|verstorben|tot)\b|starb\b)|\b(?:beerdigung|tod) von {_OWNED}{N}"
    rf"|{N} (?:murió|falleció|ha muerto|ha fallecido)\b|\b(?:murió|falleció|(?:entierro|muerte) de) {_OWNED}{N}"
    rf"|{N} is (?:[\w.]+ ){{0,3}}?(?:overleden|gestorven|dood)\b|\b(?:begrafenis|uitvaart|dood) van {_OWNED}{N}",
    re.IGNORECASE,
)
_ONE_DIED = re.compile(
    rf"\b(?:he|she) {_SINCE}(?:died|passed away)\b|\b(?:er|sie) ist (?:[\w.]+ ){{0,3}}?(?:gestorben|verstorben)\b"
    r"|^(?:murió|falleció|ha muerto)\b|\b(?:hij|zij|ze) is (?:[\w.]+ ){0,3}?(?:overleden|gestorven)\b",
    re.IGNORECASE,
)
"""The death of the only person whom a message names: "My brother Kuba was ill. He died on Sunday"."""

_MAY_TELL_DEATH = re.compile(
    r"\b(?:died|passed away|dead|no longer with us|funeral|death|burial|late|buried|gestorben|verstorben|tot|starb"
    r"|beerdigung|tod|murió|falleció|muerto|fallecido|entierro|muerte|overleden|gestorven|dood|begrafenis|uitvaart)\b",
    re.IGNORECASE,
)
_NOT_DEAD = re.compile(
    r"\b(?:if|might|would|could|may|almost|nearly|not|n['’]t|falls|wenn|fast|nicht|si|casi|no|als|bijna|niet)\b",
    re.IGNORECASE,
)


def may_end(text: str) -> bool:
    """Return whether a text has one of the words of ends, which is quicker to tell than the ends are to find."""
    return _MAY_END.search(text) is not None


def ends_in(read: str, text: str, mentions: Sequence[Mentioned]) -> Iterator[Statement]:
    """Yield the ends that a sentence states. :param text: The whole text."""
    if not may_end(read) or _IN_YEAR.search(read):
        return
    marked = ((mention.key, with_mark(read, mention.form) or "") for mention in mentions)
    found = [
        (cause, key, match[0])
        for key, said in marked
        for cause, pattern in _OF_CONCEPT.items()
        if (match := pattern.search(said))
    ]
    if not found and _OF_WORK.search(read) and (quitted := _QUIT_WORD.search(read)):
        found = [(EndCause.PLACE_LEFT, key_of(quitted["place"]), quitted[0])]
    yield from (_end(cause, key) for cause, key, _ in found)
    has_quit = any(cause is EndCause.PLACE_LEFT and _QUITS.search(said) for cause, _, said in found)
    if _OF_JOB.search(read) or (has_quit and _OF_WORK.search(text)):
        yield _end(EndCause.JOB_LEFT, None)


def may_tell_death(text: str) -> bool:
    """Return whether a text has one of the words of deaths."""
    return _MAY_TELL_DEATH.search(text) is not None


def deaths_in(sentences: Sequence[str], mentions: Sequence[Mentioned]) -> Iterator[Statement]:
    """Yield an end for each person, animal or name of a text that one of its sentences says has died.

    :param sentences: The statements of the text.
    """
    told = [one for one in sentences if may_tell_death(one) and not _NOT_DEAD.search(one)]
    people = {one.key: one.form for one in mentions if one.kind in _MORTAL}
    for key, form in people.items():
        is_only = len(people) == 1 and any(_ONE_DIED.search(one) for one in told)
        if is_only or any(_DIED.search(with_mark(one, form) or "") for one in told):
            yield _end(EndCause.DIED, key)


def replaced_in(definitions: Mapping[str, Definition]) -> Iterator[Statement]:
    """Yield the ends of the roles that someone or something else has now."""
    for key, one in definitions.items():
        cause = new_holder(one.role) if one.role else None
        if cause is not None and _IS_NEW.search(one.sentence):
            yield _end(cause, key)


def _end(cause: EndCause, key: str | None) -> Statement:
    return Statement(StatementKind.END, "", "", cause.value, key)
