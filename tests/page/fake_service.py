"""The service with an embedder that takes no time, for tests of the page with very many memories.

python -m tests.page.fake_service
"""

from __future__ import annotations

from souvenir.api.transfer_lines import ReadAs
from souvenir.application import Application
from souvenir.core.settings import Settings
from souvenir.server.connections import ServerConfig, serve_until_stopped
from souvenir.server.middleware import EarlyRefusal
from souvenir.server.service import Service
from tests.fake_embedder import FakeEmbedder, fake_of

if __name__ == "__main__":
    settings = Settings()
    service = Service.open(settings, ReadAs(), FakeEmbedder(), fake_of)
    app = Application(settings, lambda: service)
    shed = EarlyRefusal(app.routes, service)
    serve_until_stopped(ServerConfig(app, settings, shed=shed, on_stop=service.stop_admitting))
