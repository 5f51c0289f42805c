"""Records as the JSON that they were read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

EXTRA = "extra"
"""The field of a record that holds what stands beside its others on the wire."""


def wire(value: Any) -> Any:
    """A record, or a list or mapping of such, as JSON values; fields that the answer left out are left out."""
    if is_dataclass(value):
        own = {
            field.name: wire(said)
            for field in fields(value)
            if field.name != EXTRA and ((said := getattr(value, field.name)) is not None or field.default is not None)
        }
        return own | wire(getattr(value, EXTRA, {}))
    if isinstance(value, Mapping):
        return {name: wire(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [wire(item) for item in value]
    return value
