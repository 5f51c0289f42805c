"""Find the sentences of a text that define the concepts that it mentions.

A definition has one of these forms, from the best to the weakest:

- a copula: "Pico is our beagle", "Gladys has been my friend since school", "Sprocket, hes a lurcher"
- an apposition: "Rui, my husband, ...", "our conductor, Dr Falcão, ...", "my sister Ines", "a guy called Bashir"
- a copula with the concept at the end, or what the speaker is to it: "the ship was the Hercules", "I work at Acme"
- a verb that states a purpose, and what the speaker did with it: "Trados stores every sentence", "I bought a Yamaha"

A judgement ("Pico is a pain") defines nothing, and a question only by an apposition. A sentence that tells something
else and names a role in passing ("My sister Ines phoned") is kept for the role, with a quality that says that it
describes nothing. Of a sentence that is too long only a clause is read, and kept. The result is a function of the text
and its mentions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from souvenir.core.text import sentences
from souvenir.core.types import ConceptKind, Mentioned, MessageRole
from souvenir.core.types.statements import Definition
from souvenir.index.analyser import fold
from souvenir.knowledge.recognition.definition_forms import (
    FROM,
    INTRODUCTION,
    OF_RELATION,
    OWNERS,
    PERSON,
    WHERE,
    Form,
    N,
    forms_of,
    in_small_letters,
    words_before,
)
from souvenir.knowledge.recognition.foreign import compound_kind
from souvenir.knowledge.recognition.gazetteer import (
    CLASSES,
    HEADS,
    PEOPLE_OR_FIRMS,
    PHRASE_HEADS,
    RELATIVES,
    ROLES,
    SMALL_WORDS,
)
from souvenir.knowledge.recognition.kinds import UNSPECIFIED_PEOPLE
from souvenir.knowledge.recognition.role_lists import role_of_member
from souvenir.knowledge.recognition.spelling import singular
from souvenir.knowledge.recognition.vocabulary import FOREIGN, WordClass, class_of

MIN_WORDS, MAX_WORDS, MAX_SENTENCE_CHARS = 3, 30, 300
"""Shorter and longer sentences define nothing, but that one who says "I'm Alice." is the author."""

MAX_CHARS_READ = 8_000
"""Only the beginning of a longer text is read, which bounds the time."""

_TITLE_BEFORE = re.compile(
    r"(?<!\w)(?:dr|mr|mrs|ms|prof|st|herr|herrn|(?<!meine )(?<!deine )(?<!seine )frau"
    r"|señora?|ma['’]am)\b\.? \Z",
    re.IGNORECASE,
)
MAX_TITLE_CHARS = len(" meine Frau ")

_PART_OF_CLAUSE = frozenset((WordClass.BE, WordClass.MODAL, WordClass.SUBJECT, WordClass.VERB, WordClass.FUNCTION))
_NOUNS = frozenset((WordClass.NOUN, WordClass.NOUN_OR_VERB, WordClass.ACTIVITY))
_END_OF_ROLE = frozenset("who that which and or not since now here aus von vom bei de del en con uit van bij".split())

_OF_PURPOSE = 2
"""The weight of the weakest forms, which define names only: "car makes a noise" says nothing of the car."""

_FOREIGN_WORDS = frozenset().union(*SMALL_WORDS.values())

_SIGNS_BEFORE = re.compile(r"^(?:[^\w\s(\"'“‘«¿¡]+ )+")
"""Signs before a sentence: a dash of a list, a mark of quoted text, an emoji."""

_OF_OWN_LIFE = (3, 4, 5)
"""The weights of forms that say what someone or something is to their author, but for appositions."""

_IN_PASSING = 1
"""Weight of a sentence that names a role and tells something else."""

_ONE_DAY = re.compile(
    r"\b(?:today|tomorrow|tonight|yesterday|right now|at the moment|(?:this|last|next) (?:morning|afternoon|evening"
    r"|night|week|weekend|month)|(?:on|next|last|this) (?:mon|tues|wednes|thurs|fri|satur|sun)day|heute|morgen"
    r"|gestern|hoy|ayer)\b",
    re.IGNORECASE,
)

_NO_STATE = r"(?! \w+ing\b| (?:back|away|here|out|off|ill|sick|late)\b)"
_LASTING = re.compile(
    rf"{N}[^.;:]{{0,40}}?[ ,](?:(?:is|are|was|['’]s){_NO_STATE}|ist|es|has been|works?|worked|lives?|teaches|studies"
    rf"|runs|comes from|arbeitet|wohnt|vive|trabaja)\b"
    rf"|^(?:[^,.;:]{{0,25}}[,:] )?(?:i|we)(?:['’]ve| have)? (?:have|got|live|work|sing|play|report|share)\b"
    rf"[^.;:()]{{0,40}}{N}"
    rf"|^(?:this|that|it|there|meet|here)\b",
    re.IGNORECASE,
)
"""Sentences with a relation that say something lasting: "My sister Ines is a dentist", "I live with my husband Rui"."""

_MAX_CHARS_BEFORE = 25
"""An apposition describes only a name that comes so early: later ones are buried in another statement."""

SELF = "you"
"""The role of the name by which the author of a message introduces themselves."""

_JUDGEMENT = re.compile(
    r"^(?:an?|the|one(?! of)|una?|el|eine?|een) (?:(?:very|really|so|such|bit|lot|good|great|bad|nice|big|best|worst"
    r"|only|same|usual|new|next|safe|sensible|fine|right|wrong|better|real|actual|total|bloody) ?)*(?:bit|lot|idea"
    r"|problem|question|issue|thing|pain|mess|joke|nightmare|reason|point|way|shame|must|one|normal|choice|case|option"
    r"|answer|start|time|few|next|last|first|worst|best|devil|saint|angel|gem|hero|legend|treasure|godsend|disaster"
    r"|monster|darling|lifesaver|different animal|schat|sol|amor|engel)(?: (?:of|for|to|in|at|i|we|so)\b|[,.;:!?]|$)"
    r"|^[\w ]+ ones?(?: (?:at|for|in)\b|$)|[£$€]",
    re.IGNORECASE,
)
_DAY = re.compile(r"^(?:the|der|den|el|de) \d{1,2}(?:st|nd|rd|th|\.)?(?: (?:at|of|um|om|in|de)\b|$)", re.IGNORECASE)
"""A day, which is the role of an event only: "the 25th at 9"."""
_FORMAL = re.compile(r"(?:mr|mrs|ms|miss|dr)\b", re.IGNORECASE)
_PRAISE = re.compile(
    r"^(?:an?|the|one of the) (?:good|great|bad|nice|better|best|worst|least|most|\w+est) ", re.IGNORECASE
)
"""A role that says what something is only if its noun does: "the best mechanic", but not "the least work"."""

_MEETINGS = frozenset("appointment interview termin cita afspraak".split())
"""Appointments and the like, which are with a person as often as with an organisation."""

_AT_WORK = frozenset("at for bei beim para bij voor".split())

_PEOPLE = ("er", "or", "ist", "ista", "ian", "ant", "ent", "man", "woman", "ess")
"""Ends of nouns for people."""

_FIRST_PERSON = re.compile(r"\b(?:my|our)\b", re.IGNORECASE)
_INFLECTED = re.compile(r"^(mein|unser|sein|ihr|ein)(em|en|er)( \w+)$", re.IGNORECASE)
"""A German role in the dative or the accusative, whose noun has the same form in the nominative: "meinem Chef"."""

_SOMEBODY = (
    "|".join(sorted(UNSPECIFIED_PEOPLE))
    + "|beast|niñ[oa]|chic[oa]|señora?|hombre|mujer|tipo|mann|frau|junge|mädchen|typ|jongen|meisje|vrouw|mevrouw|meneer"
)
_VAGUE_ROLE = re.compile(
    rf"(?:(?:an?|the|una?|eine?|een) (?:new |old |nice |young )?)?(?:{_SOMEBODY})|the \w+est|your (?:first|last|one)",
    re.IGNORECASE,
)
"""A role that says nothing."""

_CUT_AT_END = re.compile(r" (?:who|that|which|que|die|dat|der|there)$", re.IGNORECASE)
"""Words without what they introduce or refer to: "our contact there"."""

_OF_ANOTHER = re.compile(
    r"(?:his|her|their|sus?|zijn|haar) |ex$|(?:(?:an?|the|eine?n?|der|die|una?|el|la|een|de|het) )?(?:sister|brother"
    r"|cousin|aunt|uncle|son|daughter|friend|colleague|schwester|bruder|sohn|tochter|freund|freundin|kollege|kollegin"
    r"|hermana|hermano|hijo|hija|amiga|amigo|zus|broer|zoon|dochter|vriend|vriendin|collega)$"
    r"|(?:an?|(?:(?:an?|the) )?new) (?:(?:girl|boy)friend|husband|wife|fianc[eé]e?)$",
    re.IGNORECASE,
)
"""A role that says nothing without the sentence before: "his brother", "a friend", "the new wife"."""

_DETERMINED = re.compile(rf"(?:{OWNERS}|the|new|an?|der|die|das|eine?|el|la|una?|de|het|een) ", re.IGNORECASE)
"""Roles whose first word has a capital at the start of a sentence only, unless it is a name."""

_OWNED = re.compile(rf"{OWNERS} ", re.IGNORECASE)
_BETWEEN_CLAUSES = re.compile(
    r"(?<=[;–—]) |(?<=,) (?:and|but|so|und|aber|y|pero|en|maar) |(?<=,) (?=(?:because|since|which|while|weil|porque)\b)"
)
"""Where a sentence that is too long is divided."""

_NOT_OWNED = frozenset((ConceptKind.PRODUCT, ConceptKind.PLACE, ConceptKind.EVENT))
"""Kinds of what someone runs without owning it: "I run Docker", "I run the Leeds Half Marathon"."""

_USED = frozenset((ConceptKind.PRODUCT, ConceptKind.NAME, ConceptKind.ORGANISATION))
_LIVING = frozenset((ConceptKind.PERSON, ConceptKind.ANIMAL))
_PETS = frozenset((ConceptKind.ANIMAL, ConceptKind.PRODUCT))
"""Kinds of what has a name of its own, as a person does: "a collie, he's called Mot", "an old boat, name Ellen"."""

_RELATED = re.compile(rf"\b{PERSON}\b", re.IGNORECASE)


def is_relation(role: str) -> bool:
    """Return whether a role relates a person, a pet or a group to another person: "your boss", "Dec's sister"."""
    return _RELATED.search(role) is not None and not role.startswith(("the ", "The "))


def definitions_in(text: str, role: MessageRole | None, mentions: Iterable[Mentioned]) -> Mapping[str, Definition]:
    """Return the best definition of each mentioned concept that has one, by its key.

    :param text: Without recalled text. :param role: The role of the author of a message; None for a memory.
    """
    text = text[:MAX_CHARS_READ]
    said = [
        (clause, forms_of(clause))
        for start, end in sentences(text)
        for clause in _clauses(_SIGNS_BEFORE.sub("", " ".join(text[start:end].split())), role)
        if len(clause.split()) >= MIN_WORDS or INTRODUCTION.match(clause)
    ]
    best: dict[str, Definition] = {}
    for mention in mentions:
        for clause, forms in said:
            one = _definition(clause, forms, mention, role)
            if one is not None and (mention.key not in best or one.quality > best[mention.key].quality):
                best[mention.key] = one
    return best


def _clauses(sentence: str, author: MessageRole | None) -> list[str]:
    """Return a sentence, or the clauses of a person's sentence that is too long."""
    is_whole = _is_short(sentence) or author is MessageRole.ASSISTANT
    parts = [sentence] if is_whole else [_beginning(one) for one in _BETWEEN_CLAUSES.split(sentence)]
    return [one for one in parts if _is_short(one)]


