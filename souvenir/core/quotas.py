"""Quotas of API keys: their names and numbers, without the counting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Self

MAX_QUOTA = 2**53
"""JSON numbers are exact up to here."""


@dataclass(frozen=True, slots=True)
class Quotas:
    """Limits of one key; None: no limit.

    :param requests_per_minute: Requests in any 60 seconds.
    :param memories: Memories that the key created and that still exist, archived ones included.
    :param stored_bytes: UTF-8 bytes of the texts and metadata of the memories and messages that the key created and
        that still exist, and of the history that its changes of memories left.
    :param jobs_per_day: Jobs other than extractions that it submits on a UTC day.
    :param extractions_per_day: Extractions that it submits on a UTC day.
    """

    requests_per_minute: int | None = None
    memories: int | None = None
    stored_bytes: int | None = None
    jobs_per_day: int | None = None
    extractions_per_day: int | None = None

    @classmethod
    def named(cls, numbers: Mapping[str, int | None]) -> Self:
        """:raises ValueError: If a name is none of a quota, or a number cannot be a limit."""
        unknown = numbers.keys() - set(QUOTA_NAMES)
        if unknown:
            raise ValueError(f"{', '.join(sorted(unknown))} is no quota; known are {', '.join(QUOTA_NAMES)}")
        if any(number is not None and not 0 <= number <= MAX_QUOTA for number in numbers.values()):
            raise ValueError(f"a quota is a number from 0 to {MAX_QUOTA}")
        return cls(**numbers)

    def or_else(self, defaults: Quotas) -> Quotas:
        """These, and the defaults for those that are not limited."""
        given = {name: number for name, number in asdict(self).items() if number is not None}
        return Quotas(**{**asdict(defaults), **given})


QUOTA_NAMES = tuple(field.name for field in fields(Quotas))
UNLIMITED_QUOTAS = Quotas()


def quotas_of_text(text: str) -> Quotas:
    """Read `name=number`, separated by commas.

    :raises ValueError: If it cannot be read.
    """
    numbers: dict[str, int | None] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = part.partition("=")
        if not number.strip().isdecimal():
            raise ValueError(f"{part!r} is not name=number, such as memories=10000")
        numbers[name.strip()] = int(number)
    return Quotas.named(numbers)
