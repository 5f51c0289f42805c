"""The records of the client: a frozen dataclass for each model that the API answers with, a module for each section."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import indent, wrap
from typing import Any

from scripts.client_types import Schemas, doc, names_in, written_type

Json = Mapping[str, Any]

COMMON = "common"
ENUMS = "enums"


class RecordModules:
    """Maps records to modules.

    A record that several sections answer with, and all that those records hold, is common to them.
    """

    def __init__(self, document: Json) -> None:
        self.schemas = Schemas(document)
        self.module_of = self._assigned(document)

    def _assigned(self, document: Json) -> dict[str, str]:
        sections: dict[str, set[str]] = {}
        for operation in _operations(document):
            for name in self.schemas.closure(names_in(_answers(operation))):
                sections.setdefault(name, set()).add(operation["tags"][0])
        shared = {name for name, tags in sections.items() if len(tags) > 1}
        common = self.schemas.closure(shared)
        return {
            name: COMMON if name in common else next(iter(tags))
            for name, tags in sections.items()
            if self.schemas.is_record(name)
        }

    def files(self) -> dict[str, str]:
        modules: dict[str, list[str]] = {}
        for name, module in self.module_of.items():
            modules.setdefault(module, []).append(name)
        files = {f"{module}.py": self._module(module, sorted(names)) for module, names in modules.items()}
        files[f"{ENUMS}.py"] = self._enums()
        files["__init__.py"] = self._package()
        return files

    def imports_for(self, names: set[str], inside: str | None = None) -> Iterator[str]:
        """Return the import lines for these schemas in a module of that name."""
        for name in sorted(names):
            if self.schemas.is_enum(name):
                yield f"from souvenir_client.records.{ENUMS} import {name}"
            elif name in self.module_of and self.module_of[name] != inside:
                yield f"from souvenir_client.records.{self.module_of[name]} import {name}"

    def _module(self, module: str, names: list[str]) -> str:
        used = set().union(*(names_in(self.schemas[name]) for name in names)) - set(names)
        lines = [
            f'"""Records in responses of the operations with the tag `{module}`."""',
            "from __future__ import annotations",
            "from collections.abc import Mapping",
            "from dataclasses import dataclass, field",
            "from typing import Any, Literal",
            *self.imports_for(used, module),
            "",
        ]
        return "\n".join([*lines, *(line for name in names for line in self._record(name))]) + "\n"

    def _record(self, name: str) -> Iterator[str]:
        schema = self.schemas[name]
        required = set(schema.get("required", ()))
        yield "@dataclass(frozen=True, slots=True, kw_only=True)"
        yield f"class {name}:"
        if schema.get("description"):
            yield doc(schema["description"], indent=4)
        properties = schema.get("properties", {})
        for field_name, field_schema in properties.items():
            kind = written_type(self.schemas, field_schema)
            if field_name in required:
                yield f"    {field_name}: {kind}"
            else:
                yield f"    {field_name}: {kind.removesuffix(' | None')} | None = None"
        if schema.get("additionalProperties") is True:
            yield "    extra: Mapping[str, Any] = field(default_factory=dict)"
            yield '    """All other fields, such as the metadata of a memory."""'
        elif not properties:
            yield "    pass"
        yield ""

    def _enums(self) -> str:
        lines = [
            '"""Enumerations of requests and responses."""',
            "from __future__ import annotations",
            "from typing import Literal",
            "",
        ]
        lines += [
            f"{name} = Literal[{', '.join(map(repr, self.schemas[name]['enum']))}]"
            for name in sorted(filter(self.schemas.is_enum, self.schemas))
        ]
        return "\n".join(lines) + "\n"

    def _package(self) -> str:
        modules: dict[str, list[str]] = {}
        for name, module in sorted(self.module_of.items()):
            modules.setdefault(module, []).append(name)
        exported = indent("\n".join(wrap(" ".join(f'"{name}",' for name in sorted(self.module_of)), 110)), "    ")
        imports = [
            f"    from souvenir_client.records.{module} import {', '.join(modules[module])}" for module in modules
        ]
        places = [f"    {module!r}: (\n{_wrapped(names)}\n    )," for module, names in sorted(modules.items())]
        return _PACKAGE.format(imports="\n".join(imports), exported=exported, places="\n".join(places))


_PACKAGE = '''"""The responses of the service as frozen dataclasses.

A module is imported when one of its records is first used: creating dataclasses is most of the client's import time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
{imports}

__all__ = [
{exported}
]  # fmt: skip

_RECORDS = {{
{places}
}}
"""The records of each module."""

_PLACES = {{name: module for module, names in _RECORDS.items() for name in names.split()}}


if not TYPE_CHECKING:  # a checker that saw it would let every name pass

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
        value = getattr(import_module(f"{{__name__}}.{{_PLACES[name]}}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({{*globals(), *__all__}})
'''


def _wrapped(names: list[str]) -> str:
    """Return the names as one text wrapped over several lines."""
    lines = wrap(" ".join(names), 100)
    ends = [" "] * (len(lines) - 1) + [""]
    return "\n".join(f'        "{line}{end}"' for line, end in zip(lines, ends, strict=True))


def _operations(document: Json) -> Iterator[Json]:
    for methods in document["paths"].values():
        yield from methods.values()


def _answers(operation: Json) -> list[Json]:
    return [answer for status, answer in operation["responses"].items() if status < "300"]