def _beginning(clause: str) -> str:
    """Return a clause up to the last comma at which it is short enough."""
    clause = clause.rstrip(" ,;–—")
    while not _is_short(clause) and "," in clause:
        clause = clause.rpartition(",")[0]
    return clause


def _is_short(text: str) -> bool:
    return len(text) <= MAX_SENTENCE_CHARS and len(text.split()) <= MAX_WORDS


def with_mark(sentence: str, form: str) -> str | None:
    """Return the sentence with `N` for each occurrence of a name, with its title; None if it has none."""
    lower, name = sentence.lower(), form.lower()
    if len(lower) != len(sentence):
        lower, name = sentence, form
    kept, done = list[str](), 0
    start = lower.find(name)
    while start >= 0:
        end = start + len(name)
        if not _is_of_word(sentence[start - 1 : start]) and not _is_of_word(sentence[end : end + 1]):
            title = _TITLE_BEFORE.search(sentence[max(done, start - MAX_TITLE_CHARS) : start])
            kept += [sentence[done : start - (len(title.group()) if title else 0)], N]
            done = end
        start = lower.find(name, end)
    return "".join([*kept, sentence[done:]]) if kept else None


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _definition(
    sentence: str, forms: Sequence[Form], mention: Mentioned, author: MessageRole | None
) -> Definition | None:
    """:param forms: Those that the sentence can have."""
    marked = with_mark(sentence, mention.form)
    if marked is None:
        return None
    before, lower = words_before(marked), in_small_letters(marked)
    for form in forms:
        if (form.before and form.before.isdisjoint(before)) or form.in_small_letters.search(lower) is None:
            continue
        match = form.pattern.search(marked)
        if match is None or not _holds(form, match, mention, author):
            continue
        # A person defines what is theirs better than the assistant does.
        weighed = form.weight if _describes(form, marked) else _IN_PASSING
        quality = 2 * weighed - (author is MessageRole.ASSISTANT)
        return Definition(sentence, quality, _role(match, mention, author), _kind_by(match))
    return None


