"""Start-up work that all services share, done once before the services of tests are forked (`tests.forking`)."""

from __future__ import annotations

import gc

import pydantic.v1  # noqa: F401 - FastAPI imports it with the first route that it analyses, in a third of a second

import souvenir.api
import souvenir.compat
from souvenir.core.settings import Settings
from souvenir.privacy.rules import PrivacyRules
from souvenir.server.routing import analysed, discovered_routes

analysed(discovered_routes(souvenir.api, souvenir.compat))
PrivacyRules.load(Settings(_env_file=None).privacy_rules_path)  # type: ignore[call-arg]
# A garbage collection in a fork would copy the pages that it shares.
gc.freeze()
