"""What processes of tests share when they are forked (`tests.forking`): the application with all of its routes."""

from __future__ import annotations

import gc

import souvenir.api
import souvenir.compat
import tests.fake_embedder
from app import main
from souvenir.server.routing import discovered_routes

__all__ = ["main", "tests"]

discovered_routes(souvenir.api, souvenir.compat)
# A collection in a fork would copy the pages that it shares.
gc.freeze()
