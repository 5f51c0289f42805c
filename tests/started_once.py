"""Start-up work that all forked programs share, done once before they are forked (`tests.forking`)."""

from __future__ import annotations

import gc
import sys
from contextlib import closing
from importlib import import_module
from pathlib import Path

import apsw
import pydantic.v1  # noqa: F401 - FastAPI imports it with the first route that it analyses, in a third of a second

import souvenir.api
import souvenir.compat
from souvenir.api import page
from souvenir.core.settings import Settings
from souvenir.privacy.rules import PrivacyRules
from souvenir.server.routing import analysed, discovered_routes
from souvenir.store.sqlite.schema import migrate

IMPORTED_LATE = (
    "anyio._backends._asyncio",
    "encodings.idna",
    "fastapi.telemetry",
    "fastapi.telemetry._runtime",
    "onnxruntime",
    "souvenir_client.cli.mcp",
    "souvenir_client.mcp.bridge",
    "souvenir_client.mcp.embedded",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.loops.uvloop",
)
"""What a service, or a bridge of an editor, imports when it starts to serve."""

analysed(discovered_routes(souvenir.api, souvenir.compat))
PrivacyRules.load(Settings(_env_file=None).privacy_rules_path)  # type: ignore[call-arg]
page.digest()
with closing(apsw.Connection(":memory:")) as database:
    # The first database of a process has every migration applied; others are copies of it.
    migrate(database)
sys.path.append(str(Path(__file__).resolve().parent.parent / "client"))
for name in IMPORTED_LATE:
    import_module(name)
# A garbage collection in a fork would copy the pages that it shares.
gc.freeze()
KNOWN = frozenset(sys.modules)
"""What a fork need not import."""
