"""Numbers with a check digit or a range: cards, bank accounts, social security numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from stdnum import numdb
from stdnum.iso7064 import mod_97_10
from stdnum.luhn import checksum as luhn_sum

from souvenir.privacy.checks.surroundings import ContextWords, Found, Says, is_part_of_longer, is_word

CARD_DIGITS = range(13, 20)
CARD_GROUP_DIGITS = 4
"""In a number that is written in groups, all groups but the last have at least this many digits."""
MAX_CARD_GROUPS = 5
SHORT_CARD_DIGITS = 12
"""Maestro has cards of twelve digits. One in ten numbers passes Luhn, so these also need a context word."""

_IsCard = Callable[[str, int, int], bool]

_CARD_WORDS = ContextWords(
    "card cards creditcard credit debit cc visa mastercard maestro amex karte carte tarjeta", "order"
)
_DIGITS = re.compile(r"[0-9]+")
_CARD_LIKE = re.compile(r"[0-9]{12}|[0-9]{4}[^0-9][0-9]{4}")

# Issuers' prefixes, and the lengths of their numbers (ISO/IEC 7812 and the issuers' own pages).
_ISSUERS = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})"  # Visa
    r"|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"  # Mastercard
    r"|3[47][0-9]{13}"  # American Express
    r"|3(?:0[0-5]|[689][0-9])[0-9]{11}"  # Diners Club
    r"|(?:1800|2131)[0-9]{11}|35(?:2[89]|[3-8][0-9])[0-9]{12,15}"  # JCB
    r"|(?:6011|64[4-9][0-9]|65[0-9]{2}|62[0-9]{2}|60[0-9]{2}|81[0-9]{2}|82[0-9]{2}|220[0-4])[0-9]{12,15}"
    # Discover, UnionPay, RuPay, Mir
    r"|(?:5[06-9]|6[0-9])[0-9]{10,17}"  # Maestro
)


def luhn(text: str, start: int, end: int) -> Sequence[Found]:
    """Return card numbers: Luhn's sum (ISO/IEC 7812-1, annex B), and an issuer's prefix or a context word.

    Without any, return numbers that fail the sum but look like cards: a mistyped card is as personal as a right one.
    """
    if not _CARD_LIKE.search(text, start, end):
        return ()
    groups = [match.span() for match in _DIGITS.finditer(text, start, end)]
    return _cards(text, groups, _is_card) or _cards(text, groups, _is_mistyped_card)


def _cards(text: str, groups: Sequence[Found], is_card: _IsCard) -> Sequence[Found]:
    found: list[Found] = []
    first = 0
    while first < len(groups):
        last = _card_from(text, groups, first, is_card)
        if last is None:
            first += 1
            continue
        found.append((groups[first][0], groups[last][1]))
        first = last + 1
    return found


def _card_from(text: str, groups: Sequence[Found], first: int, is_card: _IsCard) -> int | None:
    """Return the last of the groups that form a card number with the first one."""
    if groups[first][1] - groups[first][0] < CARD_GROUP_DIGITS:
        return None
    sizes: list[int] = []
    best = None
    for last in range(first, min(first + MAX_CARD_GROUPS, len(groups))):
        sizes.append(groups[last][1] - groups[last][0])
        if sum(sizes) > CARD_DIGITS[-1]:
            break
        if _looks_grouped(sizes) and is_card(text, groups[first][0], groups[last][1]):
            best = last
    return best


def _looks_grouped(sizes: Sequence[int]) -> bool:
    """Return True for a single group, groups of four with a shorter rest, or an American Express or Diners format."""
    total = sum(sizes)
    if len(sizes) == 1:
        return total == SHORT_CARD_DIGITS or total in CARD_DIGITS
    if sizes in ([4, 6, 5], [4, 6, 4]):
        return True
    return total in CARD_DIGITS and set(sizes[:-1]) == {CARD_GROUP_DIGITS} and sizes[-1] <= CARD_GROUP_DIGITS


def _is_card(text: str, start: int, end: int) -> bool:
    digits = "".join(_DIGITS.findall(text, start, end))
    issued = _ISSUERS.fullmatch(digits) is not None
    if luhn_sum(digits) or is_part_of_longer(text, start, end, joints="-"):
        return False
    if issued and len(digits) > SHORT_CARD_DIGITS:
        return True
    return (issued or len(digits) > SHORT_CARD_DIGITS) and _CARD_WORDS.before(text, start) is Says.YES


def _is_mistyped_card(text: str, start: int, end: int) -> bool:
    """Two of these must agree: an issuer's prefix, groups as on a card, a context word."""
    digits = "".join(_DIGITS.findall(text, start, end))
    says = _CARD_WORDS.before(text, start)
    if says is Says.NO or len(digits) <= SHORT_CARD_DIGITS or is_part_of_longer(text, start, end, joints="-"):
        return False
    signs = (_ISSUERS.fullmatch(digits) is not None, len(digits) < end - start, says is Says.YES)
    return signs.count(True) >= 2