def _holds(form: Form, match: re.Match[str], mention: Mentioned, author: MessageRole | None) -> bool:
    """Return whether words in a form are a definition of this concept."""
    groups, is_name = _groups(match), mention.form[:1].isupper()
    role = groups.get("role")
    if role is not None and (_judges(role) or (mention.kind is not ConceptKind.EVENT and _DAY.match(role))):
        return False
    if form.is_apposition and role is not None and not _may_follow(role, mention):
        return False
    if form.is_apposition and author is MessageRole.ASSISTANT and match.string[: match.start()].endswith(": "):
        # A list: "Note: Kestrel, the pump key."
        return False
    is_living = mention.kind in _LIVING or (role is not None and _kinds(_head_of(role)) == {ConceptKind.ANIMAL})
    is_of_users = is_living or not is_name or (form.weight in _OF_OWN_LIFE and not form.is_apposition)
    if author is MessageRole.ASSISTANT and (is_of_users or (role is not None and _OWNED.match(role))):
        # Whom and what the user has, the user says.
        return False
    if role is not None and fold(role.lower()) in RELATIVES and _FORMAL.match(mention.form):
        # The mother of another: "Mrs Whitfield (mother)".
        return False
    if form.weight <= _OF_PURPOSE and not is_name and mention.kind is ConceptKind.PHRASE:
        return False
    return all(_FITS[name](words, mention) for name, words in groups.items() if name in _FITS)


