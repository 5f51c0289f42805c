"""Declares every route of the application, before services of tests are forked (`tests.forking`)."""

from __future__ import annotations

import gc

import souvenir.api
import souvenir.compat
from souvenir.server.routing import discovered_routes

discovered_routes(souvenir.api, souvenir.compat)
# A garbage collection in a fork would copy the pages that it shares.
gc.freeze()
