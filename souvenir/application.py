"""The application: every route, the middleware around them, and the life span of the service behind them.

Importing this module opens no files and reads no settings.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import structlog
from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

import souvenir.api
import souvenir.compat
from souvenir import VERSION
from souvenir.api import message_search, transfer
from souvenir.api.parameters import TOTAL_COUNT_HEADER
from souvenir.api.transfer_lines import ReadAs
from souvenir.api.verification import ANSWERED_HEADER, QUOTE_HEADER, REASON_HEADER
from souvenir.compat.proxy import close_proxy
from souvenir.core.files import PRIVATE_UMASK
from souvenir.core.settings import Settings
from souvenir.core.types import Embedder
from souvenir.mcp.endpoint import McpEndpoint
from souvenir.memories.reembedding import MakeEmbedder
from souvenir.server.errors import REQUEST_ID_HEADER
from souvenir.server.logs import configure_logging
from souvenir.server.middleware import Dispatcher, RequestMiddleware
from souvenir.server.openapi import complete
from souvenir.server.origins import ANY_ORIGIN, allowed_origins
from souvenir.server.request_guards import REPLAYED_HEADER
from souvenir.server.routing import analysed, discovered_routes
from souvenir.server.service import Service

log = structlog.get_logger(__name__)

DESCRIPTION = (
    "A memory service for agents: it searches by meaning and by words, and every acknowledged write is durable. "
    "Send the key as `X-API-Key`, `Authorization: Bearer KEY` or `Authorization: Token KEY`, and select a namespace "
    "with `X-Namespace`."
)


class Application(FastAPI):
    """FastAPI, with our middleware only.

    `RequestMiddleware` and `Dispatcher` answer errors, so FastAPI's own layers for that are left out.
    """

    def __init__(self, settings: Settings, open_service: Callable[[], Service]) -> None:
        mcp = McpEndpoint(settings)

        @asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[None]:
            configure_logging(settings.log_level, settings.log_format)
            app.state.service = await asyncio.to_thread(open_service)
            _warn_of_unknown_settings(settings)
            _warn_if_open(settings, app.state.service)
            # A streamed answer never waits for a thread.
            current_default_thread_limiter().total_tokens = app.state.service.admission.threads
            try:
                async with mcp.running():
                    yield
            finally:
                await close_proxy(app.state)
                await asyncio.to_thread(app.state.service.close)

        super().__init__(
            title="Souvenir",
            version=VERSION,
            description=DESCRIPTION,
            lifespan=lifespan,
            openapi_url=None,
            # Clients refuse redirects.
            redirect_slashes=False,
            middleware=_middleware(settings),
            # FastAPI's own telemetry would record paths and query strings; ours (souvenir.core.telemetry) does not.
            telemetry={"auto_configure": False, "tracing": False, "metrics": False, "logs": False},
        )
        self._settings = settings
        # Not include_router, which copies every route and adds some 0.3 s to the first request.
        self.router.routes.extend(discovered_routes(souvenir.api, souvenir.compat))
        self.router.routes.extend(mcp.routes())

    def openapi(self) -> dict[str, Any]:
        """Return FastAPI's document, completed (`souvenir.server.openapi`); made once."""
        if self.openapi_schema is None:
            document = get_openapi(
                title=self.title, version=self.version, description=self.description, routes=analysed(self.routes)
            )
            complete(document)
            self.openapi_schema = document
        return self.openapi_schema

    def build_middleware_stack(self) -> ASGIApp:
        sizes = {transfer.IMPORT_PATH: self._settings.import_max_bytes}
        stack: ASGIApp = Dispatcher(self.router, max_body_bytes=self._settings.max_body_bytes, max_bytes_of=sizes)
        for middleware, args, options in reversed(self.user_middleware):
            stack = middleware(stack, *args, **options)
        return stack


def create_app(
    settings: Settings | None = None, embedder: Embedder | None = None, make_embedder: MakeEmbedder | None = None
) -> FastAPI:
    """Create the application. It opens its store when it starts.

    :param settings: Read from the environment if not given.
    :param embedder: By default the model that made the vectors, or else the configured one.
    :param make_embedder: Creates the embedder of another model; by default the factory.
    """
    chosen = settings or Settings()
    return Application(chosen, lambda: Service.open(chosen, ReadAs(), embedder, make_embedder))


def _middleware(settings: Settings) -> list[Middleware]:
    """The middleware, outermost first."""
    cors = Middleware(
        CORSMiddleware,
        allow_origins=allowed_origins(settings),
        allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
        allow_headers=["*"],
        expose_headers=[
            REQUEST_ID_HEADER,
            "Retry-After",
            "ETag",
            TOTAL_COUNT_HEADER,
            REPLAYED_HEADER,
            message_search.DEGRADED_HEADER,
            ANSWERED_HEADER,
            QUOTE_HEADER,
            REASON_HEADER,
        ],
    )
    return [Middleware(RequestMiddleware, settings=settings), *([cors] if settings.cors_origins else [])]


def _warn_of_unknown_settings(settings: Settings) -> None:
    for name in settings.unknown_saved():
        log.warning(
            "unknown_setting",
            name=name,
            file=str(settings.config_file),
            action="correct the name, or take it out with `souvenir config unset`; docs/configuration.md has all names",
        )


def _warn_if_open(settings: Settings, service: Service) -> None:
    if not service.authenticator.is_open:
        return
    if settings.serves_network:
        log.warning(
            "open_to_everyone",
            host=settings.host,
            reason="everyone who can connect is admin: ALLOW_OPEN is set, there is no API_KEY and no key was made",
            action="unset ALLOW_OPEN, and the next start makes an admin key; or set API_KEY",
        )
    if ANY_ORIGIN in settings.cors_origins:
        log.warning(
            "open_to_every_page",
            reason="every page in a browser on this machine is admin: CORS_ORIGINS is * and requests need no key",
            action="name the origins in CORS_ORIGINS, or set API_KEY",
        )


def __getattr__(name: str) -> object:
    """Create `app` at its first access, as `uvicorn app:app` does."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    os.umask(PRIVATE_UMASK)
    return globals().setdefault(name, create_app())
