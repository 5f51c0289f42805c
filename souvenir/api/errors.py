"""The one error body, and the handlers that turn every error into it. A 500 says nothing of its cause; the log does."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from souvenir.errors import (
    DeadlineExceeded,
    HostNotAllowed,
    LLMUnavailable,
    Overloaded,
    PayloadTooLarge,
    ServiceClosing,
    SouvenirError,
    Unauthorized,
)

MAX_ECHO_CHARS = 200
"""Of a rejected value; enough to recognise it."""

MAX_FIELD_ERRORS = 100

_EXAMPLE_ID = "4f9c2a7d6b1e4c0f8a3d5e7b9c1f2a4d"


class ErrorBody(BaseModel):
    """What every answer of 4xx and 5xx holds."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"detail": "Memory ID 7 not found", "code": "memory_not_found", "request_id": _EXAMPLE_ID}]
        }
    )

    detail: str = Field(description="One sentence that says what to do.")
    code: str = Field(description="Stable name of the error.")
    request_id: str = Field(description="Also in the header X-Request-ID and in the log.")


class FieldError(BaseModel):
    """What is wrong with one field."""

    type: str = Field(description="Stable name of the rule that was broken.")
    loc: list[str | int] = Field(description="Where the field is.")
    msg: str = Field(description="The rule in words.")
    input: Any = Field(default=None, description="The rejected value, cut short.")
    ctx: dict[str, Any] | None = Field(default=None, description="The rule's parameters.")


class InvalidRequestBody(BaseModel):
    """The error body of a request with fields that cannot be used; `detail` lists them, or is a sentence."""

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

    detail: str | list[FieldError] = Field(description="What is wrong with each field, or one sentence.")
    code: str = Field(description="Stable name of the error.")
    request_id: str = Field(description="Also in the header X-Request-ID and in the log.")


CODES = {400: "bad_request", 404: "not_found", 405: "method_not_allowed", 413: PayloadTooLarge.code}
_SENTENCES = {404: "No such route; GET /docs lists them all", 405: "This route does not take that method; see /docs"}

_DESCRIPTIONS: Mapping[int, str] = {
    400: "Nothing to do.",
    401: "No API key, or a wrong one.",
    403: "The key may not do this: its role is too low, or it names a namespace or a source outside of its reach.",
    404: "What is named does not exist in this namespace.",
    409: "What stands against it has to be changed first: a pin, the archive, a key that is taken, the last admin key.",
    412: "What is to be changed is not the version that If-Match names.",
    408: "The body came too slowly.",
    413: "The body is larger than MAX_BODY_BYTES.",
    422: "Fields that cannot be used.",
    421: "The service is not known by the name in the Host header.",
    429: "Too many requests wait, or too many wrong keys were sent; Retry-After says when to come back.",
    500: "A fault of the service; the log holds its cause under the request id.",
    501: "No EXTRACT_PROVIDER is set.",
    503: "The service cannot do this now: it starts, closes, or has lost a part.",
}
_ALWAYS = (401, 403, 408, 413, 421, 422, 429, 500, 503)


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route for its documentation: those that every route has, and `statuses`."""
    return {
        status: {
            "description": _DESCRIPTIONS[status],
            "model": InvalidRequestBody if status == HTTPStatus.UNPROCESSABLE_ENTITY else ErrorBody,
        }
        for status in sorted({*_ALWAYS, *statuses})
    }


def host_refusal() -> dict[int | str, dict[str, Any]]:
    """The one error answer of routes that need no key."""
    status = HostNotAllowed.status
    return {status: {"description": _DESCRIPTIONS[status], "model": ErrorBody}}


def error_response(
    state: Mapping[str, Any], status: int, code: str, detail: Any, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """:param state: The request's state, which holds its id."""
    body = {"detail": detail, "code": code, "request_id": state.get("request_id", "")}
    return JSONResponse(body, status_code=status, headers=headers)


def _answer(request: Request, status: int, code: str, detail: Any, headers: Mapping[str, str] | None) -> JSONResponse:
    request.state.error_code = code
    return error_response(request.scope["state"], status, code, detail, headers)


def headers_of(error: SouvenirError) -> dict[str, str]:
    """What an answer says of an error beside its body."""
    headers: dict[str, str] = {}
    if isinstance(error, Overloaded | DeadlineExceeded | LLMUnavailable | ServiceClosing):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, Unauthorized):
        headers["WWW-Authenticate"] = "Bearer"
    return headers


async def _on_own_error(request: Request, error: SouvenirError) -> JSONResponse:
    return _answer(request, error.status, error.code, error.detail, headers_of(error))


async def _on_invalid_request(request: Request, error: RequestValidationError) -> JSONResponse:
    detail = [_field_error(field) for field in error.errors()[:MAX_FIELD_ERRORS]]
    return _answer(request, 422, "invalid_request", detail, None)


async def _on_http_error(request: Request, error: HTTPException) -> JSONResponse:
    code = CODES.get(error.status_code, "http_error")
    detail = _SENTENCES.get(error.status_code, error.detail)
    return _answer(request, error.status_code, code, detail, error.headers)


def add_error_handlers(app: FastAPI) -> None:
    """What is not handled here is a fault of ours, and answered as a 500 where requests are observed."""
    app.exception_handler(SouvenirError)(_on_own_error)
    app.exception_handler(RequestValidationError)(_on_invalid_request)
    app.exception_handler(HTTPException)(_on_http_error)


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
    """The value if it is short and JSON, else the beginning of how it reads."""
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
