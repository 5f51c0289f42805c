"""Mem0's exports and summaries.

An export is not stored. Its id contains the request, that is schema, instructions and filters, and the export is made
at each request, from what the caller may see then. So an id gives nobody access and contains nothing of a memory. For
exports that are requested by filters, the schema is kept for a day under a digest of the filters, where the ids of
repeated requests are kept (`souvenir.store.idempotency`).
"""

from __future__ import annotations

import json
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any, Self

from fastapi import Request
from pydantic import BaseModel, Field, StringConstraints

from souvenir.api.fields import Clean
from souvenir.compat.mem0.filling import Selected, ask, selected
from souvenir.compat.mem0.models import Entities, Mem0Accepted, Strict
from souvenir.compat.mem0.routes import Mem0Routes
from souvenir.compat.mem0.schemas import ExportShape, read_schema
from souvenir.compat.mem0.stored import AGENT_ID
from souvenir.core.errors import InvalidRequest, NotFound, NotOffered
from souvenir.core.labels import ENTITIES
from souvenir.core.timestamps import utc_now
from souvenir.core.types import JsonObject, Role, Scope
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import REMEMBERED, Reader, RunningService, caller_of
from souvenir.server.service import Service
from souvenir.store.idempotency import Once, keep, made_before
from souvenir.store.transaction import Transaction

routes = Mem0Routes("mem0")

MAX_INSTRUCTION_CHARS = 4_000
MAX_FILTERS_CHARS = 10_000
MAX_ID_CHARS = 200_000
MAX_REQUEST_CHARS = 100_000
"""Maximum length of the request that an id contains."""

_KEPT = "mem0 export"
_LATEST: JsonObject = {}
"""The key, next to the filters of each export, of the schema of a caller's last one."""

Instructions = Annotated[str, StringConstraints(max_length=MAX_INSTRUCTION_CHARS), Clean]


@dataclass(frozen=True, slots=True)
class Form:
    """The schema and the instructions of an export."""

    schema: JsonObject
    instructions: str

    @property
    def shape(self) -> ExportShape:
        return ExportShape.of(read_schema(self.schema))

    def packed(self, *filters: JsonObject) -> str:
        """Return the form and what follows as a text that `unpacked` reads."""
        written = json.dumps([self.schema, self.instructions, *filters], ensure_ascii=False, separators=(",", ":"))
        return urlsafe_b64encode(zlib.compress(written.encode())).decode().rstrip("=")

    @classmethod
    def unpacked(cls, text: str) -> tuple[Self, list[Any]]:
        """:raises ValueError: If it is no such text."""
        packed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        try:
            written = zlib.decompressobj().decompress(packed, 4 * MAX_REQUEST_CHARS)
            schema, instructions, *filters = read = json.loads(written)
            json.dumps(read, ensure_ascii=False, allow_nan=False).encode()  # no escapes of what is no Unicode
        except (zlib.error, TypeError, RecursionError) as error:
            raise ValueError("not packed") from error
        if not (isinstance(schema, dict) and isinstance(instructions, str)):
            raise ValueError("no form")
        return cls(schema, instructions[:MAX_INSTRUCTION_CHARS]), filters


class ExportFilters(Entities):
    filters: dict[str, Any] | None = None

    @property
    def selection(self) -> dict[str, Any]:
        """The filter of the request; names of entities next to it must fit as well."""
        named = {name: value for name in (*ENTITIES, AGENT_ID) if (value := getattr(self, name)) is not None}
        if not self.filters:
            return named
        if len(json.dumps(self.filters)) > MAX_FILTERS_CHARS:
            raise InvalidRequest(f"The filters are longer than {MAX_FILTERS_CHARS:,} characters; shorten them")
        return {"AND": [named, self.filters]} if named else self.filters


class CreateExport(ExportFilters):
    form: str | dict[str, Any] = Field(alias="schema")
    export_instructions: Instructions | None = None


class GetExport(ExportFilters):
    memory_export_id: Annotated[str, StringConstraints(max_length=MAX_ID_CHARS)] | None = None


@routes.post("/v1/exports/", cost=CostClass.LIGHT, access=REMEMBERED)
def create_export(body: CreateExport, scope: Reader, service: RunningService, request: Request) -> Mem0Accepted:
    """Check the schema and the filters of an export, and return an id by which it is made."""
    form, filters = Form(read_schema(body.form), body.export_instructions or ""), body.selection
    require_filled(service, form.shape)
    selected(service, request, scope, filters)
    if caller_of(request).role is not Role.READ_ONLY:
        service.engine.write(scope, lambda tx: _keep(tx, form, filters))
    return Mem0Accepted(message="The export is made when get_memory_export asks for it", id=form.packed(filters))


