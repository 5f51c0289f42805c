"""A route: its access control, its cost class, and the processing of its requests.

The caller is established first, then the body is read, and the rest waits for admission in its cost class
(`souvenir.server.admission`). The body is parsed strictly as JSON; the answer contains the fields that were set.

FastAPI declares, solves the parameters of and documents a route, and its own handler is not used: it moves to another
thread twice for a request, keeps two exit stacks and parses the content type as an e-mail, which together takes as long
as all the work done here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from copy import copy
from email.message import Message as EmailMessage
from enum import StrEnum
from functools import cache, lru_cache, partial
from time import perf_counter
from typing import Any

from fastapi import Response
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import request_body_to_args, solve_dependencies
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError, ResponseValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi.utils import create_model_field
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticUndefined
from starlette.convertors import PathConvertor
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope, Send

from souvenir.core.concurrency import Deadline, deadline
from souvenir.core.errors import BodyTooSlow, Overloaded, PayloadTooLarge, ServiceClosing, SouvenirError
from souvenir.core.telemetry import Stage
from souvenir.core.types import UNLIMITED, AccessLevel, Role
from souvenir.server.admission import Places
from souvenir.server.errors import error_responses
from souvenir.server.load_shedding import BodyProgress, CostClass, Refusal
from souvenir.server.request_guards import (
    EVERYTHING,
    GIVEN,
    GUARDS,
    NOTHING,
    OPEN_PATHS,
    Needs,
    admit,
    admit_again,
    charged_caller,
    establish_scope,
    once_of,
    part_credentials,
    require_access,
    settle_access,
    shown,
    shows_stored_content,
)
from souvenir.server.service import Service

Begin = Callable[[], Awaitable[asyncio.Future[Response]]]
"""Starts the work of a request, and returns its future response."""

Responses = Mapping[int | str, Mapping[str, Any]]

_ANY = TypeAdapter[Any](Any)

_BODY_REFUSALS: Mapping[type[SouvenirError], Refusal] = {
    Overloaded: Refusal.BODY_MEMORY,
    BodyTooSlow: Refusal.BODY_SLOW,
    ServiceClosing: Refusal.CLOSING,
}

_NO_EXIT_STACK = AsyncExitStack()
"""For FastAPI's solver. None of our dependencies is a generator, so it stays empty."""


class JsonRequest(Request):
    """A request whose body is either buffered, within the shared memory limit, or streamed."""

    held_bytes: int | None = None
    """The size of the buffered body; None without one."""

    streams_body = False
    """True if the route reads the body itself."""

    caller = ""
    """The caller to which the request is charged."""

    read_s = 0.0
    """When its body was read, by `perf_counter`; from then on it waits for its function to be called."""

    async def hold_body(self, service: Service, places: Places) -> bool:
        """Read the body before the request gets its place; return False if the client disconnected.

        :param places: Counts a refused body. :raises PayloadTooLarge: If it is too large.
        :raises Overloaded: If there is no memory for it. :raises BodyTooSlow: If it arrives too slowly.
        :raises ServiceClosing: If the service stops.
        """
        try:
            max_bytes = self.scope["state"]["max_body_bytes"]
            self._body = await service.bodies.read(self._receive, max_bytes, self.caller)
        except ClientDisconnect:
            return False
        except SouvenirError as error:
            if (reason := _BODY_REFUSALS.get(type(error))) is not None:
                places.count(reason)
            raise
        self.held_bytes = len(self._body)
        return True

    def stream_body(self, until: Deadline) -> None:
        """Restart the deadline at each window of a streamed body and at its end.

        Reading it raises `PayloadTooLarge` once it exceeds the limit.
        """
        receive, max_bytes = self._receive, self.scope["state"]["max_body_bytes"]
        progress, size = BodyProgress(), 0

        async def bounded() -> Message:
            nonlocal size
            message = await receive()
            if message["type"] == "http.request":
                part = len(message.get("body", b""))
                size += part
                if size > max_bytes:
                    raise PayloadTooLarge(max_bytes)
                if progress.came(part) or not message.get("more_body", False):
                    until.renew()
            return message

        self._receive = bounded

    async def answer_in(self, places: Places, begin: Begin, service: Service) -> Response:
        """Return the response of the request, which starts at its turn.

        :raises Overloaded: If it would wait too long, or does. :raises DeadlineExceeded: If it is not done in time.
        :raises ServiceClosing: If its turn has not come when the service stops.
        """
        settings, caller = service.settings, self.caller
        try:
            with deadline(settings.request_timeout_s, caller=caller, max_tokens=settings.max_request_tokens) as until:
                turn = await places.enter(caller, service.bodies, self.held_bytes or 0)
                until.leave = partial(asyncio.get_running_loop().call_soon_threadsafe, turn.end)
                try:
                    if self.streams_body:
                        self.stream_body(until)
                    elif turn.waited and await self.is_disconnected():
                        turn.end()
                        return places.left()
                    work = await begin()
                except BaseException:
                    turn.end()
                    raise
                return await turn.answer(work, until, self._disconnected)
        except Overloaded:
            await places.pause()
            raise

    async def _disconnected(self) -> None:
        """Return when the client has disconnected; never while a body is streamed, since its route reads it."""
        if self.streams_body:
            await asyncio.Event().wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def json(self) -> Any:
        """Parse the body. Lone surrogates, invalid UTF-8 and excessive nesting are refused.

        :raises json.JSONDecodeError: If it is not JSON.
        """
        if not hasattr(self, "_json"):
            try:
                self._json = _ANY.validate_json(await self.body())
            except ValidationError as error:
                raise json.JSONDecodeError(error.errors()[0]["msg"], "", 0) from error
        return self._json


