"""The API document states each parameter that clients of the Memories family send: type, limits, default."""

from __future__ import annotations

import re
from typing import Any

from tests.api.operations import DOCUMENT
from tests.cases import for_all
from tests.compat.memories.parameters import PARAMETERS, Parameter

SEARCHES = ("POST /search", "POST /search/explain", "POST /search/evidence")

DEPARTURES = {
    # Feedback is off unless a client asks for it.
    **{(search, "feedback_weight"): "default: 0.0, not 0.1" for search in SEARCHES},
    # In the body or the query, so the default is applied when neither has it.
    ("POST /backup", "prefix"): "default: None, not manual",
    ("POST /import", "source_remap"): "high: 500, not 200",
    # A setting bounds it: MAX_EXTRACT_MESSAGE_CHARS, by default 120,000.
    ("POST /memory/extract", "messages"): "high: None, not 120000",
}


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without references and without the alternative `null`."""
    while "$ref" in schema or "anyOf" in schema:
        if "$ref" in schema:
            target = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        else:
            [target] = [one for one in schema["anyOf"] if one.get("type") != "null"][:1]
        own = {name: value for name, value in schema.items() if name not in ("$ref", "anyOf")}
        schema = {**target, **own}
    return schema


def stated(operation: dict[str, Any], parameter: Parameter) -> dict[str, Any] | None:
    """The schema of a parameter, with `required`; None if it is not in the document."""
    if parameter.place == "body":
        body = resolved(operation["requestBody"]["content"]["application/json"]["schema"])
        schema = body.get("properties", {}).get(parameter.name)
        is_required = parameter.name in body.get("required", ())
    else:
        named = {(one["in"], one["name"]): one for one in operation.get("parameters", ())}
        found = named.get((parameter.place, parameter.name), {})
        schema, is_required = found.get("schema"), found.get("required", False)
    return None if schema is None else {**resolved(schema), "required": is_required}


def limits(schema: dict[str, Any]) -> tuple[float | None, float | None]:
    """The least and the greatest value, or length."""
    low = [schema[name] for name in ("minimum", "exclusiveMinimum", "minLength", "minItems") if name in schema]
    high = [schema[name] for name in ("maximum", "maxLength", "maxItems") if name in schema]
    return (low[0] if low else None, high[0] if high else None)


def choices(schema: dict[str, Any]) -> set[str]:
    alternatives = re.fullmatch(r"\^\(([\w|-]+)\)\$", schema.get("pattern", ""))
    return set(alternatives[1].split("|") if alternatives else schema.get("enum", ()))


def differences(operation: dict[str, Any], parameter: Parameter) -> list[str]:
    schema = stated(operation, parameter)
    if schema is None:
        return ["it is missing"]
    expected = {
        "type": (parameter.type.partition("[")[0].replace("list", "array"), schema.get("type")),
        "required": (parameter.required, schema["required"]),
        "choices": (set(parameter.choices), choices(schema)),
    }
    # A bound or a default where the reference has none changes nothing for its clients.
    for name, known, found in zip(("low", "high"), (parameter.low, parameter.high), limits(schema), strict=True):
        if known is not None:
            expected[name] = known, found
    if parameter.default is not None:
        expected["default"] = parameter.default, schema.get("default")
    return [f"{name}: {found}, not {known}" for name, (known, found) in expected.items() if found != known]


@for_all("name", list(PARAMETERS))
def test_an_operation_has_the_parameters_of_the_wire(name):
    method, path = name.split()
    operation = DOCUMENT["paths"][path][method.lower()]
    found = {(name, parameter.name): ", ".join(differences(operation, parameter)) for parameter in PARAMETERS[name]}
    wrong = {key: text for key, text in found.items() if text}
    assert wrong == {key: text for key, text in DEPARTURES.items() if key[0] == name}
