"""Writes docs/http_api.md from the description that the application gives of itself.

python -m scripts.build_api_docs
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from app import create_app
from souvenir.settings import Settings

API_PAGE = Path(__file__).resolve().parent.parent / "docs" / "http_api.md"

Json = Mapping[str, Any]

TAGS = {
    "agents": "Agents",
    "messages": "Conversations",
    "blocks": "Blocks",
    "context": "Context",
    "tiers": "Sessions, preferences and long-term memory",
    "privacy": "Privacy and erasure",
    "search": "Searching",
    "write": "Storing and changing",
    "replace": "Replacing",
    "read": "Reading",
    "facts": "Facts",
    "tags": "Tags",
    "links": "Links",
    "graph": "Knowledge graph",
    "concepts": "Concepts",
    "locrits": "Locrits",
    "delete": "Forgetting",
    "duplicates": "Duplicates",
    "conflicts": "Contradictions",
    "extraction": "Extraction",
    "extraction_profiles": "Extraction profiles",
    "transfer": "Moving data",
    "jobs": "Jobs",
    "maintenance": "Maintenance",
    "backup": "Backups",
    "figures": "Figures",
    "keys": "Keys",
    "audit": "Audit",
    "health": "Health",
}

INTRODUCTION = """\
# The HTTP API

Made from the code by `python -m scripts.build_api_docs`; the service shows the same at `/docs` and `/openapi.json`.

**Requests** are JSON (`Content-Type: application/json`) and so are all answers. Fields that a request does not know are
ignored. Texts hold no NUL characters. A body may have `MAX_BODY_BYTES` (32 MiB unless set otherwise). Exports and
imports are NDJSON, and an import may have `IMPORT_MAX_BYTES`.

**Key.** If the setting `API_KEY` is set, or once a key was made with `POST /api/keys`, every route needs a key, as
`X-API-Key: KEY` or `Authorization: Bearer KEY`; `/health`, `/health/ready`, `/docs` and `/openapi.json` are open.
`API_KEY` is an admin's; a key that was made has a role, source paths and a namespace, and what lies outside of them
does not exist for it. Before there is either, everyone who can connect may do everything, but a request that carries a
key is refused: its sender believes to talk to another service.

**Namespace.** `X-Namespace: NAME` says which namespace a request is about (1 to 200 printable characters without `/`,
in UTF-8); without it, that of the key, else `default`. Nothing of one namespace shows in another. Backups hold all of
them.

**Times** are ISO-8601. In answers they are UTC with microseconds, such as `2025-04-02T09:30:00.000000+00:00`; in
requests a time without an offset is UTC.

**Request id.** `X-Request-ID` of the request, or a new one, is in the answer and in the log.

**Metadata** is any JSON object of at most 64 KiB and stands on the level of the record when a memory is read. In a
request, `document_at` dates what the text says, `pinned` and `archived` are the memory's own, and `entity_key` is its
key; names that only the service writes (such as `id`, `created_at`, `links`, `supersedes`) are dropped. `origin_class`
says where the text comes from (`user` if nothing is said, `document`, `tool`, `assistant`, `inferred`, `recalled`, from
the most trusted to the least); a later change can make a memory less trusted, never more. `origin_client` becomes one
of `codex`, `claude-code`, `hook`, `manual`, `other`.

**Idempotency-Key.** A POST that makes something takes the header `Idempotency-Key` (1 to 255 characters). The same
request under the same key makes one thing within 24 hours, also at once and after a kill; it is answered with what it
made, as that is now, and with `Idempotency-Replayed: true`. Another request under that key is 422.

