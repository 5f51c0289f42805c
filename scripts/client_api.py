"""The operations of the client: an asynchronous method for each operation of the API, a module for each section."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scripts.client_records import RecordModules
from scripts.client_types import Schemas, doc, names_in, written_type

Json = Mapping[str, Any]

NDJSON = "application/x-ndjson"
PLAIN = "application/json"
GRAPHML = "application/graphml+xml"
EVENTS = "text/event-stream"
NAMESPACE = "X-Namespace"
MOMENTS = frozenset(
    {"as_of", "created_at", "document_at", "ended_at", "reference_date", "since", "started_at", "until"}
)


@dataclass(frozen=True, slots=True)
class Argument:
    """:param sent_as: Its name on the wire, and `place` its location: path, query, header or body."""

    name: str
    sent_as: str
    place: str
    kind: str
    required: bool

    @property
    def declared(self) -> str:
        if self.required:
            return f"{self.name}: {self.kind}"
        kinds = self.kind.split(" | ")
        kinds.insert(len(kinds) - (kinds[-1] == "None"), "NotSent")
        return f"{self.name}: {' | '.join(kinds)} = NOT_SENT"


def sdk_name(operation: Json) -> str:
    """The method of the client that calls the operation: `group.verb`."""
    return str(operation["x-sdk-name"])


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str
    description: Json
    arguments: tuple[Argument, ...]

    @property
    def group(self) -> str:
        return sdk_name(self.description).split(".")[0]

    @property
    def verb(self) -> str:
        return sdk_name(self.description).split(".")[1]

    @property
    def tag(self) -> str:
        return str(self.description["tags"][0])

    def placed(self, place: str) -> list[Argument]:
        return [argument for argument in self.arguments if argument.place == place]

    @property
    def takes_body(self) -> bool:
        return PLAIN in self.description.get("requestBody", {}).get("content", {})

    @property
    def answers_file(self) -> bool:
        """Return whether the answer is passed on unchanged, in the requested format."""
        return any(GRAPHML in answer["content"] for answer in self.description["responses"].values())

    @property
    def answers_events(self) -> bool:
        """Return whether the answer is a stream of server-sent events."""
        return any(EVENTS in answer["content"] for answer in self.description["responses"].values())

    @property
    def repeat(self) -> str:
        """The name of a souvenir_client.calls.Repeat."""
        return str(self.description["x-idempotency"]).upper()

    @property
    def ends_in_path(self) -> bool:
        """Return whether its last path parameter may contain slashes, for example a tag."""
        return any(self.path.endswith(f"{{{name}}}") for name in self.description.get("x-multi-segment", ()))


class ApiModules:
    def __init__(self, document: Json, records: RecordModules) -> None:
        self._schemas = Schemas(document)
        self._records = records
        self._operations = [
            Operation(method.upper(), path, description, tuple(self._arguments(description)))
            for path, methods in document["paths"].items()
            for method, description in methods.items()
        ]

    def files(self) -> dict[str, str]:
        tags = sorted({operation.tag for operation in self._operations})
        files = {f"{tag}.py": self._module(tag) for tag in tags}
        files["__init__.py"] = '"""The operations of the HTTP API, one module a tag."""\n'
        return files

    def _module(self, tag: str) -> str:
        operations = [operation for operation in self._operations if operation.tag == tag]
        used = set().union(*(self._named(operation) for operation in operations))
        lines = [
            f'"""Operations with the tag `{tag}`."""',
            "from __future__ import annotations",
            "from collections.abc import AsyncIterator, Iterable, Mapping, Sequence",
            "from datetime import datetime",
            "from typing import Any, Literal",
            "from souvenir_client.aio.transport import AsyncTransport",
            "from souvenir_client.calls import NOT_SENT, Call, Listing, NotSent, Repeat, segment, segments",
            *self._records.imports_for(used),
            "",
        ]
        for group in dict.fromkeys(operation.group for operation in operations):
            lines += [
                f"class {class_name(tag, group)}:",
                "    def __init__(self, transport: AsyncTransport) -> None:",
                "        self._transport = transport",
                "",
            ]
            for operation in operations:
                if operation.group == group:
                    lines += [*self._method(operation), ""]
        return "\n".join(lines) + "\n"

    def _arguments(self, description: Json) -> Iterator[Argument]:
        for parameter in description.get("parameters", ()):
            if parameter["name"] != NAMESPACE:
                kind = _sent_type(self._schemas, parameter["name"], parameter["schema"])
                if parameter["in"] == "header":
                    kind = kind.removesuffix(" | None")
                name = parameter["name"].lower().replace("-", "_")
                yield Argument(name, parameter["name"], parameter["in"], kind, bool(parameter.get("required")))
        taken = {parameter["name"] for parameter in description.get("parameters", ())}
        body = description.get("requestBody", {}).get("content", {})
        if NDJSON in body:
            yield Argument("content", "content", "content", "bytes | Iterable[bytes]", True)
        elif PLAIN in body:
            schema = self._schemas.resolved(body[PLAIN]["schema"])
            required = set(schema.get("required", ()))
            for name, field in schema.get("properties", {}).items():
                if name not in taken:
                    kind = _sent_type(self._schemas, name, field)
                    yield Argument(name, name, "body", kind, name in required)

    def _named(self, operation: Operation) -> set[str]:
        """Return the schemas that its method refers to: records of its answers, enumerations of its arguments."""
        answers = [answer for status, answer in operation.description["responses"].items() if status < "300"]
        sent = [operation.description.get("parameters", []), operation.description.get("requestBody", {})]
        sent_names = self._schemas.closure(names_in(sent))
        named = names_in(answers)
        named |= set().union(*(names_in(self._schemas[name]) for name in named if not self._schemas.is_record(name)))
        return named | {name for name in sent_names if self._schemas.is_enum(name)}

    def _results(self, operation: Operation) -> dict[str, str]:
        """The type of the answer by its status."""
        results = {}
        for status, answer in operation.description["responses"].items():
            if status < "300" and PLAIN in answer["content"] and not operation.answers_file:
                results[status] = written_type(self._schemas, answer["content"][PLAIN]["schema"])
        return results

    def _method(self, operation: Operation) -> Iterator[str]:
        results = self._results(operation)
        positional = [argument.declared for argument in operation.placed("path") + operation.placed("content")]
        keywords = [argument for argument in operation.arguments if argument.place in {"query", "header", "body"}]
        keywords.sort(key=lambda argument: not argument.required)
        declared = ["self", *positional, *(["*"] if keywords else []), *(argument.declared for argument in keywords)]
        kinds = [re.sub(r"^list\[", "Listing[", kind) for kind in dict.fromkeys(results.values())]
        streamed = "bytes" if operation.answers_file else "dict[str, Any]"
        returned = " | ".join(kinds) if kinds else f"AsyncIterator[{streamed}]"
        yield f"    {'async ' if kinds else ''}def {operation.verb}({', '.join(declared)}) -> {returned}:"
        described = operation.description
        place = f"`{operation.method} {operation.path}`."
        yield doc(described["description"], place, summary=described["summary"], indent=8)
        call = ", ".join(self._call(operation, results))
        streaming = "pieces" if operation.answers_file else "events" if operation.answers_events else "lines"
        sent = "await self._transport.send" if kinds else f"self._transport.{streaming}"
        yield f"        return {sent}(Call({call}))"

    def _call(self, operation: Operation, results: Mapping[str, str]) -> Iterator[str]:
        yield f'"{operation.method}"'
        encode = "segments" if operation.ends_in_path else "segment"
        path = re.sub(r"\{(\w+)\}", rf"{{{encode}(\1)}}", operation.path)
        yield f'f"{path}"' if path != operation.path else f'"{path}"'
        yield "{" + ", ".join(f"{status}: {kind}" for status, kind in results.items()) + "}"
        for place, name in (("query", "query"), ("header", "headers"), ("body", "body")):
            placed = operation.placed(place)
            if placed or (place == "body" and operation.takes_body):
                pairs = ", ".join(f'"{argument.sent_as}": {argument.name}' for argument in placed)
                yield f"{name}={{{pairs}}}"
        if operation.placed("content"):
            yield "content=content"
        if operation.repeat != "NEVER":
            yield f"repeat=Repeat.{operation.repeat}"


def _sent_type(schemas: Schemas, name: str, schema: Json) -> str:
    """Date-time arguments also accept datetime objects; the OpenAPI document declares them as strings."""
    kind = written_type(schemas, schema, argument=True)
    return kind.replace("str", "str | datetime", 1) if name in MOMENTS else kind


def class_name(tag: str, group: str) -> str:
    """For example `AsyncMemoriesOfSearch`, or `AsyncAgentsOperations` if group and tag have the same name."""
    own, section = (name.title().replace("_", "") for name in (group, tag))
    return f"Async{own}Operations" if own == section else f"Async{own}Of{section}"
