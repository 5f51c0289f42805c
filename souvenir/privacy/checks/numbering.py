"""The telephone numbering plans of the world as `phonenumbers` carries them, made quick to ask."""

from __future__ import annotations

from collections.abc import Sequence

import phonenumbers
import re2
from phonenumbers import PhoneMetadata, PhoneNumber, PhoneNumberFormat

MAX_DIGITS = 15
"""Of an international number, with its country's code (ITU-T E.164)."""
MAX_MEMORY_BYTES = 16 * 1024 * 1024

_LONGEST_COUNTRY_CODE = 3


class NumberingPlans:
    """The plans of some regions, for numbers without a country's code, and of all, for those with one.

    :param regions: ISO 3166-1 codes that `phonenumbers` knows.
    """

    def __init__(self, regions: Sequence[str]) -> None:
        # Loading on first use, as the library does, is not safe in many threads.
        PhoneMetadata.load_all()
        self._regions = tuple(regions)
        self._national = re2.Set.FullMatchSet(options(MAX_MEMORY_BYTES))
        for region in regions:
            self._national.Add(_national_pattern(region))
        if regions:
            self._national.Compile()

    def is_national(self, digits: str) -> bool:
        """Whether the digits are dialled as they are in one of the regions."""
        return bool(self._regions) and self._national.Match(digits.encode()) is not None

    def is_grouped_as_usual(self, groups: Sequence[str]) -> bool:
        """Whether the digits are a number of one of the regions and are written there in these groups."""
        matching = self._national.Match("".join(groups).encode()) if self._regions else None
        return any(_usual_groups(self._regions[index], "".join(groups)) == list(groups) for index in matching or ())

    @staticmethod
    def is_international(digits: str) -> bool:
        """Whether the digits begin with a country's code, and as many follow as can be dialled there."""
        for length in range(1, _LONGEST_COUNTRY_CODE + 1):
            code, number = int(digits[:length]), digits[length:]
            if code in phonenumbers.COUNTRY_CODE_TO_REGION_CODE:
                # With the zero of "+44 (0)20" or without.
                return _is_possible(code, number) or _is_possible(code, number.removeprefix("0"))
        return False


def _national_pattern(region: str) -> str:
    """The region's numbers as they are dialled inside: with the national prefix or, as some are, without."""
    plan = PhoneMetadata.metadata_for_region(region)
    if plan is None:
        raise KeyError(region)
    kinds = (plan.fixed_line, plan.mobile, plan.toll_free, plan.shared_cost, plan.voip, plan.uan, plan.personal_number)
    numbers = "|".join(kind.national_number_pattern for kind in kinds if kind and kind.national_number_pattern)
    prefix = plan.national_prefix or ""
    return f"(?:{prefix})?(?:{numbers})"


def _usual_groups(region: str, digits: str) -> list[str]:
    number = PhoneNumber(country_code=phonenumbers.country_code_for_region(region), national_number=int(digits))
    written = phonenumbers.format_number(number, PhoneNumberFormat.NATIONAL)
    return "".join(character if character.isdigit() else " " for character in written).split()


def _is_possible(code: int, number: str) -> bool:
    if not number or len(number) > MAX_DIGITS:
        return False
    dialled = PhoneNumber(country_code=code, national_number=int(number), italian_leading_zero=number[0] == "0")
    return phonenumbers.is_possible_number(dialled)


def options(max_memory_bytes: int) -> re2.Options:
    chosen = re2.Options()
    chosen.max_mem = max_memory_bytes
    # It would write to standard error; our sentence says it.
    chosen.log_errors = False
    return chosen
