"""Recognise names, by their capitals, within a sentence.

A capital at the start of a sentence is evidence only for words that are no common words; those of a heading, of a text
in capitals, or of a word that is always capitalised (`I`, `Monday`) are none. In German, where every noun has a
capital, adjacent nouns are one name only if a rule says so ("Frau Schmidt", but not "Schwester Anneliese").
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from souvenir.core.types import ConceptKind, Mentioned
from souvenir.index.analyser import fold
from souvenir.knowledge.recognition.capitals import has_capital, is_acronym, is_unlike_a_start
from souvenir.knowledge.recognition.clauses import kind_by_clause, kind_by_list, kind_by_strong_clause
from souvenir.knowledge.recognition.evidence import (
    USES,
    ends_of_compounds,
    is_in_frame,
    is_subject,
    with_head,
)
from souvenir.knowledge.recognition.exact import Token
from souvenir.knowledge.recognition.firms import ends_of_firms
from souvenir.knowledge.recognition.foreign import (
    DUTCH,
    ENGLISH,
    GERMAN,
    SPANISH,
    goes_on,
    is_address,
    kind_abroad,
    kind_alone,
)
from souvenir.knowledge.recognition.gazetteer import (
    COMMON_WORDS,
    GIVEN_NAMES,
    HEADS,
    INTERJECTIONS,
    KNOWN,
    NAMES_AND_WORDS,
    RELATIVES,
    ROLES,
    SHORT_ABBREVIATIONS,
    SMALL_WORDS,
    TIME_WORDS,
    TITLES,
    TRADES,
    is_known_in_small_letters,
    is_street,
    known_kind,
)
from souvenir.knowledge.recognition.kinds import (
    ALSO,
    CAMEL,
    LISTED_KINDS,
    OWNED_BY_ORGANISATIONS,
    POSSESSIVES,
    SAYS,
    Surroundings,
    defined_kind,
    kind_of_name,
)
from souvenir.knowledge.recognition.spelling import key_of, singular
from souvenir.knowledge.recognition.vocabulary import (
    FOREIGN,
    GENERIC,
    MODALS,
    PLACE_OPENERS,
    WordClass,
    class_of,
    is_known,
)

MAX_WORDS = 5
MAX_DIGITS = 3
"""A longer number after a name is a year or an amount."""

CONTEXT_WORDS = 8
"""Number of words on each side that may tell the kind of a name."""

_INSIDE = frozenset("of the de la le van von der den del da di du bin al &".split())
_FIRST_INSIDE = _INSIDE - {"the", "la", "le", "al"}
"""Without articles, which are part of a name after another small word only: Lord of the Rings, but not "send Mel the
MacBook"."""

_NOUNS = (WordClass.NOUN, WordClass.NOUN_OR_VERB, WordClass.NOUNS_OR_VERBS, WordClass.RELATIONAL)
_NO_NAME = (
    *(WordClass.FUNCTION, WordClass.BE, WordClass.SUBJECT, WordClass.MODAL, WordClass.TO),
    *(WordClass.DETERMINER, WordClass.PREPOSITION),
)
_SAINT = "st"
_FOREIGN_WORDS = (
    frozenset(
        word
        for word in FOREIGN.union(*SMALL_WORDS.values())
        if word not in GIVEN_NAMES and word not in KNOWN and word not in NAMES_AND_WORDS and len(word) < 4
    )
    | INTERJECTIONS
)
"""Words that are no names by themselves in a text of any language: Sí, ER."""

_FOREIGN_OWNERS = frozenset("mein meine meinen meinem meiner unser unsere unseren unserem unserer mijn onze".split())
"""German and Dutch possessives, which begin no name even in a text that is too short to tell its language."""

_ORIGINS = ("ian", "ean", "ese", "ish")
"""Endings of adjectives of origin: the Canadian market."""

_MIN_ACRONYM = 3
_ARTICLES_IN_NAMES = {"la": (SPANISH,), "el": (SPANISH,), "los": (SPANISH,), "las": (SPANISH,), "den": (DUTCH,)}
"""Articles with a capital that are inside of a name, by language: Hospital La Paz."""
_BEFORE_INITIALS = (WordClass.PREPOSITION, WordClass.FUNCTION, WordClass.TO, WordClass.VERB)
_TURKISH_CASE = re.compile("(?<=[a-zçğıöşü])'(?:[dt][ae]n?|y?[aeıiuü]|n?[ıiuü]n)$")
"""Turkish suffixes, which follow a name and an apostrophe: İstanbul'da."""

