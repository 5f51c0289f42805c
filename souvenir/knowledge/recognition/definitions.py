"""Find the sentences of a text that define the concepts that it mentions.

A definition has one of these forms, from the best to the weakest:

- a copula: "Pico is our beagle", "Gladys has been my friend since school"
- an apposition: "Rui, my husband, ...", "our conductor, Dr Falcão, ...", "my sister Ines", "a guy called Bashir"
- a copula with the concept at the end, or the person in relation to it: "the ship was the Hercules", "I work at Acme"
- a verb that states a purpose: "Trados stores every sentence"

A greeting, a bare negation, a judgement ("Pico is a pain") and a copula that holds for one day only ("Pico is the boss
today") define nothing, and a question only by an apposition. A sentence that tells something else and names a role in
passing ("My sister Ines phoned") is kept for the role, with a quality that says that it describes nothing. The
result is a function of the text and its mentions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from souvenir.core.text import sentences
from souvenir.core.types import Mentioned, MessageRole
from souvenir.core.types.statements import Definition
from souvenir.knowledge.recognition.vocabulary import FOREIGN, WordClass, class_of

MIN_WORDS, MAX_WORDS, MAX_SENTENCE_CHARS = 3, 30, 300
"""Shorter and longer sentences define nothing."""

MAX_CHARS_READ = 8_000
"""Only the beginning of a longer text is read, which bounds the time."""

MARK = "\x00"
"""Stands for the concept in a sentence."""

_N = MARK

_TITLE_BEFORE = re.compile(r"(?<!\w)(?:dr|mr|mrs|ms|prof|st|herr|herrn|frau|señora?)\b\.? \Z", re.IGNORECASE)
MAX_TITLE_CHARS = len(" señora. ")
_NAME = rf"{_N}(?!['’]s)"
_POSSESSIVE = r"(?:my|our|your|his|her|their|mein\w{0,2}|unser\w{0,2}|mi|nuestr[oa]|[^\W\d_]+['’]s)"
_ARTICLE = r"(?:an?|the|one of (?:my|our|the)|eine?|der|die|das|una?)"
_STOP = (
    r"(?= (?:and|hes|shes|its|it['’]s|he['’]s|she['’]s|who|that|which|but|because|so|she|he|we|it|they|says|said"
    r"|has|und|der|die|que)\b|[,.;:!?()]|$)"
)
_PERSON = (
    r"(?:(?:step|grand|great-?(?:grand)?)?-?(?:mother|father|son|daughter|child|parents?)|mum|mom|mam|dad|sister"
    r"|brother"
    r"|wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|aunt|uncle|cousin|niece|nephew|twin|sister-in-law"
    r"|brother-in-law|mother-in-law|father-in-law|boss|manager|editor|colleague|coworker|co-worker|friend|neighbou?r"
    r"|teacher|tutor|coach|doctor|nurse|dentist|therapist|physio\w*|lawyer|landlord|landlady|flatmate|roommate"
    r"|housemate"
    r"|boyfriend|assistant|apprentice|intern|client|customer|supplier|conductor|captain|pastor|priest|vet|midwife"
    r"|guy|woman|girl|man|maid of honor|best man"
    r"|supervisor|professor|head(?: of \w+)?|director|lead|mentor|accountant|agent|photographer|cat|dog|puppy|kitten"
    r"|budgie|parrot|horse|rabbit|hamster|tortoise|pet|terrier|beagle|company|employer|school|band|choir|club|team"
    r"|firm"
    r"|shop|schwester|bruder|mutter|vater|tochter|sohn|frau|mann|freundin|freund|chef|chefin|kollegin|kollege"
    r"|nachbarin"
    r"|nachbar|katze|hund|hermana|hermano|madre|padre|hija|hijo|esposa|esposo|novia|novio|amiga|amigo|jefa|jefe|prima"
    r"|primo|tía|tío|abuela|abuelo|suegra|suegro|gato|perro)"
)
_LEAD = r"^(?:[^,.;:]{0,25}[,:] |(?:and|but|so|also|oh|oh and|because|well|ja|y) )?(?:the |an? )?"
_RELATION = rf"{_POSSESSIVE} (?:[\w’'-]+ ){{0,2}}?{_PERSON}"

_FORMS = (
    (
        6,
        rf"{_LEAD}{_NAME}(?: \([^)]*\))?,? (?:is|are|was|were|['’]s|ist|es) (?P<role>(?:{_POSSESSIVE}"
        rf"|{_ARTICLE}) .{{2,60}}?){_STOP}",
    ),
    (6, rf"{_LEAD}{_NAME} (?:has|have) been (?P<role>{_POSSESSIVE} .{{2,60}}?){_STOP}"),
    (5, rf"{_NAME}, (?P<role>(?:{_POSSESSIVE}|one of {_POSSESSIVE}) [^,.;:!?()]{{2,60}}?)(?=[,.;:!?()]|$)"),
    (5, rf"\b(?P<role>{_RELATION}),? {_NAME}"),
    (5, rf"\b(?P<role>(?:an? (?:new |old |good |dear )?|new ){_PERSON}),? (?:called |named )?{_NAME}"),
    (4, rf"{_NAME}, (?P<role>(?:an?|the) [^,.;:!?()]{{2,60}}?)(?=[,.;:!?()]|$)"),
    (
        4,
        rf"\b(?P<role>(?:an?|the|{_POSSESSIVE}) (?:[\w-]+ ){{0,2}}[\w-]+) (?:called|named|namens"
        rf"|llamad[oa]) {_NAME}",
    ),
    (
        4,
        rf"^(?P<role>(?:the|my|our|his|her|mein\w{{0,2}}|unser\w{{0,2}}) (?!name\b)(?:[\w-]+ ){{0,2}}[\w-]+) (?:is"
        rf"|was|are|ist|war) (?:the "
        rf"|called )?{_NAME}",
    ),
    (4, rf"\b(?:the|my|our) {_PERSON}, {_NAME},"),
    (3, rf"{_NAME} (?:works|worked) (?:as|at|for|in)\b"),
    (3, rf"\b(?:i['’]?m|i am) (?:an?|the) (?:[\w-]+ ){{0,3}}[\w-]+ (?:at|in|of|for) (?:the )?{_NAME}"),
    (
        3,
        rf"\b(?:i|we) (?:work|teach|study|sing|play|volunteer|live|nurse|worked|taught|studied"
        rf"|nursed)(?: [\w-]+){{0,3}} (?:at|in|for|with) (?:the )?{_NAME}",
    ),
    (3, rf"\b(?:developer|dev|engineer|nurse|teacher|student|manager) (?:at|in|for) (?:the )?{_NAME}"),
    (3, rf"{_NAME} \([^)\d]{{4,60}}\)"),
    (
        3,
        rf"^(?:(?:hi|hello|hey|good morning|hallo|hola|hoi)\b.{{0,15}}[,!.] *)?"
        rf"(?P<self>my name is|i['’]?m|i am|ich bin|ich heiße|soy"
        rf"|me llamo|mi nombre es|mijn naam is|ik heet) {_NAME}(?=[,.!]|$| and\b| und\b| y\b| en\b)",
    ),
    (
        2,
        rf"{_LEAD}{_NAME} (?:stores|runs|makes|lets|helps|provides|offers|tracks|manages|means|stands for"
        rf"|refers to)\b",
    ),
)
_COMPILED = tuple((weight, re.compile(pattern, re.IGNORECASE)) for weight, pattern in _FORMS)

_OF_RELATION = 5
_RELATIONS = tuple(one for one in _COMPILED if one[0] == _OF_RELATION)
"""Forms that define in a question too: "May my sister Ines come?"."""

_APPOSITIONS = frozenset(pattern for _, pattern in _COMPILED if pattern.pattern.startswith(_NAME + ", (?P"))
"""Forms in which a role follows the name; only those of names with a capital, since lists look the same."""

_NAMES_ANOTHER = re.compile(rf"\b{_PERSON} (?-i:[A-ZÀ-Ý])", re.IGNORECASE)
"""A role that belongs to the next name: "in April, my sister Paola"."""

_PART_OF_CLAUSE = frozenset((WordClass.BE, WordClass.MODAL, WordClass.SUBJECT, WordClass.VERB, WordClass.FUNCTION))
_NOUNS = frozenset((WordClass.NOUN, WordClass.NOUN_OR_VERB, WordClass.ACTIVITY))
_END_OF_ROLE = frozenset(("who", "that", "which", "and", "or", "not", "since", "now", "here"))

_IN_PASSING = 1
"""Weight of a sentence that names a role and tells something else."""

_ONE_DAY = re.compile(
    r"\b(?:today|tomorrow|tonight|yesterday|right now|at the moment|(?:this|last|next) (?:morning|afternoon|evening"
    r"|night|week|weekend|month)|(?:on|next|last|this) (?:mon|tues|wednes|thurs|fri|satur|sun)day|heute|morgen"
    r"|gestern|hoy|ayer)\b",
    re.IGNORECASE,
)

_END_OF_CLAUSE = re.compile(r"[,.;:!?()]| (?:and|but|so|und|y)\b")

_LASTING = re.compile(
    rf"{_N}[^.;:]{{0,40}}?[ ,](?:is|are|was|['’]s|ist|es|has been|works?|worked|lives?|teaches|studies|runs|comes from"
    rf"|arbeitet|wohnt|vive|trabaja)\b"
    rf"|^(?:[^,.;:]{{0,25}}[,:] )?(?:i|we)(?:['’]ve| have)? (?:have|got|live|work|sing|play|report|share)\b"
    rf"|^(?:this|that|it|there|meet|here)\b",
    re.IGNORECASE,
)
"""Sentences with a relation that say something lasting: "My sister Ines is a dentist", "I live with my husband Rui"."""

_MAX_CHARS_BEFORE = 25
"""An apposition describes only a name that comes so early: later ones are buried in another statement."""

SELF = "you"
"""The role of the name by which the author of a message introduces themselves."""

_JUDGEMENT = re.compile(
    r"^(?:an?|the|one) (?:(?:very|really|so|such|bit|lot|good|great|bad|nice|big|best|worst|only|same|usual|new|next"
    r"|safe"
    r"|sensible|fine|right|wrong|better|real|total|bloody) ?)*(?:bit|lot|idea|problem|question|issue|thing|pain|mess"
    r"|joke"
    r"|nightmare|reason|point|way|shame|must|one|normal|choice|case|option|answer|start|time|few|next|last|first"
    r"|worst"
    r"|best)\b",
    re.IGNORECASE,
)
_NOT_DEFINING = re.compile(
    r"^(?:no|not|never|nice to meet|hi|hello|thanks|thank you|welcome|congratulations)\b(?!.*[,.!] .*\bis\b)",
    re.IGNORECASE,
)
_SECOND_PERSON = re.compile(r"\b(?:my|our)\b", re.IGNORECASE)


_RELATED = re.compile(rf"\b{_PERSON}\b", re.IGNORECASE)


def is_relation(role: str) -> bool:
    """Return whether a role relates a person, a pet or a group to another person: "your boss", "Dec's sister"."""
    return _RELATED.search(role) is not None and not role.startswith(("the ", "The "))


def definitions_in(text: str, role: MessageRole | None, mentions: Iterable[Mentioned]) -> Mapping[str, Definition]:
    """Return the best definition of each mentioned concept that has one, by its key.

    :param text: Without recalled text. :param role: The role of the author of a message; None for a memory.
    """
    text = text[:MAX_CHARS_READ]
    found = [" ".join(text[start:end].split()) for start, end in sentences(text)]
    short = (one for one in found if len(one) <= MAX_SENTENCE_CHARS and MIN_WORDS <= len(one.split()) <= MAX_WORDS)
    said = [one for one in short if not _may_not_define(one)]
    best: dict[str, Definition] = {}
    for mention in mentions:
        for sentence in said:
            one = _definition(sentence, mention.form, role)
            if one is not None and (mention.key not in best or one.quality > best[mention.key].quality):
                best[mention.key] = one
    return best


def _may_not_define(sentence: str) -> bool:
    greeting = re.match(r"(?:hi|hello)\b", sentence, re.IGNORECASE)
    return _NOT_DEFINING.search(sentence) is not None and not (
        greeting and re.search(r"\b(?:i['’]?m|name is)\b", sentence)
    )


def with_mark(sentence: str, form: str) -> str | None:
    """Return the sentence with `MARK` for each occurrence of a name, with its title; None if it has none."""
    lower, name = sentence.lower(), form.lower()
    if len(lower) != len(sentence):
        lower, name = sentence, form
    kept, done = list[str](), 0
    start = lower.find(name)
    while start >= 0:
        end = start + len(name)
        if not _is_of_word(sentence[start - 1 : start]) and not _is_of_word(sentence[end : end + 1]):
            title = _TITLE_BEFORE.search(sentence[max(done, start - MAX_TITLE_CHARS) : start])
            kept += [sentence[done : start - (len(title.group()) if title else 0)], _N]
            done = end
        start = lower.find(name, end)
    return "".join([*kept, sentence[done:]]) if kept else None


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _definition(sentence: str, form: str, author: MessageRole | None) -> Definition | None:
    marked = with_mark(sentence, form)
    if marked is None:
        return None
    forms = _COMPILED if not sentence.endswith("?") else _RELATIONS
    for weight, pattern in forms:
        match = pattern.search(marked)
        role = match.groupdict().get("role") if match else None
        if match is None or (role is not None and _JUDGEMENT.search(role)):
            continue
        if weight in (4, 6) and _ONE_DAY.search(_clause(marked, match)):
            continue
        if pattern in _APPOSITIONS and role and not (form[:1].isupper() and _is_apposition(role)):
            continue
        # A person defines what is theirs better than the assistant does.
        weighed = weight if _describes(marked, pattern, weight) else _IN_PASSING
        quality = 2 * weighed - (author is MessageRole.ASSISTANT)
        if author is MessageRole.USER and match.groupdict().get("self"):
            role = SELF
        shown = role and _SECOND_PERSON.sub("your", role.replace(_N, form).strip())
        return Definition(sentence, quality, shown)
    return None


def _is_apposition(role: str) -> bool:
    """Return whether a role is a noun phrase and not a clause: "my best friend", but not "my car is broken"."""
    if _NAMES_ANOTHER.search(role):
        return False
    before: WordClass | None = None
    for word in role.lower().removeprefix("one of ").split()[1:]:
        of = class_of(word)
        if before in _NOUNS and (word in _END_OF_ROLE or of in (WordClass.PREPOSITION, WordClass.SUBJECT)):
            return True
        if of in _PART_OF_CLAUSE or word in FOREIGN:
            return False
        if before in _NOUNS and of in (WordClass.NOUNS_OR_VERBS, WordClass.ADJECTIVE):
            return False
        before = of
    return before in _NOUNS


def _clause(marked: str, match: re.Match[str]) -> str:
    end = _END_OF_CLAUSE.search(marked, match.end())
    return marked[match.start() : end.start() if end else len(marked)]


def _describes(marked: str, pattern: re.Pattern[str], weight: int) -> bool:
    """Return True unless a sentence with a relation or an apposition tells something else."""
    if pattern in _APPOSITIONS:
        return marked.index(_N) <= _MAX_CHARS_BEFORE and _ONE_DAY.search(marked) is None
    if weight == _OF_RELATION:
        return _LASTING.search(marked) is not None and _ONE_DAY.search(marked) is None
    return True