def _may_follow(role: str, mention: Mentioned) -> bool:
    """Return whether a role after a comma is an apposition: after a common noun, only an owned noun of the lists is."""
    is_noun = mention.kind is ConceptKind.PHRASE or not mention.form[:1].isupper()
    if mention.kind is ConceptKind.PLACE and ConceptKind.PLACE not in _kinds(_head_of(role)):
        # "It was stolen in Deventer, a new bike."
        return False
    is_clear = not is_noun or (_OWNED.match(role) is not None and _kinds(_head_of(role)))
    return bool(is_clear) and _is_apposition(role) and _may_be_called(role, mention.kind)


def _kind_by(match: re.Match[str]) -> ConceptKind | None:
    """Return the kind of what is so defined, if the words tell one: by what it is called, or by what is done there."""
    groups = _groups(match)
    if not {"self", "here", "someone"}.isdisjoint(groups):
        return ConceptKind.PERSON
    if "origin" in groups or "home" in groups:
        return ConceptKind.PLACE
    if "held" in groups:
        return None if groups["held"].lower() in _MEETINGS else ConceptKind.ORGANISATION
    if "where" in groups:
        return ConceptKind.ORGANISATION if groups["prep"].lower() in _AT_WORK else None
    kinds = _kinds(_head_of(groups["role"])) if "role" in groups else set()
    return kinds.pop() if len(kinds) == 1 else None


def _groups(match: re.Match[str]) -> dict[str, str]:
    return {name: words for name, words in match.groupdict().items() if words is not None}


def _judges(role: str) -> bool:
    """Return whether a role only judges or is a price: "a bit of a pain", but not "the best mechanic that I have"."""
    return _JUDGEMENT.search(role) is not None or (_PRAISE.search(role) is not None and not _kinds(_head_of(role)))


def _is_of_list(noun: str, mention: Mentioned) -> bool:
    if noun.isupper() and mention.kind is ConceptKind.PERSON:
        # "Marion our PM"
        return len(noun) > 1
    return bool(_kinds(noun)) and mention.kind is not ConceptKind.PHRASE and _may_be(noun, mention.kind)