_LISTED_BY_COMMAS = (ConceptKind.ORGANISATION, ConceptKind.PRODUCT)
"""Without places, of which a comma names the next: Fisk & Daughter, Oslo."""
_ADJECTIVE_ENDINGS = (*_ORIGINS, "ful", "less")
_VERBS_OF_PEOPLE = frozenset("is was has will says said wants lives works".split())
_PLAIN_VERBS = frozenset("be come do get give go have know let like make see tell".split())
_BARE_TITLES = frozenset("mr mrs ms miss mister dr prof sr sra".split())
"""Titles that are no names alone."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name from word `first` to, excluding, word `end` of a sentence; `start` is its offset in the text.

    :ivar is_defined: True if the sentence itself says what it is.
    """

    first: int
    end: int
    start: int
    mention: Mentioned
    is_defined: bool


class NameReader:
    """Finds the names of one sentence.

    :param words: None where a name cannot continue.
    :param seen: Lower-case words that are capitalised within a sentence of the same text.
    :param language: Of the text. :param lower: True if the text has no capitals, so that known names need none.
    """

    def __init__(self, words: Sequence[Token | None], seen: Collection[str], language: str, *, lower: bool) -> None:
        self._words = words
        self._lower = lower
        self._folded = ["" if word is None else fold(word.word.rstrip(".")) or word.text for word in words]
        self._seen = seen
        self._language = language
        self._no_names = SMALL_WORDS.get(language, frozenset()) | (TIME_WORDS if language != ENGLISH else frozenset())
        self._firms = ends_of_firms(words, self._folded, self._no_names)
        self._compounds = self._firms | ends_of_compounds(words, self._folded, lower=lower)

    def names(self) -> list[Name]:
        found: list[Name] = []
        place = 0
        while place < len(self._words):
            end = self._end_of_name(place)
            if end > place:
                first, end = with_head(self._words, self._folded, (place, end), self._language)
                name = self._name(first, end)
                if name:
                    found.append(name)
            place = max(end, place + 1)
        return self._alike(found)

    def _alike(self, found: Sequence[Name]) -> list[Name]:
        """Give names of an unknown kind that of the other names in the same list: "Axios, Got and Postman"."""
        kinds = [name.mention.kind for name in found]
        pairs = [pair for pair in range(1, len(found)) if self._is_listed(found[pair - 1].end, found[pair].first)]
        for one, other in [*((pair - 1, pair) for pair in pairs), *((pair, pair - 1) for pair in reversed(pairs))]:
            is_joined = self._folded[found[max(one, other)].first - 1] != ""
            if kinds[other] is ConceptKind.NAME and kinds[one] in (LISTED_KINDS if is_joined else _LISTED_BY_COMMAS):
                kinds[other] = kinds[one]
        return [
            name if name.mention.kind is kind else replace(name, mention=replace(name.mention, kind=kind))
            for name, kind in zip(found, kinds, strict=True)
        ]

    def _is_listed(self, end: int, first: int) -> bool:
        """Return True if only a comma or a conjunction is between two names."""
        between = self._folded[end:first]
        return len(between) in (1, 2) and all(word in ALSO for word in between)

    def _name(self, first: int, end: int) -> Name | None:
        run = [word for word in self._words[first:end] if word is not None]
        form = " ".join(token.text for token in run).replace(" - ", "-")
        form = _TURKISH_CASE.sub("", form.removesuffix("'s").removesuffix("'"))
        key = key_of(form)
        if len(key) < 2 or key in _BARE_TITLES:
            return None
        before = self._folded[max(0, first - CONTEXT_WORDS) : first][::-1]
        if self._language == SPANISH:
            # A preposition, and no article as in English.
            before = ["para" if word == "a" else word for word in before]
        elif self._language == DUTCH:
            # A preposition, and no greeting as in English.
            before = ["mit" if word == "met" else word for word in before]
        around = Surroundings(before, self._folded[end : end + CONTEXT_WORDS])
        kind = ConceptKind.ORGANISATION if first in self._firms else self._kind(self._folded[first:end], around)
        if kind is ConceptKind.NAME and not is_acronym(form):
            kind = kind_by_list(around) or (ConceptKind.PRODUCT if CAMEL.fullmatch(form) else kind)
        if run[-1].text.endswith(("'s", "'")):
            kind = self._kind_of_owner(run, end, kind) or kind
        if kind in (ConceptKind.PERSON, ConceptKind.NAME) and is_acronym(form):
            # Most abbreviations stand for things, and none for a person.
            kind = ConceptKind.ORGANISATION if around.after[:1] and around.after[0] in SAYS else ConceptKind.PHRASE
        if (
            kind is ConceptKind.PHRASE
            and is_acronym(form)
            and len(form) < _MIN_ACRONYM
            and key not in SHORT_ABBREVIATIONS
        ):
            return None
        return Name(first, end, run[0].start, Mentioned(key, form, kind), defined_kind(around) is not None)

    def _kind_of_owner(self, run: Sequence[Token], end: int, kind: ConceptKind) -> ConceptKind | None:
        """Return that of an organisation for the possessive of what only organisations have, and for "St Brigid's"."""
        if kind not in (ConceptKind.PERSON, ConceptKind.NAME):
            return None
        is_business = not OWNED_BY_ORGANISATIONS.isdisjoint(self._folded[end : end + 1])
        return ConceptKind.ORGANISATION if is_business or run[0].word.rstrip(".") == _SAINT else None

    def _kind(self, folded: Sequence[str], around: Surroundings) -> ConceptKind:
        if is_address(folded):
            return ConceptKind.PLACE
        kind = kind_alone(folded[0], self._language) if len(folded) == 1 else None
        if self._language == GERMAN and len(folded) == 2 and folded[1].isdigit() and folded[0] not in KNOWN:
            # A noun with a number: "Volk 2", "Gleis 7".
            return known_kind(" ".join(folded)) or ConceptKind.PHRASE
        kind = kind or kind_of_name(folded, around)
        if kind is None and self._language == GERMAN and len(folded) == 1:
            # Any noun.
            return kind_by_strong_clause(around) or ConceptKind.PHRASE
        return kind or kind_abroad(folded, around.before, self._language) or kind_by_clause(around) or ConceptKind.NAME

    def _end_of_name(self, place: int) -> int:
        """Return the end of the name that begins here; `place` if there is none."""
        if place not in self._compounds and not self._may_begin(place):
            return place
        end = self._compounds.get(place, place + 1)
        while end - place < MAX_WORDS and end < len(self._words):
            step = self._step(place, end)
            if not step:
                break
            end += step
        if end - place == 1 and not self._may_be_single(place):
            return place
        return end

    def _step(self, place: int, end: int) -> int:
        """Return by how many words the name from `place` to `end` continues."""
        last, ahead = self._words[end - 1], self._words[end]
        if last is None or ahead is None:
            return 0
        if last.text.endswith(("'s", "'")):
            return int(self._is_capital(end) and self._folded[end] in HEADS)
        if ahead.text.isdigit():
            is_amount = self._folded[end - 1] in GIVEN_NAMES or self._is_amount_after_organisation(end)
            return int(len(ahead.text) <= MAX_DIGITS and not is_amount)
        if self._may_continue(end):
            return int(self._language != GERMAN or self._goes_on_in_german(place, end))
        is_firm = self._folded[end] == "y" and place > 0 and self._folded[place - 1] in HEADS
        if is_firm or (self._folded[end] in _FIRST_INSIDE and self._language != GERMAN):
            return self._inside(end)
        return 0

    def _is_amount_after_organisation(self, place: int) -> bool:
        """Return True for a number with a noun of its own: "owes the Lantern Guild 300 gold"."""
        noun = self._words[place + 1] if place + 1 < len(self._words) else None
        is_organisation = HEADS.get(self._folded[place - 1]) is ConceptKind.ORGANISATION
        return is_organisation and noun is not None and class_of(noun.word) in _NOUNS

    def _goes_on_in_german(self, place: int, end: int) -> bool:
        first = self._folded[place]
        if first in RELATIVES:
            is_wife = first == "frau" and not _FOREIGN_OWNERS.isdisjoint(self._folded[max(0, place - 1) : place])
            return first in ("herr", "frau", "tante", "onkel") and not is_wife
        if HEADS.get(self._folded[end]) is ConceptKind.ORGANISATION or self._folded[end].endswith(TRADES):
            return first not in COMMON_WORDS
        return goes_on(first) or first in TITLES or first in GIVEN_NAMES or first in KNOWN

    def _is_capital(self, place: int) -> bool:
        token, folded = self._words[place], self._folded[place]
        if token is None:
            return False
        if has_capital(token) or is_street(folded):
            return True
        known = KNOWN.get(folded)
        if folded in COMMON_WORDS or (known is not ConceptKind.ORGANISATION and singular(folded) in COMMON_WORDS):
            # "My kindle".
            is_owned = place > 0 and self._folded[place - 1] in POSSESSIVES
            return known is ConceptKind.PRODUCT and is_owned and class_of(folded) is WordClass.VERB
        is_plain = folded == token.word  # "böse" is no Bose
        if (is_plain and is_known_in_small_letters(folded)) or (
            self._lower and (folded in GIVEN_NAMES or folded in KNOWN)
        ):
            return True
        return self._language == ENGLISH and is_in_frame(self._words, self._folded, place)

    def _goes_on(self, place: int) -> bool:
        after = place + 2 if self._folded[place + 1 : place + 2] == ["&"] else place + 1
        return after < len(self._words) and self._may_continue(after)

    def _may_begin(self, place: int) -> bool:
        token = self._words[place]
        if token is None or not self._is_capital(place):
            return False
        word, folded = token.word, self._folded[place]
        goes_on = self._goes_on(place)
        if goes_on and (self._is_initial(place) or self._is_dutch_name(place)):
            return True
        if is_unlike_a_start(token.text) and word not in COMMON_WORDS and not token.text.isupper():
            return True
        if goes_on and (folded in TITLES or word == _SAINT or self._is_shorthand(place)):
            return True
        if (
            folded in NAMES_AND_WORDS
            and folded not in self._no_names
            and not (place == 0 and self._is_question_with_modal())
            and (place > 0 or goes_on or not _VERBS_OF_PEOPLE.isdisjoint(self._folded[place + 1 : place + 2]))
        ):
            return True
        if _is_no_name(word) or folded in self._no_names or word in _FOREIGN_OWNERS:
            return False
        if self._is_numbered(place) and class_of(word) is not WordClass.VERB:
            return True
        if word in GENERIC and (place == 0 or KNOWN.get(word) is not ConceptKind.PRODUCT):
            return goes_on and self._language == GERMAN
        if place > 0:
            is_verb = class_of(word) is WordClass.VERB and word in COMMON_WORDS and folded not in KNOWN
            return goes_on or not is_verb or self._is_object(place)
        return self._may_begin_sentence(token, goes_on=goes_on)

    def _is_question_with_modal(self) -> bool:
        """Return True for "Will Ann come?", unlike "Will Smith comes"."""
        verb = self._text(2)
        is_plain = class_of(verb) is WordClass.NOUN_OR_VERB or verb in _PLAIN_VERBS
        return self._folded[0] in MODALS and is_plain and self._is_capital(1)

    def _may_begin_sentence(self, token: Token, *, goes_on: bool) -> bool:
        """Return True for a word whose capital is not explained by the start of the sentence."""
        word, folded = token.word, self._folded[0]
        if is_unlike_a_start(token.text) or (word in self._seen and not is_known(word)):
            return True
        if folded in GIVEN_NAMES or (folded in KNOWN and folded not in COMMON_WORDS):
            return True
        if self._language == GERMAN:
            return folded in RELATIVES or folded in ROLES
        if self._language != ENGLISH:
            return goes_on
        if is_subject(self._words, word):
            return True
        if is_known(word):
            return goes_on and word in PLACE_OPENERS
        if goes_on:
            return True
        ahead = self._words[1] if len(self._words) > 1 else None
        is_verb = ahead is not None and class_of(ahead.word) in (WordClass.NOUN, WordClass.PREPOSITION)
        if token.text.endswith(("'s", "'")):
            is_verb = False
        return not is_verb and singular(word) not in COMMON_WORDS and word not in COMMON_WORDS

    def _is_initial(self, place: int) -> bool:
        """Return True for a capital letter that begins the name of a person: J. Okafor."""
        text = self._text(place)
        before = self._words[place - 1] if place else None
        is_after_name = before is not None and class_of(before.word) not in _BEFORE_INITIALS
        return len(text) == 1 and text.isupper() and text not in ("A", "I") and not is_after_name

    def _is_dutch_name(self, place: int) -> bool:
        """Return True for the first word of "Van Dalfsen Logistiek", which is a preposition elsewhere."""
        if place > 0:
            return self._folded[place] == "van" and self._folded[place + 1] not in KNOWN
        last = self._folded[place + 2] if place + 2 < len(self._folded) else ""
        return self._language == DUTCH and self._folded[0] == "van" and last.endswith(TRADES)

    def _is_object(self, place: int) -> bool:
        """Return True after a word that no verb follows: "It runs on Render"."""
        before = self._words[place - 1]
        return before is not None and class_of(before.word) in (WordClass.DETERMINER, WordClass.PREPOSITION)

    def _is_shorthand(self, place: int) -> bool:
        """Return True for an acronym, unless all is in capitals, and for "Guy's" in "Guy's Hospital"."""
        text, word = self._text(place), self._folded[place]
        if is_acronym(text):
            return not is_acronym(self._text(place + 1))
        return text.endswith("'s") and word in GENERIC

    def _text(self, place: int) -> str:
        token = self._words[place] if place < len(self._words) else None
        return "" if token is None else token.text

    def _is_numbered(self, place: int) -> bool:
        ahead = self._folded[place + 1] if place + 1 < len(self._folded) else ""
        return ahead.isdigit() and len(ahead) <= MAX_DIGITS and self._folded[place] not in GIVEN_NAMES

    def _may_continue(self, place: int) -> bool:
        token = self._words[place]
        if token is None or not self._is_capital(place):
            return False
        if self._folded[place] in HEADS:
            return True
        is_article = self._language in _ARTICLES_IN_NAMES.get(self._folded[place], ())
        if is_article and 0 < place < len(self._words) - 1 and self._is_capital(place + 1):
            return True
        before = self._folded[place - 1] if place else ""
        if len(token.text) == 1 and place + 1 < len(self._words) and (before in GIVEN_NAMES or before in TITLES):
            return token.text.isupper() and self._is_capital(place + 1)
        word = token.word
        if word in GENERIC and place + 1 < len(self._words) and self._is_capital(place + 1):
            return False
        # "Verna DANCED."
        is_verb = class_of(word) is WordClass.VERB or word.endswith("ed")
        if is_verb and token.text.isupper() and before in GIVEN_NAMES:
            return False
        return not _is_no_name(word) and self._folded[place] not in self._no_names

    def _inside(self, place: int) -> int:
        """Return the number of words up to the next capitalised one, including it; 0 if there is none."""
        for step in (1, 2):
            if place + step >= len(self._words):
                return 0
            token = self._words[place + step]
            if token is None:
                return 0
            if self._may_continue(place + step):
                return step + 1
            if self._folded[place + step] not in _INSIDE:
                return 0
        return 0

    def _may_be_single(self, place: int) -> bool:
        token = self._words[place]
        if token is None:
            return False
        is_emphasis = token.text.isupper() and token.word in COMMON_WORDS and self._folded[place] not in KNOWN
        if is_emphasis or self._folded[place] in _FOREIGN_WORDS:
            return False
        if self._folded[place] in KNOWN:
            return True
        ahead = self._words[place + 1] if place + 1 < len(self._words) else None
        if token.word.endswith(_ORIGINS) and self._folded[place] not in GIVEN_NAMES and ahead is not None:
            return not (ahead.text.islower() and class_of(ahead.word) in _NOUNS)
        is_adjective = class_of(token.word) is WordClass.ADJECTIVE and (
            token.word in COMMON_WORDS or "-" in token.word or token.word.endswith(_ADJECTIVE_ENDINGS)
        )
        is_used = place > 0 and self._folded[place - 1] in USES
        return len(token.text.removesuffix("'s")) > 1 and (not is_adjective or is_used or self._language != ENGLISH)


def names(
    words: Sequence[Token | None], seen: Collection[str], language: str = ENGLISH, *, lower: bool = False
) -> list[Name]:
    """Return the names in a sentence; the parameters are those of `NameReader`."""
    return NameReader(words, seen, language, lower=lower).names()


def _is_no_name(word: str) -> bool:
    """Return True for small words and adverbs, but not for an unknown word that ends like one: Grammarly."""
    return class_of(word) in _NO_NAME and not (word.endswith("ly") and word.isalpha() and word not in COMMON_WORDS)
