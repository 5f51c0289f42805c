"""The telephone numbering plans of `phonenumbers`, compiled for fast matching."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import phonenumbers
import re2
from phonenumbers import PhoneMetadata, PhoneNumber

MAX_DIGITS = 15
"""Maximum length of an international number with its country code (ITU-T E.164)."""
MAX_MEMORY_BYTES = 16 * 1024 * 1024

_LONGEST_COUNTRY_CODE = 3
_REFERENCE = re.compile(r"(\\\d)")
"""A group in a template of `phonenumbers`, such as \\1 in "\\1 \\2"."""
_WRITTEN_GROUP = re.compile(r"(?:\\\d|\d)+")


class _Format(NamedTuple):
    """The format of the numbers of a region that begin with `leading` and match `number`.

    :param written: The groups of digits, each of literal digits and of numbers of the match's groups.
    """

    leading: re.Pattern[str]
    number: re.Pattern[str]
    written: Sequence[Sequence[str | int]]


class NumberingPlans:
    """The plans of some regions, for numbers without a country code, and of all, for those with one.

    :param regions: ISO 3166-1 codes known to `phonenumbers`.
    """

    def __init__(self, regions: Sequence[str]) -> None:
        # Lazy loading, the library's default, is not thread-safe.
        PhoneMetadata.load_all()
        self._regions = tuple(regions)
        self._national = re2.Set.FullMatchSet(options(MAX_MEMORY_BYTES))
        for region in regions:
            self._national.Add(_national_pattern(region))
        if regions:
            self._national.Compile()
        self._formats = [_formats(region) for region in regions]

    def is_national(self, digits: str) -> bool:
        """Return True if the digits can be dialled as they are in one of the regions."""
        return bool(self._regions) and self._national.Match(digits.encode()) is not None

    def is_grouped_as_usual(self, groups: Sequence[str]) -> bool:
        """Return True if the digits are a number of one of the regions, in the groups that are usual there."""
        matching = self._national.Match("".join(groups).encode()) if self._regions else None
        number = str(int("".join(groups)))
        return any(_is_usual(self._formats[index], number, groups) for index in matching or ())

    @staticmethod
    def is_international(digits: str) -> bool:
        """Return True if the digits begin with a country code, and the rest has a length that is possible there."""
        for length in range(1, _LONGEST_COUNTRY_CODE + 1):
            code, number = int(digits[:length]), digits[length:]
            if code in phonenumbers.COUNTRY_CODE_TO_REGION_CODE:
                # With the zero of "+44 (0)20" or without.
                return _is_possible(code, number) or _is_possible(code, number.removeprefix("0"))
        return False


def _national_pattern(region: str) -> str:
    """Return the pattern of the region's numbers as dialled inside it, with or without the national prefix."""
    plan = PhoneMetadata.metadata_for_region(region)
    if plan is None:
        raise KeyError(region)
    kinds = (plan.fixed_line, plan.mobile, plan.toll_free, plan.shared_cost, plan.voip, plan.uan, plan.personal_number)
    numbers = "|".join(kind.national_number_pattern for kind in kinds if kind and kind.national_number_pattern)
    prefix = plan.national_prefix or ""
    return f"(?:{prefix})?(?:{numbers})"


def _formats(region: str) -> Sequence[_Format]:
    """The national formats of a region, in the order in which they are tried; those of its country's main region."""
    code = phonenumbers.country_code_for_region(region)
    plan = PhoneMetadata.metadata_for_region(phonenumbers.region_code_for_country_code(code))
    if plan is None:
        raise KeyError(region)
    return [
        _Format(
            re.compile(one.leading_digits_pattern[-1] if one.leading_digits_pattern else ""),
            re.compile(one.pattern),
            _written_groups(_REFERENCE.sub(one.national_prefix_formatting_rule or r"\1", one.format, count=1)),
        )
        for one in plan.number_format
        if one.pattern and one.format
    ]


def _written_groups(template: str) -> Sequence[Sequence[str | int]]:
    groups = [re.findall(r"\\\d|\d", group) for group in _WRITTEN_GROUP.findall(template)]
    return [[int(part[1:]) if part[0] == "\\" else part for part in group] for group in groups]


def _is_usual(formats: Sequence[_Format], number: str, groups: Sequence[str]) -> bool:
    """Return whether `phonenumbers.format_number` writes a national number in these groups."""
    for leading, whole, written in formats:
        if leading.match(number) and (match := whole.fullmatch(number)):
            return len(written) == len(groups) and all(
                "".join(part if isinstance(part, str) else match[part] for part in parts) == group
                for parts, group in zip(written, groups, strict=True)
            )
    return groups == [number]


def _is_possible(code: int, number: str) -> bool:
    if not number or len(number) > MAX_DIGITS:
        return False
    return _is_possible_length(code, len(str(int(number))), leading_zero=number[0] == "0")


@cache
def _is_possible_length(code: int, digits: int, *, leading_zero: bool) -> bool:
    """Return whether a number is possible. This depends only on its length: at most some thousand are cached."""
    dialled = PhoneNumber(country_code=code, national_number=10 ** (digits - 1), italian_leading_zero=leading_zero)
    return phonenumbers.is_possible_number(dialled)


def options(max_memory_bytes: int) -> re2.Options:
    chosen = re2.Options()
    chosen.max_mem = max_memory_bytes
    # RE2 would write to standard error; the exception reports the problem.
    chosen.log_errors = False
    return chosen
