"""The HTTP boundary: the application with its routers, error body and life span, and the command line.

    python app.py                 serve on HOST:PORT
    python app.py check           compare the database with itself, while no service runs on it
    python app.py restore NAME    put a backup in the place of the database, while no service runs on it

Importing this opens nothing and reads no setting; `uvicorn app:app` asks for `app`, which is then made.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import structlog
from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI
from pydantic import ValidationError
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from memory_engine import MemoryEngine
from souvenir.api import (
    VERSION,
    agent_access,
    agent_export,
    agent_graph,
    agent_search,
    agents,
    audit,
    backups,
    blocks,
    concept_relations,
    concepts,
    conflicts,
    context,
    deletes,
    describing,
    docs,
    duplicates,
    erasing,
    extraction,
    facts,
    figures,
    graph,
    health,
    history,
    insights,
    jobs,
    keys,
    ledger,
    links,
    locrit_changes,
    locrit_search,
    locrits,
    maintenance,
    messages,
    privacy,
    profiles,
    reads,
    removals,
    replacing,
    search,
    sessions,
    tags,
    tending,
    tiers,
    topics,
    transfer,
    users,
    windows,
    writes,
)
from souvenir.api.body_limit import BodyLimit
from souvenir.api.connections import ConnectionLimit, ServerConfig, serve_until_told
from souvenir.api.counters import RequestCounters
from souvenir.api.errors import add_error_handlers
from souvenir.api.host_check import HostCheck, allowed_names, is_loopback
from souvenir.api.logs import configure_logging
from souvenir.api.observer import REQUEST_ID_HEADER, RequestObserver
from souvenir.api.once import REPLAYED_HEADER
from souvenir.api.pages import TOTAL_COUNT_HEADER
from souvenir.api.service import Service
from souvenir.api.shedding import Shedding
from souvenir.api.traces import RequestTraces
from souvenir.errors import SouvenirError
from souvenir.mcp.endpoint import McpEndpoint
from souvenir.reembedding.choice import MakeEmbedder, chosen_model
from souvenir.settings import Settings
from souvenir.store.restore import restore_offline
from souvenir.types import Embedder

log = structlog.get_logger(__name__)

ROUTES = (
    *(health, search, writes, replacing, conflicts, reads, facts, tags, history, links, graph, deletes, duplicates),
    *(agents, agent_access, agent_search, users, agent_export, agent_graph, messages, sessions, removals),
    *(concepts, concept_relations, describing, topics, insights, locrit_search),
    *(locrits, locrit_changes),
    *(blocks, context, tiers, windows, privacy, erasing),
    *(extraction, ledger, profiles, transfer, jobs, backups, keys, audit, maintenance, tending, figures, docs),
)

DESCRIPTION = (
    "A memory service for agents: it finds what was said by meaning and by words, and loses nothing that it "
    "acknowledged. Send the key as `X-API-Key` or `Authorization: Bearer KEY`, and name a namespace with `X-Namespace`."
)


def create_app(
    settings: Settings | None = None, embedder: Embedder | None = None, make_embedder: MakeEmbedder | None = None
) -> FastAPI:
    """The application. It opens its store when it starts, not before.

    :param settings: Read from the environment if not given.
    :param embedder: The model that made the vectors, or else the one that the settings name, if not given.
    :param make_embedder: Makes the embedder of another model; the factory does if not given.
    """
    chosen = settings or Settings()
    counters = RequestCounters()
    return _build_app(chosen, counters, lambda: Service.open(chosen, counters, embedder, make_embedder))


def _build_app(settings: Settings, counters: RequestCounters, open_service: Callable[[], Service]) -> FastAPI:
    mcp = McpEndpoint(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        configure_logging(settings.log_level, settings.log_format)
        app.state.service = await asyncio.to_thread(open_service)
        _warn_of_unknown_settings(settings)
        _warn_if_open_to_a_network(settings, app.state.service)
        # No request that was let in waits for a thread.
        current_default_thread_limiter().total_tokens = app.state.service.admission.threads
        try:
            async with mcp.running():
                yield
        finally:
            await asyncio.to_thread(app.state.service.close)

    app = FastAPI(
        title="Souvenir",
        version=VERSION,
        description=DESCRIPTION,
        lifespan=lifespan,
        openapi_url=None,
        # Clients refuse redirects.
        redirect_slashes=False,
        middleware=_middleware(settings, counters),
        # FastAPI's own would note paths and query strings; ours (souvenir.observation.tracing) does not.
        telemetry={"auto_configure": False, "tracing": False, "metrics": False, "logs": False},
    )
    add_error_handlers(app)
    for noun in ROUTES:
        # Not include_router, which makes every route anew, for some 0.3 s of the first request.
        app.router.routes.extend(noun.routes.routes)
    app.router.routes.extend(mcp.routes())
    return app


def _warn_of_unknown_settings(settings: Settings) -> None:
    for name in settings.unknown_saved():
        log.warning(
            "unknown_setting",
            name=name,
            file=str(settings.config_file),
            action="correct the name, or take it out with `souvenir config unset`; docs/configuration.md has all names",
        )


def _warn_if_open_to_a_network(settings: Settings, service: Service) -> None:
    if not (is_loopback(settings.host) or settings.api_key or service.keys.any_made):
        log.warning(
            "open_to_everyone",
            host=settings.host,
            reason="everyone who can connect is admin: there is no API_KEY and no key was made",
            action="set API_KEY, or make an admin key with POST /api/keys, or set HOST to 127.0.0.1",
        )


def _middleware(settings: Settings, counters: RequestCounters) -> list[Middleware]:
    """Outermost first."""
    chosen = [
        Middleware(RequestTraces),
        Middleware(RequestObserver, counters=counters),
        Middleware(ConnectionLimit, max_connections=settings.max_connections),
    ]
    names = allowed_names(settings)
    if names is not None:
        chosen.append(Middleware(HostCheck, names=names))
    if settings.cors_origins:
        chosen.append(
            Middleware(
                CORSMiddleware,
                allow_origins=settings.cors_origins,
                allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
                allow_headers=["*"],
                expose_headers=[
                    REQUEST_ID_HEADER,
                    "Retry-After",
                    "ETag",
                    TOTAL_COUNT_HEADER,
                    REPLAYED_HEADER,
                    messages.DEGRADED_HEADER,
                ],
            )
        )
    max_bytes_of = {transfer.IMPORT_PATH: settings.import_max_bytes}
    return [*chosen, Middleware(BodyLimit, max_body_bytes=settings.max_body_bytes, max_bytes_of=max_bytes_of)]


def serve(settings: Settings) -> int:
    """Run until a signal says stop. The store is opened first, so that a refusal is one sentence and no trace.

    :raises StoreUnusable: If the data folder must not be opened.
    """
    configure_logging(settings.log_level, settings.log_format)
    counters = RequestCounters()
    service = Service.open(settings, counters)
    app = _build_app(settings, counters, lambda: service)
    shed = Shedding(app.routes, service.admission, counters)
    serve_until_told(ServerConfig(app, settings, shed=shed, on_stop=service.refuse_what_waits))
    return 0


def check(settings: Settings) -> int:
    """Print every disagreement that the engine finds."""
    engine = MemoryEngine.open(settings, chosen_model(settings)[0])
    try:
        engine.warm_up()
        problems = engine.check()
    finally:
        engine.close()
    for problem in problems:
        _say(problem)
    _say(f"{len(problems)} problems in {settings.database_path}" if problems else f"{settings.database_path} is sound")
    return 1 if problems else 0


def restore(settings: Settings, name: str) -> int:
    """Put a backup in the place of the database, and print where the files that it replaced are."""
    done = restore_offline(settings, name)
    _say(f"Restored {name} to {settings.database_path}")
    for path in done.kept:
        _say(f"What was there before is kept as {path}")
    if not done.keys_carried_over:
        _say(
            "The keys are those of the backup, since the present ones could not be read: revoke what you revoked since"
        )
        _say("What was erased after the newest backup may be back for the same reason: erase it again")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="app.py", description="Souvenir, a memory service for agents.")
    commands = parser.add_subparsers(dest="command", metavar="command")
    commands.add_parser("serve", help="answer requests on HOST:PORT (the default)")
    commands.add_parser("check", help="compare the database with itself, while no service runs on it")
    commands.add_parser("restore", help="go back to a backup, while no service runs").add_argument("name")
    command = parser.parse_args(arguments)
    try:
        settings = Settings()
        match command.command:
            case "check":
                return check(settings)
            case "restore":
                return restore(settings, command.name)
            case _:
                return serve(settings)
    except ValidationError as error:
        for field in error.errors(include_input=False, include_url=False):
            _complain(f"The setting {'_'.join(map(str, field['loc'])).upper()} cannot be used: {field['msg']}")
        return 2
    except SouvenirError as error:
        _complain(error.message)
        return 1


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def _complain(line: str) -> None:
    sys.stderr.write(line + "\n")


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = app = create_app()
    return app


if __name__ == "__main__":
    sys.exit(main())
