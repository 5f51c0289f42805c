"""Recognise words that stand for people, animals, organisations and events in Spanish, Dutch and German texts.

Other phrases are recognised in English only. `nouns` finds further nouns, by articles and capitals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from souvenir.core.types import ConceptKind, Mentioned
from souvenir.index.analyser import fold
from souvenir.knowledge.recognition.exact import Token
from souvenir.knowledge.recognition.gazetteer import (
    ANIMALS,
    ENGLISH_HEADS,
    FIRST_TRADES,
    GIVEN_NAMES,
    HEADS,
    KNOWN,
    NO_STREETS,
    RELATIVES,
    ROLES,
    SMALL_WORDS,
    is_street,
)
from souvenir.knowledge.recognition.kinds import POSSESSIVES
from souvenir.knowledge.recognition.spelling import key_of

ENGLISH, GERMAN, SPANISH, DUTCH = "en", "de", "es", "nl"

MIN_HEAD_CHARS = 4
"""Shortest head at the end of a compound: Vondelpark, boekenclub."""

_TYPED = (ConceptKind.ORGANISATION, ConceptKind.EVENT)
_AMBIGUOUS_ENDS = frozenset("bank band team hall play".split())
"""Heads that end other compounds too: Datenbank, Armband."""
_NO_ENDS = _AMBIGUOUS_ENDS | ENGLISH_HEADS
OF = "de"
_SPA = "bad"
_ARTICLES = {
    SPANISH: frozenset("el la los las un una unos unas mi mis tu tus su sus nuestro nuestra del al".split()),
    DUTCH: frozenset("de het een mijn zijn haar ons onze jouw hun".split()),
}
"""Articles, alone or with a preposition, and possessives: a noun follows, or its adjective."""
_BEFORE_NOUNS = frozenset(
    "nuevo nueva nuevos nuevas gran primer primera segundo segunda tercer tercera buen buena mal mala mejor peor "
    "último última mismo misma otro otra otros otras próximo próxima único única viejo vieja propio propia".split()
)
"""Spanish adjectives that precede a noun; others follow it. Without one they stand for it: la última."""
_BEFORE_CLITICS = frozenset("no me te se nos os ya".split())
"""Words before a Spanish pronoun that looks like an article: no la llevo."""
_PRETERITES = ("í", "ó")
"""Ends of Spanish verbs, which few nouns have: la metí, lo estudió."""
VAGUE = frozenset(
    "herr herrn frau anfang ende jahrhundert jahrzehnt mal stunde zeit art beispiel ding dinge frage grund idee "
    "problem sache sachen stuck teil weise senor senora dia dias semana mes meses ano anos hora minuto tarde "
    "tardes noche vez veces cosa cosas ejemplo idea manera parte problema tema heer mevrouw begin eind einde dag "
    "dagen maand jaar uur avond middag ochtend tijd keer deel ding dingen manier probleem vraag voorbeeld termin "
    "haus don dona dos tres cuatro cinco seis siete ocho nueve diez duda dudas mitad cita mijne lief".split()
)
"""Nouns of the three languages that say nothing alone, folded, as in the lists of empty nouns of English."""


def typed_words(words: Sequence[Token | None], language: str) -> Iterator[tuple[int, Mentioned]]:
    """Yield the offset and the mention of each such word of a sentence.

    :param words: None for names and marks.
    """
    for place, token in enumerate(words):
        if token is None or fold(token.word) in SMALL_WORDS[language]:
            continue
        before = words[place - 1] if place else None
        kind = _kind(fold(token.word), "" if before is None else before.word)
        if kind is not None:
            form = " ".join(one.text for one in _whole(words, place, kind))
            yield token.start, Mentioned(key_of(form), form, kind)


def nouns(words: Sequence[Token | None], language: str) -> Iterator[list[Token]]:
    """Yield nouns of a sentence: German ones by their capital, others by the article before them.

    A Spanish one comes with the noun that follows after "de" too: licencia, licencia de taxi. Left out are forms of
    address, times and nouns without meaning of their own, and the first word of a German sentence, whose capital says
    nothing.
    """
    for place, token in enumerate(words):
        if token is not None and language == GERMAN and place > 0 and token.text[0].isupper():
            found = place
        elif token is not None and token.word in _ARTICLES.get(language, ()):
            found = _noun_after(words, place, language)
        else:
            continue
        noun = words[found] if found < len(words) else None
        if noun is None or fold(noun.word) in SMALL_WORDS[language] | VAGUE:
            continue
        yield [noun]
        of, other = [*words[found + 1 : found + 3], None, None][:2]
        if language == SPANISH and of is not None and other is not None and of.word == OF and _is_noun(other):
            yield [noun, of, other]


def _is_noun(token: Token) -> bool:
    return fold(token.word) not in SMALL_WORDS[SPANISH] | VAGUE and token.word not in _BEFORE_NOUNS


def _noun_after(words: Sequence[Token | None], place: int, language: str) -> int:
    """Return the place of the noun after an article, also behind an adjective: el nuevo horario, de oude keuken.

    It is the number of words if there is none.
    """
    first, second = [*words[place + 1 : place + 3], None, None][:2]
    if first is None:
        return len(words)
    is_last = second is None or fold(second.word) in SMALL_WORDS[language]
    if language != SPANISH:
        return place + (1 if is_last or not first.word.endswith("e") else 2)
    before = words[place - 1] if place else None
    if first.word.endswith(_PRETERITES) or (before is not None and before.word in _BEFORE_CLITICS):
        return len(words)
    if first.word in _BEFORE_NOUNS:
        return len(words) if is_last else place + 2
    return place + 1


def _kind(word: str, before: str) -> ConceptKind | None:
    owned = before in POSSESSIVES
    if word in RELATIVES:
        return ConceptKind.PERSON
    if word in ROLES and owned:
        return ConceptKind.PERSON
    if word in ANIMALS and owned:
        return ConceptKind.ANIMAL
    head = None if word in ENGLISH_HEADS else HEADS.get(word) or compound_kind(word)
    return head if head in _TYPED else None


def compound_kind(word: str) -> ConceptKind | None:
    """Return the kind of a German or Dutch compound by its end."""
    if word.endswith(NO_STREETS):
        return None
    ends = (word[start:] for start in range(3, len(word) - MIN_HEAD_CHARS + 1))
    return next((HEADS[end] for end in ends if end in HEADS and end not in _NO_ENDS), None)


def _whole(words: Sequence[Token | None], place: int, kind: ConceptKind) -> list[Token]:
    """Return the word, with the noun that follows after "de": club de lectura."""
    end = place + 1
    if kind in _TYPED and place + 2 < len(words):
        of, noun = words[place + 1], words[place + 2]
        if of is not None and noun is not None and of.word == OF and fold(noun.word) not in SMALL_WORDS["es"]:
            end = place + 3
    return [word for word in words[place:end] if word is not None]


def is_address(name: Sequence[str]) -> bool:
    """Return True for a street, also with its number: Lindenstraße 12."""
    *street, last = name
    return is_street(street[-1] if street and last.isdigit() else last)


def goes_on(first: str) -> bool:
    """Return True for a German noun that begins a name: Heizung Kramer, Waldkita Eichhörnchen, Bad Tölz."""
    return first == _SPA or first in HEADS or first in FIRST_TRADES or compound_kind(first) is not None


def kind_abroad(name: Sequence[str], before: Sequence[str], language: str) -> ConceptKind | None:
    """Return the kind of a German or Dutch name by its first word, or by the head before it: basisschool De Linde."""
    if language not in (GERMAN, DUTCH):
        return None
    if len(name) > 1:
        return ConceptKind.PLACE if name[0] == _SPA and language == GERMAN else compound_kind(name[0])
    head = before[0] if before else ""
    found = None if head in ENGLISH_HEADS else HEADS.get(head) or compound_kind(head)
    return found if found in _TYPED and language == "nl" else None


def kind_alone(word: str, language: str) -> ConceptKind | None:
    """Return the kind of a capitalised word by its meaning."""
    if word in RELATIVES or word in ROLES:
        return ConceptKind.PERSON
    if word in ANIMALS:
        return ConceptKind.ANIMAL
    if word in KNOWN or word in GIVEN_NAMES:
        return None
    if HEADS.get(word) is ConceptKind.EVENT or (language != ENGLISH and word in HEADS and word not in ENGLISH_HEADS):
        return HEADS[word]
    return compound_kind(word) if language in (GERMAN, DUTCH) else None
