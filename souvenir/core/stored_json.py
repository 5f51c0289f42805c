"""Values as JSON in the database: written compactly, read back into frozen dataclasses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BeforeValidator, PlainSerializer, TypeAdapter

from souvenir.core.timestamps import from_us, to_us

T = TypeVar("T")

Microseconds = Annotated[
    datetime,
    BeforeValidator(lambda value: from_us(value) if isinstance(value, int) else value),
    PlainSerializer(to_us),
]
"""A time that is stored as microseconds since 1970."""

IsoTime = Annotated[datetime, PlainSerializer(datetime.isoformat)]
"""A time that is stored as `datetime.isoformat` writes it; pydantic's own form differs from it."""


class StoredJson(Generic[T]):
    """A dataclass and its JSON object. Fields that an older release did not write must have defaults.

    :param unknown: Whether keys that this release does not know are an error.
    """

    def __init__(self, kind: type[T], *, unknown: Literal["forbid", "ignore"] = "forbid") -> None:
        self._adapter = TypeAdapter(kind)
        self._unknown: Literal["forbid", "ignore"] = unknown

    def load(self, stored: Mapping[str, Any]) -> T:
        """:raises ValueError: If the object is invalid."""
        return self._adapter.validate_python(stored, extra=self._unknown)

    def dump(self, value: T) -> dict[str, Any]:
        """Return the object, in the order of the fields."""
        found: dict[str, Any] = self._adapter.dump_python(value, mode="json")
        return found


def to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def same_json(one: Any, other: Any) -> bool:
    """Return whether two values are equal as JSON: keys in any order, but 1, 1.0 and true differ."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
