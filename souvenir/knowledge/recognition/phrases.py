"""Recognise noun phrases of an English sentence, by the words around them.

A phrase is a noun with the preceding nouns and classifying adjectives ("support group", "mental health"); descriptive
adjectives are omitted ("new car" is "car"). Only specific phrases and those that stand for someone or something
particular are kept. A word that may be a verb counts as a noun only where a noun is required.
The rules run from left to right with one word of lookahead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from souvenir.core.types import ConceptKind, Mentioned
from souvenir.index.analyser import fold
from souvenir.knowledge.recognition.exact import Token
from souvenir.knowledge.recognition.gazetteer import (
    ANIMALS,
    COMMON_WORDS,
    COMPOUND_HEADS,
    NO_ORGANISATIONS,
    PHRASE_HEADS,
    RELATIVES,
    ROLES,
    UNNAMED,
    VENUES,
)
from souvenir.knowledge.recognition.kinds import POSSESSIVES
from souvenir.knowledge.recognition.names import Name
from souvenir.knowledge.recognition.specificity import is_specific
from souvenir.knowledge.recognition.spelling import key_of, singular
from souvenir.knowledge.recognition.vocabulary import DETERMINERS, EMPTY, GENERIC, MORE_NOUNS, WEAK, WordClass, class_of

MAX_SLIP_CHARS = 4
"""Unknown words of at most this length are abbreviations or slips."""

MAX_WORDS = 3
"""Maximum length of a phrase."""

WORDS_OF_LONGER = 2
"""Number of words that are kept of more nouns in a row: the last ones, which carry the meaning."""

WORDS_BEFORE = 3
"""Number of words before a phrase that may tell whether it is specific."""

_NOUN_FOLLOWS = (WordClass.DETERMINER, WordClass.PREPOSITION, WordClass.ADJECTIVE, WordClass.RELATIONAL)
_ALONE = (
    WordClass.NOUN,
    WordClass.RELATIONAL,
    WordClass.NOUN_OR_VERB,
    WordClass.NOUNS_OR_VERBS,
    WordClass.GERUND,
    WordClass.ACTIVITY,
)
"""A text of a few of these and nothing else is a phrase, such as the key of one."""
_DESCRIPTIONS = (WordClass.DETERMINER, WordClass.ADJECTIVE, WordClass.RELATIONAL)
_NOUNS = (WordClass.NOUN, WordClass.NOUN_OR_VERB, WordClass.NOUNS_OR_VERBS)
_FORMS = (WordClass.NOUNS_OR_VERBS, WordClass.GERUND)
"""Word classes that are verbs after an organisation: "the choir rehearses", "the shelter volunteering"."""
_NO_MODIFIERS = RELATIVES - frozenset("family baby kid kids child children partner mother".split())
"""A noun after one of these is no part of the phrase: "mum turns 60"."""
_GROUPS = frozenset("kid kids child children baby family parent parents siblings twins".split())
"""Relatives who are particular ones only after a definite determiner: "our kids", but not "kids in need"."""
_DEFINITE = DETERMINERS - {"a", "any", "no"} | {"and"}
_OWNERS = frozenset("my our your his her their".split())
_ORGANISATIONS = UNNAMED | {head for head, kind in PHRASE_HEADS.items() if kind is ConceptKind.ORGANISATION}
_THE_ONE = _OWNERS | frozenset(("the", "this", "that"))
_SHOPS = frozenset(("shop", "store", "biz"))
_WHERE = frozenset("local nearby former previous old current".split())
"""Adjectives before a noun for a particular organisation: a local bakery."""
_INDEFINITE = frozenset(("a", "an"))
_BELONG = frozenset("joined join joining adopted left quit founded started joins".split())
"""Verbs whose object is one particular organisation: joined a gym."""
_WIDE_PLACES = frozenset(("city", "town", "village", "hall"))
"""Places of which "the" says little: the city."""
_BEFORE_ONE = frozenset(("at", "from"))
_INSIDE_OF = frozenset("at from in to".split())
_CLASSES = (ANIMALS | ROLES | frozenset(PHRASE_HEADS)) - COMPOUND_HEADS - VENUES
"""Nouns for what a person has to do with: a tutor, the gym, interviews."""
_RECURRING = frozenset(("birthday", "anniversary"))
_PARTICIPLES = frozenset(
    "using featuring including being having going rolling making getting doing working looking trying feeling coming "
    "taking giving waiting sitting standing running living starting thinking talking saying".split()
)
"""Words in -ing that are verbs after a noun."""
_VERB_FOLLOWS = (WordClass.SUBJECT, WordClass.MODAL, WordClass.TO)
_OBJECT_STARTS = (WordClass.DETERMINER, WordClass.SUBJECT)
_OBJECTS_OF_GERUNDS = (*_OBJECT_STARTS, WordClass.TO, WordClass.ADJECTIVE, WordClass.NOUN)
_VERB_PARTICLES = frozenset(("up", "out", "off", "away"))
_AFTER_NOUNS = frozenset("of for in with at from and or as but".split())


def _takes_object(ahead: Token | None) -> bool:
    """Return True if the next word makes this ambiguous word a verb."""
    return ahead is not None and (
        ahead.word in _VERB_PARTICLES or class_of(ahead.word) in (*_OBJECT_STARTS, WordClass.ADJECTIVE)
    )


def _is_for(token: Token, ahead: Token | None) -> bool:
    """Return True for a possessive that says for whom an organisation is: a veteran's hospital, a farmers' union."""
    if ahead is None or not token.text.islower() or PHRASE_HEADS.get(ahead.word) is not ConceptKind.ORGANISATION:
        return False
    word = token.word.removesuffix("'")
    return {word, singular(word)}.isdisjoint(ROLES | EMPTY | RELATIVES)


def _is_compound(modifier: str, head: str) -> bool:
    """Return True if a word that may be a verb is the head of a compound: "the museum shop sold forty"."""
    return PHRASE_HEADS.get(head) is ConceptKind.ORGANISATION or f"{modifier} {head}" in PHRASE_HEADS


class _PhraseReader:
    """Analyses one sentence; `phrases` are the runs of tokens that form a phrase."""

    def __init__(self, words: Sequence[Token | None], *, alone: bool) -> None:
        self.words = words
        self.phrases: list[list[Token]] = []
        self._run: list[tuple[Token, WordClass]] = []
        self._before: WordClass | None = None
        self._alone = (
            alone and len(words) <= MAX_WORDS and all(word and class_of(word.word) in _ALONE for word in words)
        )

    def read(self) -> list[list[Token]]:
        for place, token in enumerate(self.words):
            if token is None:
                self._close()
                self._before = None
                continue
            self._take(token, class_of(token.word), self._ahead(place))
        self._close()
        return self.phrases

    def _ahead(self, place: int) -> Token | None:
        return self.words[place + 1] if place + 1 < len(self.words) else None

    def _take(self, token: Token, of: WordClass, ahead: Token | None) -> None:
        if self._run and fold(self._run[-1][0].word) in _NO_MODIFIERS:
            self._close()
        if of is WordClass.RELATIONAL:
            self._extend(token, WordClass.NOUN if token.word in _ORGANISATIONS else of)
        elif self._is_noun(token, of, ahead):
            self._extend(token, WordClass.NOUN)
        else:
            self._close()
            self._before = WordClass.VERB if of in _ALONE else of
            return
        if token.text.endswith(("'s", "'")) and not _is_for(token, ahead):
            self._close()
            self._before = WordClass.DETERMINER

    def _is_noun(self, token: Token, of: WordClass, ahead: Token | None) -> bool:
        if self._run and of in _FORMS and PHRASE_HEADS.get(self._run[-1][0].word) is ConceptKind.ORGANISATION:
            return False
        match of:
            case WordClass.ADJECTIVE:
                return bool(self._run) and PHRASE_HEADS.get(token.word) in (ConceptKind.ORGANISATION, ConceptKind.EVENT)
            case WordClass.NOUN:
                return not self._is_verb_here(ahead)
            case WordClass.NOUN_OR_VERB:
                return self._alone or self._is_noun_here(token, ahead)
            case WordClass.NOUNS_OR_VERBS:
                return self._alone or self._are_nouns_here(ahead)
            case WordClass.GERUND:
                return self._alone or self._gerund_is_a_noun(token, ahead)
            case WordClass.ACTIVITY:
                return self._alone or self._activity_is_a_noun(ahead)
        return False

    def _extend(self, token: Token, of: WordClass) -> None:
        self._run.append((token, of))
        self._before = of

    def _is_verb_here(self, ahead: Token | None) -> bool:
        """Return True for an unlisted verb: an unknown word after "I" or "will", or after "to" with an object."""
        if self._before in (WordClass.SUBJECT, WordClass.MODAL):
            return True
        return self._before is WordClass.TO and ahead is not None and class_of(ahead.word) in _OBJECT_STARTS

    def _is_noun_here(self, token: Token, ahead: Token | None) -> bool:
        if self._run and _is_compound(self._run[-1][0].word, token.word):
            return True
        if _takes_object(ahead) and not self._has_subject(ahead):
            return False
        if not self._run and token.word in MORE_NOUNS and self._before not in _VERB_FOLLOWS:
            return (ahead is not None and class_of(ahead.word) in _NOUNS) or self._before in _NOUN_FOLLOWS
        if self._run:
            last, of = self._run[-1]
            return of is WordClass.RELATIONAL or singular(last.word) == last.word
        return self._before in _NOUN_FOLLOWS

    def _has_subject(self, ahead: Token | None) -> bool:
        """Return True if a past form follows a noun in the singular: "the school board voted"."""
        last = self._run[-1][0].word if self._run else ""
        return last != "" and singular(last) == last and ahead is not None and ahead.word.endswith("ed")

    def _are_nouns_here(self, ahead: Token | None) -> bool:
        if self._run:
            return (
                ahead is None or ahead.word in _AFTER_NOUNS or class_of(ahead.word) in (WordClass.BE, WordClass.MODAL)
            )
        return not _takes_object(ahead) and self._before in (*_NOUN_FOLLOWS, WordClass.VERB, None)

    def _gerund_is_a_noun(self, token: Token, ahead: Token | None) -> bool:
        takes_object = ahead is not None and class_of(ahead.word) in (*_OBJECT_STARTS, *_NOUN_FOLLOWS, WordClass.TO)
        if (
            self._run
            and not takes_object
            and token.word not in _PARTICIPLES
            and (ahead is None or ahead.word in _AFTER_NOUNS)
        ):
            last = self._run[-1][0].word
            return singular(last) == last
        return not takes_object and self._before in (WordClass.DETERMINER, WordClass.RELATIONAL)

    def _activity_is_a_noun(self, ahead: Token | None) -> bool:
        if self._before in (WordClass.DETERMINER, WordClass.RELATIONAL) or self._run:
            return True
        if ahead is not None and class_of(ahead.word) in _OBJECTS_OF_GERUNDS:
            return False
        return self._before not in (WordClass.BE, WordClass.SUBJECT, WordClass.MODAL)

    def _close(self) -> None:
        run, self._run = self._run, []
        while run and run[-1][1] is WordClass.RELATIONAL:
            run.pop()
        if run:
            kept = len(run) if len(run) <= MAX_WORDS else WORDS_OF_LONGER
            self.phrases.append([token for token, _ in run][-kept:])


def noun_runs(words: Sequence[Token | None]) -> list[list[Token]]:
    """Return the nouns of a sentence with the nouns and classifying adjectives before them, specific or not."""
    return _PhraseReader(words, alone=False).read()


def phrases(
    words: Sequence[Token | None], *, alone: bool, named: Sequence[Name] = (), repeated: Collection[str] = ()
) -> Iterator[tuple[int, Mentioned]]:
    """Yield the offset and the mention of each phrase.

    :param words: A sentence; None where a phrase cannot continue (a mark, a name, a number).
    :param alone: True if the text consists of this sentence only. :param named: Its names.
    :param repeated: Lower-case words that the text contains more than once.
    """
    begins, ends = {name.first for name in named}, {name.end for name in named if name.is_defined}
    for run in _PhraseReader(words, alone=alone).read():
        place = next(place for place, word in enumerate(words) if word is run[0])
        end = place + len(run)
        before = ["" if word is None else word.word for word in words[max(0, place - WORDS_BEFORE) : place]][::-1]
        kind = _kind_of([fold(token.word) for token in run], before)
        if kind in (ConceptKind.PERSON, ConceptKind.ANIMAL) and (end in begins or _defines(words, place, ends)):
            # It says who the name is: "my sister Ines", "Ines is my sister".
            continue
        if kind is None:
            ahead = words[end] if end < len(words) else None
            is_whole_text = alone and len(run) == len(words)
            texts = [token.word for token in run]
            if not is_whole_text and not is_specific(texts, before, ahead.word if ahead is not None else "", repeated):
                continue
            kind = ConceptKind.PHRASE
        found = _mention(run, kind)
        if found:
            yield run[0].start, found


def _defines(words: Sequence[Token | None], place: int, ends: Collection[int]) -> bool:
    """Return True if the phrase at a place is in apposition to a name that ends there, or joined to it by a copula."""
    before = place - 1
    while before >= 0 and (word := words[before]) is not None and class_of(word.word) in _DESCRIPTIONS:
        before -= 1
    if before not in ends or before == place - 1:
        return False
    joint = words[before]
    return joint is None or class_of(joint.word) is WordClass.BE


def _kind_of(words: Sequence[str], context: Sequence[str]) -> ConceptKind | None:
    """Return the kind of a phrase that stands for someone or something particular; None for others.

    :param context: The words before it, nearest first.
    """
    last, before = words[-1], context[0] if context else ""
    if last in RELATIVES and (last not in _GROUPS or before in _DEFINITE):
        return ConceptKind.PERSON
    owner = next((word for word in context if class_of(word) is not WordClass.ADJECTIVE), "")
    holder = next((word for word in context if word != "own" and class_of(word) is not WordClass.ADJECTIVE), "")
    if last in ROLES and owner in POSSESSIVES:
        return ConceptKind.PERSON
    if last in ANIMALS and before in POSSESSIVES:
        return ConceptKind.ANIMAL
    if before in _DEFINITE and not UNNAMED.isdisjoint((last, " ".join(words[-2:]))):
        return ConceptKind.ORGANISATION
    pair = " ".join(words[-2:])
    if pair in NO_ORGANISATIONS:
        return None
    head = PHRASE_HEADS.get(pair) or PHRASE_HEADS.get(last)
    if (
        head is ConceptKind.ORGANISATION
        and last not in WEAK
        and before in _INDEFINITE
        and _is_one_of_them(last, context)
    ):
        return head
    if head is not None and (len(words) > 1 or _is_particular(head, last, holder)):
        return head
    is_one = last in _CLASSES or PHRASE_HEADS.get(singular(last)) is ConceptKind.EVENT
    if head in (ConceptKind.ORGANISATION, ConceptKind.EVENT) and before in _WHERE and last not in WEAK:
        return head
    if is_one and last not in _RECURRING and not (before and class_of(before) is WordClass.ADJECTIVE):
        # A general noun for an organisation, such as "the gym", names none.
        return ConceptKind.PHRASE
    return None


def _is_one_of_them(noun: str, context: Sequence[str]) -> bool:
    """Return True for "joined a gym" and "adopted from a shelter", but not for "looking for a gym"."""
    is_from = len(context) > 1 and context[1] in _BEFORE_ONE and noun not in COMPOUND_HEADS
    return is_from or bool(_BELONG & {*context[1:3]})


def _is_particular(head: ConceptKind, noun: str, before: str) -> bool:
    """Return True if the word before a single noun says that a particular one is meant: the choir, from church."""
    if head is ConceptKind.ORGANISATION:
        if noun in COMPOUND_HEADS:
            return noun in _SHOPS and before in _OWNERS
        return before in _OWNERS or (noun not in WEAK and (before in _THE_ONE or before in _INSIDE_OF or before == ""))
    if head is ConceptKind.PLACE:
        return before in _OWNERS or (before in _THE_ONE and noun not in _WIDE_PLACES)
    return before in POSSESSIVES


def _mention(run: list[Token], kind: ConceptKind) -> Mentioned | None:
    words = [token.word for token in run]
    last = singular(words[-1])
    if kind is ConceptKind.PHRASE:
        if words[-1] in EMPTY or (len(words) == 1 and words[0] in GENERIC) or any(map(_is_identifier, words)):
            return None
        if (last in WEAK or words[-1] in WEAK) and all(_is_light(word) for word in words[:-1]):
            return None
    key = key_of(" ".join([*words[:-1], last]))
    if max(map(len, key.split()), default=0) < 2 or (key in GENERIC and kind is ConceptKind.PHRASE):
        return None
    form = " ".join(token.text for token in run)
    return Mentioned(key, form.removesuffix("'s").removesuffix("'"), kind)


def _is_identifier(word: str) -> bool:
    """Return True for words that no dictionary has, such as settings and slips: allkeys-lru, tmrw."""
    parts = word.split("-")
    if len(parts) > 1:
        return singular(parts[-1]) not in COMMON_WORDS and parts[-1] not in COMMON_WORDS
    return len(word) <= MAX_SLIP_CHARS and word not in COMMON_WORDS and singular(word) not in COMMON_WORDS


def _is_light(word: str) -> bool:
    """Return True for a word that makes no subject of an abstract noun: pragmatic approach."""
    return word in WEAK or word in GENERIC or class_of(word) is WordClass.RELATIONAL
