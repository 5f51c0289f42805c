"""The error body and the response to every handled error. A 500 does not reveal its cause; the log does."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from souvenir.core.errors import (
    PayloadTooLarge,
    SouvenirError,
    Unauthorized,
)

REQUEST_ID_HEADER = "X-Request-ID"

HandledError = SouvenirError | RequestValidationError | HTTPException
HANDLED = (SouvenirError, RequestValidationError, HTTPException)

MAX_ECHO_CHARS = 200
"""Maximum number of characters of a rejected value; enough to recognise it."""

MAX_FIELD_ERRORS = 100

_EXAMPLE_ID = "4f9c2a7d6b1e4c0f8a3d5e7b9c1f2a4d"


class ErrorBody(BaseModel):
    """The body of every 4xx and 5xx response."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"detail": "Memory ID 7 not found", "code": "memory_not_found", "request_id": _EXAMPLE_ID}]
        }
    )

    detail: str = Field(description="One sentence with the cause and the remedy.")
    code: str = Field(description="The stable name of the error.")
    request_id: str = Field(description="Also in the header X-Request-ID and in the log.")


class FieldError(BaseModel):
    """The error of one field."""

    type: str = Field(description="The stable name of the violated rule.")
    loc: list[str | int] = Field(description="The location of the field.")
    msg: str = Field(description="The rule in words.")
    input: Any = Field(default=None, description="The rejected value, truncated.")
    ctx: dict[str, Any] | None = Field(default=None, description="The parameters of the rule.")


class InvalidRequestBody(BaseModel):
    """The error body for invalid fields; `detail` lists them, or is one sentence."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "detail": [
                        {"type": "missing", "loc": ["body", "source"], "msg": "Field required", "input": {"text": "…"}}
                    ],
                    "code": "invalid_request",
                    "request_id": _EXAMPLE_ID,
                }
            ]
        }
    )

    detail: str | list[FieldError] = Field(description="The error of each field, or one sentence.")
    code: str = Field(description="The stable name of the error.")
    request_id: str = Field(description="Also in the header X-Request-ID and in the log.")


CODES = {400: "bad_request", 404: "not_found", 405: "method_not_allowed", 413: PayloadTooLarge.code}
_SENTENCES = {404: "No such route; GET /docs lists them all", 405: "This route does not take that method; see /docs"}

_DESCRIPTIONS: Mapping[int, str] = {
    400: "The request is no valid HTTP, or asks for nothing to be done.",
    401: "The API key is missing or wrong.",
    403: "The key lacks permission: its role is too low, or the namespace or source is outside its scope. Or a page of "
    "an origin outside of CORS_ORIGINS sent an unsafe request.",
    404: "The resource does not exist in this namespace.",
    409: "The current state forbids it: the memory is pinned or archived, the key is taken, or it is the last "
    "admin key.",
    412: "The current version does not match If-Match.",
    408: "The head or the body arrived too slowly.",
    413: "The body is larger than its route takes; `detail` names the limit.",
    415: "The Content-Type is not the one that the route takes.",
    422: "Fields are invalid.",
    421: "The name in the Host header is not one of the service's names.",
    429: "Too many requests are queued, a quota of the key is used up (`code` names it), or too many wrong keys were "
    "sent; Retry-After gives the time until the next attempt.",
    431: "The head of the request is larger than 64 KiB.",
    500: "Internal error; the log holds its cause under the request id.",
    501: "No EXTRACT_PROVIDER is set; or the database is in PostgreSQL, whose own tools do this.",
    503: "The service is unavailable: it is starting, shutting down, or a component has failed.",
}
_OPEN = (400, 408, 421, 431)
_ALWAYS = (*_OPEN, 401, 403, 413, 422, 429, 500, 503)


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documented error responses of a route: those of every route, and `statuses`."""
    return {
        status: {
            "description": _DESCRIPTIONS[status],
            "model": InvalidRequestBody if status == HTTPStatus.UNPROCESSABLE_ENTITY else ErrorBody,
        }
        for status in sorted({*_ALWAYS, *statuses})
    }


def open_error_responses() -> dict[int | str, dict[str, Any]]:
    """The documented error responses of routes that need no key."""
    return {status: {"description": _DESCRIPTIONS[status], "model": ErrorBody} for status in _OPEN}


def error_response(
    state: Mapping[str, Any], status: int, code: str, detail: Any, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """:param state: The request's state, which contains its id."""
    body = {"detail": detail, "code": code, "request_id": state.get("request_id", "")}
    if state.get("vendor_api"):
        body |= {"type": "error", "error": {"message": detail, "type": code, "param": None, "code": code}}
    return JSONResponse(body, status_code=status, headers=headers)


def headers_of(error: SouvenirError) -> dict[str, str]:
    """The headers of an error response."""
    headers: dict[str, str] = {}
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, Unauthorized):
        headers["WWW-Authenticate"] = "Bearer"
    return headers


def handled(state: dict[str, Any], error: HandledError) -> JSONResponse:
    """Return the response to an error raised by a route or the router; its code is recorded for the log."""
    headers: Mapping[str, str] | None = None
    detail: Any
    if isinstance(error, SouvenirError):
        status, code, detail, headers = error.status, error.code, error.detail, headers_of(error)
    elif isinstance(error, RequestValidationError):
        status, code = 422, "invalid_request"
        fields = error.errors()[:MAX_FIELD_ERRORS]
        detail = _sentence(fields[0]) if state.get("plain_errors") else [_field_error(field) for field in fields]
    else:
        status, code = error.status_code, CODES.get(error.status_code, "http_error")
        detail, headers = _SENTENCES.get(status, error.detail), error.headers
    state["error_code"] = code
    return error_response(state, status, code, detail, headers)


_TYPES = frozenset({"str", "int", "float", "bool", "constrained-str"})


def _sentence(field: Mapping[str, Any]) -> str:
    """The error of a field as one sentence; its place is without the type that pydantic names if it takes several."""
    names = [] if field["type"] == "json_invalid" else field["loc"][1:]
    place = ".".join(str(name) for name in names if name not in _TYPES and "[" not in str(name)) or "The body"
    return f"{place} cannot be used: {str(field['msg']).removeprefix('Value error, ')}"


def _field_error(field: Mapping[str, Any]) -> dict[str, Any]:
    error = {"type": field["type"], "loc": list(field["loc"]), "msg": field["msg"]}
    if "input" in field:
        error["input"] = _cut(field["input"])
    if field.get("ctx"):
        error["ctx"] = {
            name: _cut(value if isinstance(value, str | int | float | list) else str(value))
            for name, value in field["ctx"].items()
        }
    return error


def _cut(value: Any) -> Any:
    """The value if it is short and JSON, otherwise the start of its text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str):
        shown = value
    else:
        try:
            shown = json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            return f"<{type(value).__name__}>"
    if len(shown) <= MAX_ECHO_CHARS:
        return value
    return shown[:MAX_ECHO_CHARS] + "…"
