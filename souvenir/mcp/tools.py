"""The type of a tool: name, description for models, arguments, result, required access, and implementation.

A tool runs on a thread after admission and raises the errors of `souvenir.core.errors`; its result is one JSON object.
Arguments are parsed here: an unknown name is refused with the list of known names, since models invent arguments, and
null counts as omitted. This module is independent of the protocol.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import AliasChoices, BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import to_json

from souvenir.core.errors import InvalidRequest
from souvenir.core.types import UNLIMITED, AccessLevel, AccessLevels, Role, Scope
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import Needs, shown
from souvenir.server.service import Service

MAX_SHOWN_ERRORS = 3

MAX_BUILT_ERRORS = 1000
"""Pydantic builds all errors of a call or none; above this number, only their count is reported."""

MAX_UNKNOWN_ARGUMENTS = 16
"""A call with more arguments than the tool has, plus these, is refused before its arguments are validated."""

MAX_SHOWN_CHARS = 60
"""Maximum number of characters of an unknown name in an error."""


class Arguments(BaseModel):
    """The arguments of a tool. The descriptions of the fields are for the model that fills them."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _one_spelling(cls, given: Any) -> Any:
        """:raises ValueError: If an argument is given in both of its spellings."""
        for field in cls.model_fields.values() if isinstance(given, Mapping) else ():
            names = field.validation_alias.choices if isinstance(field.validation_alias, AliasChoices) else []
            if sum(given.get(str(name)) is not None for name in names) > 1:
                raise ValueError(f"give one of {' and '.join(map(str, names))}")
        return given


class Result(BaseModel):
    """The result of a tool; fields that are None are omitted."""


A = TypeVar("A", bound=Arguments)


def _nothing(done: float, total: float | None = None, message: str | None = None) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool.

    :param scope: The caller and the data visible to it.
    :param progress: Reports progress, if the caller requested it. Raises if the caller has disconnected, so it may be
    called only where it is safe to stop.
    :param most_results: Maximum number of search results; None for no limit.
    :param levels: The access levels of the caller.
    """

    service: Service
    scope: Scope
    progress: Callable[[float, float | None, str | None], None] = _nothing
    most_results: int | None = None
    levels: AccessLevels = UNLIMITED

    def result_limit(self, wanted: int) -> int:
        """Return the number of results of a search with this limit."""
        return min(wanted, self.most_results or wanted)


def _compact(answer: dict[str, Any]) -> str:
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Tool(Generic[A]):
    """:param description: Text for models: its purpose, when to use it, and when not.

    :param role: The minimum role of the caller's key; a tool for read-only keys changes nothing.
    :param of_agent: Whether it needs a key of the whole namespace.
    :param needs: The access levels that the agent must grant to the key.
    :param destructive: Whether it may change or delete stored data.
    :param idempotent: Whether a second call with the same arguments changes nothing more.
    :param text: Renders an answer as the text for models; by default compact JSON.
    """

    name: str
    title: str
    description: str
    arguments: type[A]
    result: type[Result]
    run: Callable[[Call, A], Result]
    cost: CostClass
    role: Role
    of_agent: bool
    needs: Needs
    destructive: bool = False
    idempotent: bool = False
    text: Callable[[dict[str, Any]], str] = _compact

    def __post_init__(self) -> None:
        """:raises ValueError: If it reads without a level."""
        if self.is_reader and not self.needs:
            raise ValueError(f"{self.name} reads, so it has to declare the access levels that it needs")

    def read(self, given: Mapping[str, Any]) -> A:
        """Parse the arguments of a call.

        :raises InvalidRequest: If they are invalid; the message names them and the accepted arguments.
        """
        stated = {name: value for name, value in given.items() if value is not None}
        if len(stated) > len(self.arguments.model_fields) + MAX_UNKNOWN_ARGUMENTS:
            raise InvalidRequest(f"{self.name} has no {len(stated):,} arguments; it takes {self._known}")
        try:
            return self.arguments.model_validate_json(to_json(stated), strict=True)
        except ValidationError as error:
            raise InvalidRequest(self._complaint(error)) from error

    def answer(self, call: Call, given: Mapping[str, Any]) -> dict[str, Any]:
        """Call the tool and omit stored content that the caller's access levels do not cover."""
        result = self.run(call, self.read(given))
        seen = result if AccessLevel.QUICK in self.needs else shown(result, call.levels)
        answer: dict[str, Any] = seen.model_dump(mode="json", exclude_none=True)
        return answer

    @property
    def is_reader(self) -> bool:
        """True if it only reads."""
        return self.role is Role.READ_ONLY

    @property
    def input_schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"properties": {}, **_plain(self.arguments.model_json_schema())}
        schema.pop("description", None)
        return schema

    @property
    def output_schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = _plain(self.result.model_json_schema())
        return schema

    @property
    def _known(self) -> str:
        return ", ".join(self.input_schema["properties"]) or "nothing"

    def _complaint(self, error: ValidationError) -> str:
        if error.error_count() > MAX_BUILT_ERRORS:
            return f"{self.name} cannot be called so: its arguments have {error.error_count():,} errors; see its schema"
        errors = error.errors(include_url=False, include_input=False)
        unknown = [_shown(one["loc"]) for one in errors if one["type"] == "extra_forbidden"]
        if unknown:
            named = " and no argument ".join(unknown[:MAX_SHOWN_ERRORS])
            return f"{self.name} has no argument {named}; it takes {self._known}"
        parts = [_part(one) for one in errors[:MAX_SHOWN_ERRORS]]
        return f"{self.name} cannot be called so: {'; '.join(parts)}"


def spelled(name: str, other: str) -> AliasChoices:
    """Declare an argument with its canonical name, which the schema shows, and an accepted alias."""
    return AliasChoices(name, other)


def _part(error: Any) -> str:
    if error["type"] == "missing":
        return f"it needs {_shown(error['loc'])}"
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{_shown(error['loc'])}: {message[:1].lower()}{message[1:]}"


def _shown(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in loc)[:MAX_SHOWN_CHARS] or "arguments"


def _plain(schema: Any) -> Any:
    """Remove the parts of a schema that are useless to a model: titles, and null as an alternative."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {
        name: {key: _plain(one) for key, one in value.items()} if name in ("properties", "$defs") else _plain(value)
        for name, value in schema.items()
        if not (name == "title" and isinstance(value, str)) and (name, value) != ("default", None)
    }
    choices = [one for one in plain.get("anyOf", ()) if one != {"type": "null"}]
    if len(choices) == 1:
        plain = {**choices[0], **{name: value for name, value in plain.items() if name != "anyOf"}}
    return plain