_FITS: Mapping[str, Callable[[str, Mentioned], bool]] = {
    "head": _is_of_list,
    "noun": lambda _, one: one.kind is ConceptKind.PERSON,
    "person": lambda noun, one: one.kind is ConceptKind.PERSON and _is_person(noun),
    "calling": lambda noun, one: one.kind is ConceptKind.PERSON and ConceptKind.PERSON in _kinds(noun),
    "equal": lambda _, one: one.kind is not ConceptKind.PHRASE,
    "note": lambda _, one: one.kind is not ConceptKind.CODE,
    "used": lambda _, one: one.kind in _USED,
    "pet": lambda noun, one: one.kind is not ConceptKind.PLACE and not _kinds(noun).isdisjoint(_PETS),
    "one": lambda _, one: one.kind is ConceptKind.PERSON,
    "named": lambda _, one: one.kind is not ConceptKind.PERSON,
    "works": lambda _, one: not _kinds(one.form),
    "owned": lambda _, one: one.kind not in _NOT_OWNED,
    "where": lambda _, one: one.kind is not ConceptKind.PERSON,
    "origin": lambda _, one: one.kind is not ConceptKind.PERSON,
    "home": lambda _, one: one.kind is not ConceptKind.PERSON,
}
"""Conditions under which the words of a group define a concept."""


def _kinds(noun: str) -> set[ConceptKind]:
    """Return the kinds of what a noun of the lists stands for; none for other nouns and for events."""
    word = fold(noun.lower())
    one = singular(word)
    found = {CLASSES.get(one), PHRASE_HEADS.get(one), HEADS.get(one), compound_kind(word)} - {None, ConceptKind.EVENT}
    if not {one, word}.isdisjoint(RELATIVES | ROLES):
        found.add(ConceptKind.PERSON)
    if one in PEOPLE_OR_FIRMS:
        found.add(ConceptKind.ORGANISATION)
    return {kind for kind in found if kind is not None}


def _may_be(noun: str, kind: ConceptKind) -> bool:
    """Return False if a noun stands for another kind: "Josie, a log cabin"."""
    kinds = _kinds(noun)
    return not kinds or kind not in _LIVING or not kinds.isdisjoint(_LIVING)


def _may_be_called(role: str, kind: ConceptKind) -> bool:
    """Return False if a noun in apposition stands for another kind, or "a" or "the" one for no person if it should."""
    head = _head_of(role)
    if kind is ConceptKind.PERSON and role.lower().startswith(("a ", "an ", "the ")):
        return _is_person(head)
    return _may_be(head, kind)


def _is_person(noun: str) -> bool:
    return not _kinds(noun).isdisjoint(_LIVING) if _kinds(noun) else noun.endswith(_PEOPLE)


def _head_of(role: str) -> str:
    """Return the last word of the noun phrase with which a role begins: "friend" of "my best friend from work"."""
    words = role.split()
    ends = (place for place, word in enumerate(words) if place > 1 and _ends_role(word.lower()))
    return words[next(ends, len(words)) - 1]


def _ends_role(word: str) -> bool:
    return word in _END_OF_ROLE or class_of(word) in (WordClass.PREPOSITION, WordClass.SUBJECT)


def _is_apposition(role: str) -> bool:
    """Return whether a role is a noun phrase and not a clause: "my best friend", but not "my car is broken"."""
    before: WordClass | None = None
    for word in role.lower().removeprefix("one of ").split()[1:]:
        of = class_of(word)
        if before in _NOUNS and _ends_role(word):
            return True
        if of in _PART_OF_CLAUSE or word in FOREIGN or (before in _NOUNS and word in _FOREIGN_WORDS):
            return False
        before = of
    return before in _NOUNS


def _describes(form: Form, marked: str) -> bool:
    """Return True unless a sentence with a relation or an apposition tells something else."""
    if form.is_apposition:
        return marked.index(N) <= _MAX_CHARS_BEFORE
    if form.weight == OF_RELATION:
        return _LASTING.search(marked) is not None and _ONE_DAY.search(marked) is None
    return True


def _role(match: re.Match[str], mention: Mentioned, author: MessageRole | None) -> str | None:
    groups = _groups(match)
    if "where" in groups:
        return WHERE[groups["where"].lower()]
    if "origin" in groups:
        return FROM[groups["origin"].lower()]
    introduces = "here" in groups or ("self" in groups and mention.kind is not ConceptKind.PHRASE)
    if introduces and author is MessageRole.USER:
        return SELF
    if "group" in groups:
        return role_of_member(groups["role"], groups["group"], groups["of"])
    role = groups.get("role")
    if role is None:
        return None
    role = _FIRST_PERSON.sub("your", _CUT_AT_END.sub("", role.replace(N, mention.form).strip()))
    if _VAGUE_ROLE.fullmatch(role) or _OF_ANOTHER.match(role):
        return None
    role = _INFLECTED.sub(lambda one: one[1] + ("e" if one[2] == "er" else "") + one[3], role)
    return role[:1].lower() + role[1:] if _DETERMINED.match(role) else role