**Errors** have one body: `detail` is a sentence that says what to do, `code` a stable name, `request_id` the id.
With 422 for fields that cannot be used, `detail` is a list with one entry a field.
"""


def api_page(document: Json) -> str:
    """The page in Markdown: every operation with its examples, then every model once.

    :raises ValueError: If an operation would be in no section.
    """
    _require_sections(document)
    parts = [INTRODUCTION, *_error_table(document)]
    for tag, title in TAGS.items():
        parts.append(f"\n## {title}")
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if tag in operation["tags"]:
                    parts += _operation(document, f"{method.upper()} {path}", operation)
    parts.append("\n## Models\n\nFields with a star must be sent, or are always in the answer.")
    for name, schema in document["components"]["schemas"].items():
        parts += _model(name, schema)
    return "\n".join(parts).rstrip() + "\n"


def _require_sections(document: Json) -> None:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if not TAGS.keys() & operation.get("tags", ()):
                raise ValueError(f"{method.upper()} {path} is in no section; give its tag a title in TAGS")


def _error_table(document: Json) -> Iterator[str]:
    described = {
        status: response["description"]
        for methods in document["paths"].values()
        for operation in methods.values()
        for status, response in operation["responses"].items()
        if status >= "400" and operation["tags"] != ["health"]
    }
    yield "| status | when |\n|---|---|"
    yield from (f"| {status} | {when} |" for status, when in sorted(described.items()))


def _operation(document: Json, name: str, operation: Json) -> Iterator[str]:
    yield f"\n### `{name}`\n\n{operation['description']}\n"
    named = [parameter for parameter in operation.get("parameters", ()) if parameter["name"] != "X-Namespace"]
    if named:
        yield from _table("parameter", map(_parameter_row, named))
    if "requestBody" in operation:
        yield from _message(document, "Body", operation["requestBody"])
    done = min(status for status in operation["responses"] if status < "300")
    yield from _message(document, "Answer" if done == "200" else f"Answer ({done})", operation["responses"][done])
    errors = [status for status in operation["responses"] if status in {"400", "404", "409", "412", "501"}]
    if errors:
        yield f"It can fail with {', '.join(errors)}."


def _message(document: Json, title: str, message: Json) -> Iterator[str]:
    if "application/json" not in message["content"]:
        [(media_type, content)] = message["content"].items()
        yield f"{title}: {media_type}. {message['description']}\n"
        yield f"```json\n{content['example'].rstrip()}\n```\n"
        return
    schema = message["content"]["application/json"]["schema"]
    example = _ordered(document, schema, _resolved(document, schema)["examples"][0])
    yield f"{title}: {_type(schema)}\n"
    yield f"```json\n{json.dumps(example, indent=2, ensure_ascii=False)}\n```\n"


def _model(name: str, schema: Json) -> Iterator[str]:
    yield f"\n### {name}\n"
    if "properties" not in schema:
        yield f"{_type(schema)}\n"
        return
    required = schema.get("required", ())
    yield from _table("field", (_row(field, field in required, of) for field, of in schema["properties"].items()))


def _table(heading: str, rows: Iterable[str]) -> Iterator[str]:
    yield f"| {heading} | type | meaning |\n|---|---|---|"
    yield from rows
    yield ""


def _parameter_row(parameter: Json) -> str:
    schema = {**parameter["schema"], "description": parameter["description"]}
    return _row(parameter["name"], parameter.get("required", False), schema)


def _row(name: str, required: bool, schema: Json) -> str:
    meaning = next((said["description"] for said in [schema, *schema.get("anyOf", ())] if "description" in said), "")
    return f"| `{name}`{'*' if required else ''} | {_type(schema)} | {meaning} |"


def _type(schema: Json) -> str:
    """A type in words: with its limits, its choices and its default."""
    words = " or ".join(dict.fromkeys(_plain_type(choice) for choice in schema.get("anyOf", [schema])))
    if schema.get("default") is not None:
        words += f", default `{json.dumps(schema['default'])}`"
    return words


def _plain_type(schema: Json) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "enum" in schema:
        return ", ".join(f"`{choice}`" for choice in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}{_limits(schema, 'Items', 'items')}"
    limits = _limits(schema, "Length", "characters") + _limits(schema, "Properties", "keys")
    return f"{schema.get('type', 'any')}{limits}{_range(schema)}"


def _limits(schema: Json, suffix: str, unit: str) -> str:
    least, most = schema.get(f"min{suffix}"), schema.get(f"max{suffix}")
    if most is None:
        return "" if least is None else f", at least {least} {unit}"
    return f", {least} to {most} {unit}" if least else f", at most {most} {unit}"


def _range(schema: Json) -> str:
    bounds = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    # The largest 64-bit number is no limit that somebody meets.
    shown = [f"{sign} {schema[name]:g}" for name, sign in bounds.items() if name in schema and schema[name] < 2**62]
    return "".join(f", {bound}" for bound in shown)


def _resolved(document: Json, schema: Json) -> Json:
    """The schema that a reference means; of several choices the first reference, else the schema itself."""
    for choice in (schema, *schema.get("anyOf", ())):
        if "$ref" in choice:
            found: Json = document["components"]["schemas"][choice["$ref"].rsplit("/", 1)[-1]]
            return found
    return schema


def _ordered(document: Json, schema: Json, example: Any) -> Any:
    """An example with its keys in the order of the model, which the description does not keep."""
    resolved = _resolved(document, schema)
    if isinstance(example, list):
        return [_ordered(document, resolved.get("items", {}), item) for item in example]
    if not isinstance(example, dict):
        return example
    properties = resolved.get("properties", {})
    names = [*(name for name in properties if name in example), *(name for name in example if name not in properties)]
    return {name: _ordered(document, properties.get(name, {}), example[name]) for name in names}


def main() -> None:
    API_PAGE.write_text(api_page(create_app(Settings()).openapi()), encoding="utf-8")


if __name__ == "__main__":
    main()