@routes.post("/v1/exports/get/", cost=CostClass.SEARCH, access=REMEMBERED, idempotent=True)
def get_export(body: GetExport, scope: Reader, service: RunningService, request: Request) -> dict[str, Any]:
    """Make an export, by its id or by filters, of the memories that there are now."""
    filters = body.selection
    if body.memory_export_id is None:
        if not filters:
            raise InvalidRequest("Name the export by memory_export_id, or by filters such as user_id")
        form = _kept(service, scope, filters)
    else:
        if filters:
            raise InvalidRequest("Name the export by memory_export_id or by filters, not by both")
        form, filters = _of_id(body.memory_export_id)
    return filled(service, form, selected(service, request, scope, filters))


class SummaryRequest(Strict):
    filters: dict[str, Any] | None = None


class Summary(BaseModel):
    """The answer of a model."""

    summary: str


class Mem0Summary(BaseModel):
    """A summary by a model, or without one the newest memories themselves."""

    summary: str
    made_by: str
    memories: int
    oldest_at: str | None
    newest_at: str | None
    categories: dict[str, int]


MODEL, EXCERPTS = "model", "excerpts"
MAX_SUMMARY_CHARS = 2_000


@routes.post("/v1/summary/", cost=CostClass.SEARCH, access=REMEMBERED, idempotent=True)
def summary(body: SummaryRequest, scope: Reader, service: RunningService, request: Request) -> Mem0Summary:
    """Summarise the memories that a filter selects."""
    found = selected(service, request, scope, body.filters or {})
    times = sorted(one.created_at for _, one in found)
    has_model = service.provider is not None and bool(found)
    return Mem0Summary(
        summary=ask(service, found, "summary", Summary).summary if has_model else _excerpts(found),
        made_by=MODEL if has_model else EXCERPTS,
        memories=len(found),
        oldest_at=times[0] if times else None,
        newest_at=times[-1] if times else None,
        categories=dict(Counter(tag for _, one in found for tag in one.categories)),
    )


def _excerpts(found: Selected) -> str:
    """Return the texts of the newest memories, as many as fit, and at least a part of one."""
    kept, left = list[str](), MAX_SUMMARY_CHARS
    for _, one in found:
        line = f"- {' '.join(one.memory.split())}"
        left -= len(line) + 1
        if left < 0 and kept:
            break
        kept.append(line[:MAX_SUMMARY_CHARS])
    return "\n".join(kept)


def require_filled(service: Service, shape: ExportShape) -> None:
    """:raises NotOffered: If the schema needs a language model, and there is none."""
    if shape.shape is not None and service.provider is None:
        named = ", ".join(name[:50] for name in shape.names[:5]) + (" and others" if len(shape.names) > 5 else "")
        raise NotOffered(
            f"Only a language model can fill {named}: set EXTRACT_PROVIDER, or use a schema whose properties are lists "
            "of memories"
        )


def filled(service: Service, form: Form, found: Selected) -> dict[str, Any]:
    """Return what memories are made into.

    :raises NotFound: If there is no memory of which a model could fill something.
    """
    shape = form.shape
    require_filled(service, shape)
    lists = shape.memories_of([one.model_dump() for _, one in found])
    if shape.shape is None:
        return lists
    if not found:
        raise NotFound("No memory fits the filters, so there is nothing to fill the schema with")
    return {**lists, **shape.values_of(ask(service, found, "export", shape.shape, form.instructions))}


def _of_id(text: str) -> tuple[Form, dict[str, Any]]:
    """:raises NotFound: If it is no id of an export."""
    try:
        form, [filters] = Form.unpacked(text)
    except ValueError as error:
        raise NotFound("There is no export with this id; create_memory_export returns ids") from error
    if not isinstance(filters, dict):
        raise NotFound("There is no export with this id; create_memory_export returns ids")
    return form, filters


def _keep(tx: Transaction, form: Form, filters: JsonObject) -> None:
    """Keep a form for its filters and as the last one."""
    for key in (filters, _LATEST):
        keep(tx.connection, tx.namespace_id, tx.scope.actor, _once(key), [form.packed()], tx.now)


def _kept(service: Service, scope: Scope, filters: JsonObject) -> Form:
    """Return the form of the caller's last export with the same filters, else of the last one.

    :raises NotFound: If the caller created none within a day.
    """
    with service.engine.namespace(scope) as (connection, namespace):
        for key in (filters, _LATEST):
            if namespace is not None:
                found = made_before(connection, namespace.id, scope.actor, _once(key), utc_now())
                if found:
                    return Form.unpacked(found[0])[0]
    raise NotFound("This key created no export in the last 24 hours; name one by memory_export_id")


def _once(key: JsonObject) -> Once:
    return Once.of(_KEPT, json.dumps(key, sort_keys=True), None)