MAX_LISTED_ERRORS = 1_000
"""Maximum number of errors of a body that are listed; above, only their number is reported."""


class Idempotency(StrEnum):
    """The effect of a repeated request."""

    KEYED = "keyed"  # no effect, if it has the same Idempotency-Key
    SAFE = "safe"  # no effect on the second request
    NEVER = "never"  # repeated, or refused


class JsonRoute(APIRoute):
    """A route with its cost class, access rules and client method.

    :param cost: Its cost class.
    :param access: The levels that an agent must grant to a key without the admin role; by default every level for
    routes that read, and none for routes that write, since an agent may store any text.
    :param errors: The statuses of its errors in addition to those that every guarded route has.
    :param sdk: The client's method; None for a route that is not part of the API.
    :param plain_errors: Whether the `detail` of invalid fields is one sentence, instead of a list.
    :param vendor_api: Whether it is part of the API of a model's vendor: Authorization and X-API-Key may be for the
    vendor (`part_credentials`), and errors have the form that its clients read.
    :param idempotent: Whether it can be repeated safely; by default for GET and PUT.
    """

    def __init__(
        self,
        *args: Any,
        cost: CostClass,
        access: Needs | None = None,
        sdk: str | None = None,
        idempotent: bool | None = None,
        plain_errors: bool = False,
        vendor_api: bool = False,
        errors: Sequence[int] = (),
        responses: Responses | None = None,
        **options: Any,
    ) -> None:
        self.cost = cost
        self._access, self._idempotent, self._plain_errors = access, idempotent, plain_errors
        self._vendor_api = vendor_api
        options["response_model_exclude_unset"] = True
        super().__init__(*args, generate_unique_id_function=lambda route: route.name, **options)
        self._describe_responses(error_responses(*errors) if self.role else {}, responses or {})
        # The parameters for FastAPI's solver; the others are given.
        self._given = {
            one.name: GIVEN[one.call] for one in self.dependant.dependencies if one.name and one.call in GIVEN
        }
        self._to_solve = _without_guards(self.dependant)
        self._to_solve.dependencies = [one for one in self._to_solve.dependencies if one.call not in GIVEN]
        self._body_params, self._to_solve.body_params = self._to_solve.body_params, []
        if len(self._body_params) > 1 or self._embed_body_fields:
            raise ValueError(f"{self.name} must declare its body as one model")
        body_types: list[Any] = [field.field_info.annotation for field in self._body_params]
        self._body_type = TypeAdapter[Any](body_types[0]) if body_types else None
        self._takes_body_only = self._body_type is not None and not (
            self._to_solve.dependencies
            or self._to_solve.path_params
            or self._to_solve.query_params
            or self._to_solve.header_params
            or self._to_solve.cookie_params
            or self._to_solve.response_param_name
        )
        self._is_async = asyncio.iscoroutinefunction(self.endpoint)
        self._guard, self._levels = self.role, self.access
        self._is_filtered = AccessLevel.QUICK not in self._levels and shows_stored_content(self.response_model)
        if self.role is None and self.path not in OPEN_PATHS:
            raise ValueError(f"{self.name} declares no role: take Reader, Writer or Admin as its scope")
        self.app = self._serve
        if self.include_in_schema:
            if sdk is None:
                raise ValueError(f"{self.name} is in the OpenAPI document and needs an SDK name")
            self.openapi_extra = {**(self.openapi_extra or {}), **self._extensions(sdk)}

    @property
    def role(self) -> Role | None:
        """The minimum role that may call it, from its declared guards; None if it is open."""
        guards = [GUARDS[call] for call in _called_by(self.dependant) if call in GUARDS]
        return max(guards, key=list(Role).index, default=None)

    @property
    def access(self) -> Needs:
        """The access levels that it needs."""
        if self._access is not None:
            return self._access
        return EVERYTHING if self.role is Role.READ_ONLY else NOTHING

    @property
    def idempotency(self) -> Idempotency:
        if once_of in _called_by(self.dependant):
            return Idempotency.KEYED
        by_method = not {"GET", "PUT"}.isdisjoint(self.methods or ())
        return Idempotency.SAFE if (by_method if self._idempotent is None else self._idempotent) else Idempotency.NEVER

    def _describe_responses(self, errors: Responses, own: Responses) -> None:
        described = {status: {**errors.get(status, {}), **own.get(status, {})} for status in [*errors, *own]}
        models = {status: response.pop("model") for status, response in described.items() if "model" in response}
        # FastAPI would build the same error bodies again for each route: a tenth of the import time.
        self.responses = described
        self.response_fields = {status: _field_of(model) for status, model in models.items()}

    def _extensions(self, sdk: str) -> dict[str, Any]:
        extensions: dict[str, Any] = {
            "x-sdk-name": sdk,
            "x-cost": self.cost.value,
            "x-role": self.role.value if self.role else "open",
            "x-access": sorted(level.value for level in self.access),
            "x-idempotency": self.idempotency.value,
        }
        multi = [name for name, kind in self.param_convertors.items() if isinstance(kind, PathConvertor)]
        return {**extensions, "x-multi-segment": multi} if multi else extensions

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self
        scope["state"]["plain_errors"] = self._plain_errors
        request = JsonRequest(scope, receive)
        if self._vendor_api:
            part_credentials(request)
        if self._guard is not None:
            establish_scope(request, admit(request), self._guard)
        service: Service = scope["state"]["service"]
        places = service.admission.places.get(self.cost)
        if places is None:
            request.read_s = perf_counter()
            response = await (await self._begun(request, service))
        else:
            request.caller = charged_caller(request)
            request.streams_body = self._is_async and self.body_field is None
            if self.body_field is not None and places.free <= 0:
                await places.require_space(request.caller)
            if self.body_field is None or await request.hold_body(service, places):
                request.read_s = perf_counter()
                response = await request.answer_in(places, partial(self._begun, request, service), service)
            else:
                response = places.left()
        await response(scope, receive, send)

    async def _begun(self, request: JsonRequest, service: Service) -> asyncio.Future[Response]:
        """Return the future response, once the caller, their access and the parameters are known.

        :raises RequestValidationError: If a parameter or the body is invalid.
        """
        if self._guard is not None:
            state = request.scope["state"]
            if service.authenticator.keys.generation != state["keys"]:
                # Reading the body and waiting may have taken long, and revoking a key takes effect at once.
                establish_scope(request, admit_again(request), self._guard)
            if (self._levels or self._is_filtered) and state["role"] is not Role.ADMIN:
                await settle_access(request)
                require_access(request, self._levels)
        arguments, errors = await self._body_argument(request)
        declared = None
        if not self._takes_body_only:
            scope = request.scope
            scope["fastapi_inner_astack"] = scope["fastapi_function_astack"] = _NO_EXIT_STACK
            solved = await solve_dependencies(
                request=request,
                dependant=self._to_solve,
                async_exit_stack=_NO_EXIT_STACK,
                embed_body_fields=False,
            )
            arguments, errors, declared = {**solved.values, **arguments}, [*solved.errors, *errors], solved.response
        elif (name := self._to_solve.request_param_name) is not None:
            arguments[name] = request
        if errors:
            raise RequestValidationError(errors)
        request.scope["state"]["arguments"] = arguments
        for name, given in self._given.items():
            arguments[name] = given(request.scope["state"])
        if self._is_async:
            return asyncio.ensure_future(self._answer_async(request, arguments, declared))
        return service.threads.run(self._answer, request, arguments, declared)

    async def _body_argument(self, request: JsonRequest) -> tuple[dict[str, Any], list[Any]]:
        """Return the argument for the body, and its errors.

        JSON is parsed strictly: 0 is no boolean, and neither "5" nor 1.0 is an integer. FastAPI would take all of them.

        :raises RequestValidationError: If the body is not JSON.
        """
        if self._body_type is None:
            return {}, []
        body = await request.body()
        if not body or not _declares_json(request.scope["state"]["headers"].get(b"content-type", b"")):
            return await request_body_to_args(self._body_params, body or PydanticUndefined, False)
        try:
            return {self._body_params[0].name: self._body_type.validate_json(body, strict=True)}, []
        except ValidationError as error:
            if (count := error.error_count()) > MAX_LISTED_ERRORS:
                # Listing them would hold the event loop up.
                return {}, [{"type": "too_many_errors", "loc": ("body",), "msg": f"the body has {count:,} errors"}]
            errors = error.errors(include_url=False)
        if errors[0]["type"] == "json_invalid":
            detail = {"type": "json_invalid", "loc": ("body", 0), "msg": "JSON decode error", "input": {}}
            raise RequestValidationError([{**detail, "ctx": {"error": errors[0]["msg"]}}], body="")
        return {}, [{**one, "loc": ("body", *one["loc"])} for one in errors]

    def _answer(self, request: JsonRequest, arguments: dict[str, Any], declared: Response | None) -> Response:
        """Call the route's function on the thread of the request, and serialise its result."""
        waited_s = perf_counter() - request.read_s
        try:
            result = self.endpoint(**arguments)
        finally:
            _note_queue(request, waited_s)
        return self._rendered(request, result, declared)

    async def _answer_async(
        self, request: JsonRequest, arguments: dict[str, Any], declared: Response | None
    ) -> Response:
        _note_queue(request, perf_counter() - request.read_s)
        result = await self.endpoint(**arguments)
        if isinstance(result, Response):
            return result
        service: Service = request.scope["state"]["service"]
        response: Response = await service.threads.run(self._rendered, request, result, declared)
        return response

    def _rendered(self, request: Request, result: Any, declared: Response | None) -> Response:
        """:param declared: Status and headers set by the function."""
        if isinstance(result, Response):
            return result
        service: Service = request.scope["state"]["service"]
        with service.instruments.stage(Stage.REQUEST_SERIALISE):
            return self._serialised(request, result, declared)

    def _serialised(self, request: Request, result: Any, declared: Response | None) -> Response:
        status = (declared and declared.status_code) or self.status_code or 200
        if self.response_field is None:
            return JSONResponse(jsonable_encoder(result), status)
        value, errors = self.response_field.validate(result, {}, loc=("response",))
        if errors:
            raise ResponseValidationError(errors=errors, body=result)
        if self._is_filtered:
            value = shown(value, request.scope["state"].get("access", UNLIMITED))
        response = Response(
            self.response_field.serialize_json(value, exclude_unset=True), status, media_type="application/json"
        )
        if declared is not None:
            response.raw_headers.extend(declared.raw_headers)
        return response


def _note_queue(request: JsonRequest, waited_s: float) -> None:
    service: Service = request.scope["state"]["service"]
    service.instruments.took(Stage.REQUEST_QUEUE, waited_s)


@lru_cache(maxsize=64)
def _declares_json(content_type: bytes) -> bool:
    message = EmailMessage()
    message["content-type"] = content_type.decode("latin-1")
    subtype = message.get_content_subtype()
    return message.get_content_maintype() == "application" and (subtype == "json" or subtype.endswith("+json"))


def _without_guards(dependant: Dependant) -> Dependant:
    """The same dependant without the guards' parameters for the OpenAPI document."""
    bare = copy(dependant)
    is_guard = dependant.call in GUARDS
    bare.dependencies = [] if is_guard else [_without_guards(one) for one in dependant.dependencies]
    bare.header_params = [] if is_guard else dependant.header_params
    return bare


def _called_by(dependant: Dependant) -> Iterator[Any]:
    """Yield the dependencies of a route, recursively."""
    for one in dependant.dependencies:
        yield one.call
        yield from _called_by(one)


@cache
def _field_of(model: type[BaseModel]) -> Any:
    return create_model_field(f"Response_{model.__name__}", model, mode="serialization")
