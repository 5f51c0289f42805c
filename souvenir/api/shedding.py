"""Refuses what there is no room for before it begins: before its body, its key and its route are looked at.

An application spends about a millisecond on a request that it refuses in the end, all of it on the event loop; five
times as many requests as can be served would leave no time to serve any. This spends a tenth of that. It knows routes
without parameters in their path; others are refused by `souvenir.api.intake`, and so is what is not served by us.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from souvenir.api.admission import Admission, Lane, cost_of
from souvenir.api.counters import RequestCounters, RouteName
from souvenir.api.observer import REQUEST_ID_HEADER, request_id_of
from souvenir.errors import Overloaded


class Shedding:
    """Called with the method and the target of a request; answers one that would wait too long."""

    def __init__(self, routes: Iterable[BaseRoute], admission: Admission, counters: RequestCounters) -> None:
        self._counters = counters
        self._lanes: Mapping[tuple[bytes, bytes], tuple[RouteName, Lane]] = {
            (method.encode(), route.path.encode()): (RouteName(method, route.path), lane)
            for route in routes
            if isinstance(route, APIRoute) and not route.param_convertors
            for method in route.methods or ()
            if (lane := admission.lane(cost_of(route.name))) is not None
        }

    def __call__(self, method: bytes, target: bytes) -> ASGIApp | None:
        found = self._lanes.get((method, target.partition(b"?")[0]))
        if found is None or (overloaded := found[1].refusal()) is None:
            return None
        self._counters.refuse(found[0], overloaded.status, overloaded.code)
        return _Refused(overloaded)


class _Refused:
    """An application that answers one request with an error, in the one error body."""

    def __init__(self, error: Overloaded) -> None:
        self._error = error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = request_id_of(scope)
        body = {"detail": self._error.message, "code": self._error.code, "request_id": request_id}
        content = json.dumps(body).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(content)),
            (b"retry-after", b"%d" % self._error.retry_after_s),
            (REQUEST_ID_HEADER.lower().encode(), request_id.encode()),
        ]
        await send({"type": "http.response.start", "status": self._error.status, "headers": headers})
        await send({"type": "http.response.body", "body": content})