_BBAN_PART = re.compile(r"([0-9]+)!")
_IBAN_SEPARATORS = re.compile(r"[ \-\u00a0]")
_IBAN_WORDS = ContextWords("iban", "swift bic")
_MISTYPED = re.compile(r"(?i)[a-z]{2}[0-9]{2}(?:[ \u00a0-]?[a-z]{0,4}[0-9][a-z0-9]*)+")
_MISTYPED_CHARS = range(15, 35)


def iban(text: str, start: int, end: int) -> Sequence[Found]:
    """Return bank accounts by their country's length and the remainder 1 of 97 (ISO 13616, ISO/IEC 7064).

    A mistyped account number is as personal as a correct one: after the word IBAN, the format is enough.
    """
    if start and is_word(text[start - 1]):
        return ()
    length = _iban_length(text[start : start + 2].upper())
    stop = _position_after(text, start, end, length) if length else None
    if (
        stop is not None
        and not is_part_of_longer(text, start, stop, joints="")
        and _iban_remainder(text[start:stop]) == 1
    ):
        return [(start, stop)]
    if _IBAN_WORDS.before(text, start) is not Says.YES:
        return ()
    shape = _MISTYPED.match(text, start, end)
    if shape is None or len(_IBAN_SEPARATORS.sub("", shape[0])) not in _MISTYPED_CHARS:
        return ()
    return () if is_part_of_longer(text, start, shape.end(), joints="") else [(start, shape.end())]


@cache
def _iban_length(country: str) -> int:
    """Return the length of an IBAN of a country, 0 if it has none (the SWIFT registry of ISO 13616)."""
    [(_, about), *_] = numdb.get("iban").info(country)
    return sum(map(int, _BBAN_PART.findall(about["bban"])), 4) if about else 0


def _iban_remainder(account: str) -> int:
    letters = _IBAN_SEPARATORS.sub("", account)
    return mod_97_10.checksum(letters[4:] + letters[:4])


def _position_after(text: str, start: int, end: int, length: int) -> int | None:
    """Return the end of the first `length` letters and digits; separators do not count."""
    for position in range(start, end):
        length -= text[position].isalnum()
        if length == 0:
            return position + 1
    return None


_SSN_WORDS = ContextWords("ssn ssns social security", "order invoice part model version serial phone call")


def ssn(text: str, start: int, end: int) -> Sequence[Found]:
    """Return United States social security numbers in assigned ranges; also masked ones with the last four digits.

    Any format but three hyphenated parts requires a context word.
    """
    if is_part_of_longer(text, start, end):
        return ()
    digits = "".join(_DIGITS.findall(text, start, end))
    is_hyphened = text[start:end].count("-") == 2
    if len(digits) == 4:
        return [(start, end)] if is_hyphened else ()
    says = _SSN_WORDS.before(text, start)
    if not _is_given_out(digits) or says is Says.NO or (says is Says.NOTHING and not is_hyphened):
        return ()
    return [(start, end)]


def _is_given_out(digits: str) -> bool:
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"
