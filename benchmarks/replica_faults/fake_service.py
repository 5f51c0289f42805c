"""The service with an embedder that takes no time, so that two cores answer more requests under a fault.

python -m benchmarks.replica_faults.fake_service [--lease-s 3] [--stale]
"""

from __future__ import annotations

import argparse

from benchmarks.fake_embedder import FakeEmbedder, fake_of
from souvenir.api.transfer_lines import ReadAs
from souvenir.application import Application
from souvenir.core.settings import Settings
from souvenir.index.registry import IndexRegistry
from souvenir.server.connections import ServerConfig, serve_until_stopped
from souvenir.server.middleware import EarlyRefusal
from souvenir.server.service import Service
from souvenir.store.postgres import replicas


def break_as_told() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lease-s", type=float, help="a shorter lease of replicas, for short tests")
    parser.add_argument("--stale", action="store_true", help="indexes do not follow the writes of other replicas")
    arguments = parser.parse_args()
    if arguments.lease_s is not None:
        vars(replicas).update(LEASE_S=arguments.lease_s, RENEWED_EVERY_S=arguments.lease_s / 6)
    if arguments.stale:
        IndexRegistry._has = lambda *_: True  # type: ignore[method-assign]  # the control of the rounds


if __name__ == "__main__":
    break_as_told()
    settings = Settings()
    service = Service.open(settings, ReadAs(), FakeEmbedder(), fake_of)
    app = Application(settings, lambda: service)
    shed = EarlyRefusal(app.routes, service)
    serve_until_stopped(ServerConfig(app, settings, shed=shed, on_stop=service.stop_admitting))
