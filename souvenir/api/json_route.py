"""A route whose body is read strictly as JSON and from callers with a key only, and whose answer holds what was set.

It is worked on when it is its turn among the requests of its cost (`souvenir.api.admission`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from fastapi.utils import create_model_field
from pydantic import BaseModel, TypeAdapter, ValidationError

from souvenir.api.admission import cost_of
from souvenir.api.caller import (
    GUARDS,
    admit,
    look_again,
    require_access,
    scope_of,
    sent_key,
    service_of,
    settle_access,
)
from souvenir.api.intake import HeldRequest, answer
from souvenir.api.levels import NOTHING, needed_by
from souvenir.types import Role

_ANY = TypeAdapter[Any](Any)


class JsonRequest(HeldRequest):
    async def json(self) -> Any:
        """The body. A lone surrogate, bytes that are not UTF-8 and nesting without end are no JSON.

        :raises json.JSONDecodeError: Which FastAPI answers with 422.
        """
        if not hasattr(self, "_json"):
            try:
                self._json = _ANY.validate_json(await self.body())
            except ValidationError as error:
                raise json.JSONDecodeError(error.errors()[0]["msg"], "", 0) from error
        return self._json


class JsonRoute(APIRoute):
    def __init__(self, *args: Any, **options: Any) -> None:
        options["response_model_exclude_unset"] = True
        responses = options.pop("responses", None) or {}
        models = {status: response["model"] for status, response in responses.items() if "model" in response}
        # FastAPI would build the same error bodies anew for each route: a tenth of the time that importing takes.
        described = {status: {**response, "model": None} for status, response in responses.items()}
        super().__init__(*args, responses=described, **options)
        self.response_fields = {status: _field_of(model) for status, model in models.items()}

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        cost, holds_body = cost_of(self.name), self.body_field is not None
        needed = next((GUARDS[one.call] for one in self.dependant.dependencies if one.call in GUARDS), None)
        levels = needed_by(self.name) if needed is Role.READ_ONLY else NOTHING

        async def handle_json(request: Request) -> Response:
            if needed is not None:
                # The dependency does this too, but FastAPI asks it only after the body was read.
                caller = admit(request, await sent_key(request))
                scope_of(request, caller, needed, request.headers.get("X-Namespace"))
            return await in_turn(JsonRequest(request.scope, request.receive))

        async def handle_as_of_now(request: Request) -> Response:
            if needed is not None:
                # Body and turn may have taken long, and keys are revoked at once.
                await look_again(request)
                await settle_access(request)
                require_access(request, levels)
            return await handle(request)

        async def in_turn(request: JsonRequest) -> Response:
            service = service_of(request)
            lane = service.admission.lane(cost)
            if lane is None:
                return await handle(request)
            timeout_s, bodies = service.settings.request_timeout_s, service.bodies
            return await answer(request, handle_as_of_now, lane, bodies, holds_body=holds_body, timeout_s=timeout_s)

        return handle_json


@cache
def _field_of(model: type[BaseModel]) -> Any:
    return create_model_field(f"Response_{model.__name__}", model, mode="serialization")


def router(tag: str) -> APIRouter:
    return APIRouter(route_class=JsonRoute, tags=[tag], generate_unique_id_function=lambda route: route.name)
