"""Recognise noun phrases of an English sentence, by the words around them.

A phrase is a noun with the preceding nouns and classifying adjectives ("support group", "mental health"); descriptive
adjectives are omitted ("new car" is "car"). A word that may be a verb counts as a noun only where a noun is required.
The rules run from left to right with one word of lookahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from souvenir.core.types import ConceptKind, Mentioned
from souvenir.knowledge.recognition.exact import Token
from souvenir.knowledge.recognition.spelling import key_of, singular
from souvenir.knowledge.recognition.vocabulary import EMPTY, GENERIC, WordClass, class_of

MAX_WORDS = 3
"""Maximum length of a phrase; of more nouns in a row the last ones are kept, which carry the meaning."""

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
_BE = frozenset("is are was were isn't aren't wasn't weren't has helps makes can will".split())
_OBJECT_STARTS = (WordClass.DETERMINER, WordClass.SUBJECT)
_OBJECTS_OF_GERUNDS = (*_OBJECT_STARTS, WordClass.TO, WordClass.ADJECTIVE, WordClass.NOUN)
_PARTICLES = frozenset("up out off over down away through into onto about back together".split())
_VERB_PARTICLES = frozenset(("up", "out", "off", "away"))
_AFTER_NOUNS = frozenset("of for in with at from and or as but".split())
_PLURALS = frozenset(("people", "children", "men", "women", "folks"))


def _takes_object(ahead: Token | None) -> bool:
    """Return True if the next word makes this ambiguous word a verb."""
    return ahead is not None and (
        ahead.word in _VERB_PARTICLES or class_of(ahead.word) in (*_OBJECT_STARTS, WordClass.ADJECTIVE)
    )


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
        if of is WordClass.RELATIONAL:
            self._extend(token, of)
        elif self._is_noun(of, ahead):
            self._extend(token, WordClass.NOUN)
        else:
            self._close()
            self._before = WordClass.VERB if of in _ALONE else of
            return
        if token.text.endswith(("'s", "'")):
            self._close()
            self._before = WordClass.DETERMINER

    def _is_noun(self, of: WordClass, ahead: Token | None) -> bool:
        match of:
            case WordClass.NOUN:
                return not self._is_verb_here(ahead)
            case WordClass.NOUN_OR_VERB:
                return self._alone or self._is_noun_here(ahead)
            case WordClass.NOUNS_OR_VERBS:
                return self._alone or self._are_nouns_here(ahead)
            case WordClass.GERUND:
                return self._alone or self._gerund_is_a_noun(ahead)
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

    def _is_noun_here(self, ahead: Token | None) -> bool:
        if _takes_object(ahead):
            return False
        if self._run:
            last, of = self._run[-1]
            return of is WordClass.RELATIONAL or (singular(last.word) == last.word and last.word not in _PLURALS)
        return self._before in _NOUN_FOLLOWS or (ahead is not None and ahead.word in _BE and self._before is None)

    def _are_nouns_here(self, ahead: Token | None) -> bool:
        if self._run:
            return (
                ahead is None or ahead.word in _AFTER_NOUNS or class_of(ahead.word) in (WordClass.BE, WordClass.MODAL)
            )
        return not _takes_object(ahead) and self._before in (*_NOUN_FOLLOWS, WordClass.VERB, None)

    def _gerund_is_a_noun(self, ahead: Token | None) -> bool:
        takes_object = ahead is not None and class_of(ahead.word) in (*_OBJECT_STARTS, *_NOUN_FOLLOWS, WordClass.TO)
        return not takes_object and self._before in (WordClass.DETERMINER, WordClass.RELATIONAL)

    def _activity_is_a_noun(self, ahead: Token | None) -> bool:
        if self._before in (WordClass.DETERMINER, WordClass.RELATIONAL) or self._run:
            return True
        if ahead is not None and (ahead.word in _PARTICLES or class_of(ahead.word) in _OBJECTS_OF_GERUNDS):
            return False
        return self._before not in (WordClass.BE, WordClass.SUBJECT, WordClass.MODAL)

    def _close(self) -> None:
        run, self._run = self._run, []
        while run and run[-1][1] is WordClass.RELATIONAL:
            run.pop()
        if run:
            self.phrases.append([token for token, _ in run][-MAX_WORDS:])


def phrases(words: Sequence[Token | None], *, alone: bool) -> Iterator[tuple[int, Mentioned]]:
    """Yield the offset and the mention of each phrase.

    :param words: A sentence; None where a phrase cannot continue (a mark, a name, a number).
    :param alone: True if the text consists of this sentence only.
    """
    for run in _PhraseReader(words, alone=alone).read():
        found = _mention(run)
        if found:
            yield run[0].start, found


def _mention(run: list[Token]) -> Mentioned | None:
    words = [token.word for token in run]
    if words[-1] in EMPTY or (len(words) == 1 and words[0] in GENERIC):
        return None
    key = key_of(" ".join([*words[:-1], singular(words[-1])]))
    if len(key) < 2 or key in GENERIC:
        return None
    form = " ".join(token.text for token in run)
    return Mentioned(key, form.removesuffix("'s").removesuffix("'"), ConceptKind.PHRASE)
