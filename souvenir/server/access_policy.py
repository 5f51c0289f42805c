"""Agent access levels: the sets that routes declare (`access=`), the check of them, and what answers show without them.

Levels limit reading. Routes that store or delete need none, since an agent may store what it is given; a field of an
answer that holds stored content is annotated with the level that it needs, and is empty or left out without it:

    content: Annotated[str, OF_CONVERSATION]

A search needs less than what it shows: single texts are found with quick access. So fields of an answer are not
filtered where a route or a tool declares `SEARCHING`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType, NoneType
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from souvenir.core.errors import AccessLimited
from souvenir.core.types import UNLIMITED, AccessLevel, AccessLevels

Needs = frozenset[AccessLevel]

NOTHING: Needs = frozenset()
SEARCHING: Needs = frozenset({AccessLevel.QUICK})
REMEMBERED: Needs = frozenset({AccessLevel.FULL})
SAID: Needs = frozenset({AccessLevel.LOGS})
EVERYTHING: Needs = REMEMBERED | SAID


@dataclass(frozen=True, slots=True)
class StoredContent:
    """An annotation of a field of an answer: the levels without which it is not shown."""

    needs: Needs


OF_MEMORY = StoredContent(REMEMBERED)
OF_CONVERSATION = StoredContent(SAID)
OF_BOTH = StoredContent(EVERYTHING)

_EMPTY: Mapping[Any, Any] = MappingProxyType({NoneType: None, str: "", list: [], dict: {}})
"""Values of required fields that are not shown."""


def require_levels(given: AccessLevels, needed: Needs, agent: str) -> None:
    """:raises AccessLimited: If a needed level is not given."""
    missing = given.missing(needed)
    if missing:
        raise AccessLimited(agent, missing)


def shows_stored_content(answer: Any) -> bool:
    """Whether a type of answers has fields that are not shown without a level.

    :raises TypeError: If such a field is required and has no empty value.
    """
    models = _models_in(answer, set())
    fields = [field for model in models for field in model.model_fields.values() if _needs_of(field)]
    for field in fields:
        if field.is_required() and _type_of(field) not in _EMPTY:
            raise TypeError(f"{field} holds stored content, so it must be optional, a text, a list or an object")
    return bool(fields)


def shown(answer: Any, given: AccessLevels) -> Any:
    """The answer without the fields that need a level that is not given; required ones are empty."""
    if given == UNLIMITED:
        return answer
    if isinstance(answer, list):
        return [shown(one, given) for one in answer]
    if isinstance(answer, dict):
        return {name: shown(one, given) for name, one in answer.items()}
    if not isinstance(answer, BaseModel):
        return answer
    changed, hidden = {}, set()
    for name, field in type(answer).model_fields.items():
        if name not in answer.model_fields_set:
            continue
        if not given.missing(_needs_of(field)):
            changed[name] = shown(getattr(answer, name), given)
        elif field.is_required():
            changed[name] = _EMPTY[_type_of(field)]
        else:
            hidden.add(name)
    left = answer.model_copy(update={**changed, **dict.fromkeys(hidden)})
    left.model_fields_set.difference_update(hidden)
    return left


def _needs_of(field: FieldInfo) -> Needs:
    return frozenset(level for one in field.metadata if isinstance(one, StoredContent) for level in one.needs)


def _type_of(field: FieldInfo) -> Any:
    """The type of a field without its parameters; NoneType if it may be null."""
    annotation = field.annotation
    return NoneType if NoneType in get_args(annotation) else get_origin(annotation) or annotation


def _models_in(annotation: Any, seen: set[Any]) -> Iterator[type[BaseModel]]:
    """The models that a type of answers is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation not in seen:
            seen.add(annotation)
            yield annotation
            for field in annotation.model_fields.values():
                yield from _models_in(field.annotation, seen)
    else:
        for part in get_args(annotation):
            yield from _models_in(part, seen)
