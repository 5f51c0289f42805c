"""Telephone numbers in a run of digits and separators.

With a plus (or 00, 011) and a country code, a length that is possible there is enough. Otherwise the number must have
the grouping of telephone numbers and, in most cases, match a known plan, or an adjacent word must say that it is a
telephone number. Dates, years, prices, decimals, and numbers that a preceding word calls an order, an account or a
version are excluded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from souvenir.privacy.checks.numbering import MAX_DIGITS, NumberingPlans
from souvenir.privacy.checks.surroundings import ContextWords, Found, Says, is_part_of_longer

MIN_DIGITS = 7
"""Minimum length of a local number."""
MIN_BARE_DIGITS = 8
"""Minimum length of an ungrouped number; shorter ones are mostly something else, even after "call"."""
MIN_FORMATTED_DIGITS = 9
"""Minimum length of a number that is recognised by its format only."""
MAX_GROUPS = 7
MAX_GROUP_DIGITS = 8
SINGLE_DIGITS = 2
"""Number of groups that can be this short: both in +33 (0)1 42 68 53 00."""
LONG_RUN_CHARS = 40
"""Longer than a number with all possible separators."""
USUAL_GROUP_DIGITS = range(2, 6)
OUT_OF_THE_COUNTRY = ("00", "011")

_WORDS = ContextWords(
    "phone phones telephone tel cell cellphone mobile call calls called calling dial ring fax sms text whatsapp signal "
    "landline hotline helpline voicemail pager office desk home work direct reach contact answering message messages "
    "telefon telefonnummer handy mobil mobilnummer anruf anrufen ruf rufnummer festnetz durchwahl téléphone portable "
    "appeler appelez joindre teléfono telefono móvil celular llamar llama cellulare chiamare chiama telefone telemóvel "
    "ligar telefoon mobiel bellen puhelin telefonní mobilní тел телефон моб",
    "order orders invoice receipt ref reference id ids ticket case account acct routing tracking serial version build "
    "isbn issn doi policy passport licence license card iban zip postcode postal box part sku model ssn social tax tin "
    "ein vat patient member commit page pages timestamp unix epoch latitude longitude price total amount usd eur gbp "
    "ip mac port uuid hash bestellung bestellnummer rechnung konto kundennummer commande facture pedido factura # ",
    units="eur euro euros usd dollars gbp pounds chf jpy cny inr pln sek nok dkk kr bytes ms km kg people users",
    named="number numbers nummer numéro número",
    unspaced="电话 電話 手机 手機 携帯 致电 전화 連絡先",
)

_GROUP = re.compile(r"(?i)([0-9]+)(?: ?(?:x|ext\.?|extension) ?[0-9]{1,6})?")
_DATE = re.compile(
    r"(?:19|20)[0-9]{2}([-./ ])(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12][0-9]|3[01])(?![0-9])"
    r"|(?<![0-9])(?:0?[1-9]|[12][0-9]|3[01])([-./])(?:0?[1-9]|[12][0-9]|3[01])\2(?:19|20)[0-9]{2}(?![0-9])"
    r"|(?<![0-9])(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?![0-9]{1,5}(?![0-9]))"
)
_RECOGNISABLE = re.compile(r"\+|(?<![0-9])0|(?<![0-9])[0-9]{3}[^0-9]+[0-9]{3}[^0-9]+[0-9]{4}(?![0-9])")
"""Features of a number that is recognised without a context word, unless it is the whole run."""
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_MONEY = frozenset("$€£¥₹")


class _Group(NamedTuple):
    """Consecutive digits; `end` is the end of the extension, if there is one."""

    digits: str
    start: int
    end: int

    @property
    def has_extension(self) -> bool:
        return self.end - self.start > len(self.digits)


class PhoneCheck:
    """Finds the telephone numbers in a run of digits and separators.

    The work for a run is bounded by its groups of digits; most runs are rejected by the sizes of the groups.
    """

    def __init__(self, plans: NumberingPlans) -> None:
        self._plans = plans

    def __call__(self, text: str, start: int, end: int) -> Sequence[Found]:
        dates = [match.span() for match in _DATE.finditer(text, start, end)]
        if dates and end - start - sum(to - at for at, to in dates) < MIN_DIGITS:
            return ()
        if end - start > LONG_RUN_CHARS and not self._can_hold_one(text, start, end):
            return ()
        groups = [_Group(match[1], match.start(), match.end()) for match in _GROUP.finditer(text, start, end)]
        found: list[Found] = []
        for run in _between_dates(groups, dates) if dates else [groups]:
            if sum(len(group.digits) for group in run) >= MIN_DIGITS:
                found += self._in_run(text, run)
        return found

    @staticmethod
    def _can_hold_one(text: str, start: int, end: int) -> bool:
        """Check a run that is too long to be a single number. Most such runs are tables of small numbers."""
        return Says.YES in _says(text, start, end) or _RECOGNISABLE.search(text, max(0, start - 1), end) is not None

    def _in_run(self, text: str, run: Sequence[_Group]) -> Iterator[Found]:
        before, behind = _says(text, run[0].start, run[-1].end)
        first = 0
        while first < len(run):
            size = self._size_of_number(text, run, first, before, behind)
            if size:
                number = run[first : first + size]
                yield _opening(text, number), number[-1].end
            first += size or 1

    def _size_of_number(self, text: str, run: Sequence[_Group], first: int, before: Says, behind: Says) -> int:
        """Return how many groups form a number: the longest recognisable one, else the longest after a context word."""
        left = len(run) - first
        for size in _recognisable_sizes(text, run, first):
            number, says = run[first : first + size], behind if size == left else before
            if self._is_recognisable(text, number, says) and _is_separate(text, number, says):
                return size
        if before is Says.YES or (behind is Says.YES and left <= MAX_GROUPS):
            for size in _sizes(run, first):
                number, says = run[first : first + size], behind if size == left else before
                if says is Says.YES and _fits_the_word(number) and _is_separate(text, number, says):
                    return size
        return 0

    def _is_recognisable(self, text: str, number: Sequence[_Group], says: Says) -> bool:
        """Return True if the format excludes almost everything but a telephone number."""
        digits = "".join([group.digits for group in number])
        if _has_plus(text, number[0]):
            return self._plans.is_international(digits)
        if says is Says.NO or len(number) == 1 or len(digits) < MIN_FORMATTED_DIGITS:
            return False
        for prefix in OUT_OF_THE_COUNTRY:
            if digits.startswith(prefix) and digits[len(prefix)] != "0":
                return self._plans.is_international(digits[len(prefix) :])
        if digits[0] == "0":
            return 2 <= len(number[0].digits) <= 6 and self._plans.is_national(digits)
        if _is_north_american(number):
            # With hyphens any digits count: invented numbers, such as 555-123-4567, match no plan.
            if text[number[-1].start - 1] in "-.":
                return True
            number = number[-3:]
        return self._plans.is_grouped_as_usual([group.digits for group in number])


def _says(text: str, start: int, end: int) -> tuple[Says, Says]:
    """Return what adjacent words say about the numbers in a run, and about the last of them."""
    before = _WORDS.before(text, start)
    behind = _WORDS.after(text, end + (text[end : end + 1] in ("-", "/")))
    return before, before if behind is Says.NOTHING else behind


def _between_dates(groups: Sequence[_Group], dates: Sequence[Found]) -> Iterator[Sequence[_Group]]:
    """Yield runs of the groups that belong to no date."""
    run: list[_Group] = []
    for group in groups:
        if any(group.start < end and start < group.end for start, end in dates):
            if run:
                yield run
            run = []
        else:
            run.append(group)
    if run:
        yield run


def _recognisable_sizes(text: str, run: Sequence[_Group], first: int) -> Sequence[int]:
    """Return the possible sizes of a recognisable number; a fast check, because few groups begin one."""
    if run[first].digits[0] == "0" or _has_plus(text, run[first]):
        return _sizes(run, first)
    for size in (3, 4):
        if _is_north_american(run[first : first + size]):
            return (size,)
    if first == 0 and 3 <= len(run) <= MAX_GROUPS and all(len(group.digits) in USUAL_GROUP_DIGITS for group in run):
        return (len(run),)
    return ()


def _has_plus(text: str, group: _Group) -> bool:
    return text[group.start - 1 : group.start] == "+"


def _is_north_american(number: Sequence[_Group]) -> bool:
    """Return True for the format 555-123-4567 or 1-555-123-4567."""
    if len(number) == 4 and number[0].digits != "1":
        return False
    return len(number) in (3, 4) and [len(group.digits) for group in number[-3:]] == [3, 3, 4]


def _sizes(run: Sequence[_Group], first: int) -> list[int]:
    """Return the possible numbers of groups for a number that begins with the first one, most first."""
    sizes: list[int] = []
    digits = 0
    for size, group in enumerate(run[first : first + MAX_GROUPS], 1):
        digits += len(group.digits)
        if digits > MAX_DIGITS + len(OUT_OF_THE_COUNTRY[-1]):
            break
        if digits >= max(MIN_DIGITS, 2 * size - SINGLE_DIGITS):
            sizes.append(size)
        if group.has_extension:
            break
    return sizes[::-1]


def _fits_the_word(number: Sequence[_Group]) -> bool:
    """Return True if the groups can be a telephone number after a word that says so."""
    sizes = [len(group.digits) for group in number]
    if all(_YEAR.fullmatch(group.digits) for group in number):
        return False
    if len(sizes) == 1:
        return MIN_BARE_DIGITS <= sizes[0] <= MAX_DIGITS
    return sum(sizes) <= MAX_DIGITS and max(sizes) <= MAX_GROUP_DIGITS


def _is_separate(text: str, number: Sequence[_Group], says: Says) -> bool:
    """Return True unless it is part of something longer or a price, or its brackets are unbalanced."""
    start, end = _opening(text, number), number[-1].end
    if is_part_of_longer(text, start, end, joints="/" if says is Says.YES else "-/"):
        return False
    if text.count("(", start, end) != text.count(")", start, end):
        return False
    return _has_plus(text, number[0]) or not _is_amount(text, start, end)


def _is_amount(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 2) : start].rstrip(), text[end : end + 2].lstrip()
    return before[-1:] in _MONEY or after[:1] in _MONEY or after[:1] == "%"


def _opening(text: str, number: Sequence[_Group]) -> int:
    """Return the start of a number, including its own plus and bracket."""
    start, end = number[0].start, number[-1].end
    if text[start - 1 : start] == "+":
        start -= 1
    if text[start - 1 : start] == "(" and text.find(")", start, end) >= 0:
        start -= 1
        if text[start - 1 : start] == "+":
            start -= 1
    return start
