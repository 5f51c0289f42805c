"""Authentication: every route with every way to send a key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.dependencies.models import Dependant
from pydantic import SecretStr
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.settings import Settings
from souvenir.core.types import Role
from souvenir.server.request_guards import GUARDS, OPEN_PATHS
from souvenir.server.route import JsonRoute
from tests.api.conftest import BASE_URL, KEY, Start, keeps_backups, loaded
from tests.api.operations import OPERATIONS, Operation, described, routes_of
from tests.cases import for_all
from tests.fake_embedder import FakeEmbedder, fake_of

GUARDED = [operation for operation in OPERATIONS if operation.template not in OPEN_PATHS]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    data_dir: Path = tmp_path_factory.mktemp("guarded")
    settings = Settings(data_dir=data_dir, api_key=SecretStr(KEY), auth_rate_limit=10**6)
    with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL) as client:
        yield client


def guards_of(dependant: Dependant) -> list[Role]:
    """The roles that a route and its dependencies ask for."""
    own = [GUARDS[one.call] for one in dependant.dependencies if one.call in GUARDS]
    return own + [role for one in dependant.dependencies for role in guards_of(one)]


def send(client: TestClient, operation: Operation, headers: dict[str, str]) -> int:
    if operation.path == "/import":
        headers = {**headers, "Content-Type": "application/x-ndjson"}
    response = client.request(
        operation.method, operation.path, json=operation.body, params=operation.query, headers=headers
    )
    return response.status_code


def test_every_route_declares_a_guard_or_is_open():
    routes = routes_of(described())
    assert len(routes) > 40
    assert {route.path for route in routes if not guards_of(route.dependant)} == OPEN_PATHS
    assert {route.path for route in routes if not isinstance(route, JsonRoute)} <= OPEN_PATHS


@for_all("operation", GUARDED)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-API-Key": ""},
        {"X-API-Key": KEY + "x"},
        {"X-API-Key": KEY[:-1]},
        {"Authorization": f"Bearer {KEY.upper()}"},
        {"Authorization": f"Basic {KEY}"},
        {"Authorization": KEY},
    ],
    ids=["none", "empty", "longer", "shorter", "bearer", "scheme", "bare"],
)
def test_without_the_right_key_every_route_is_401(guarded, operation, headers):
    assert send(guarded, operation, headers) == 401


OTHERWISE = {
    "POST /memory/{memory_id}/link": 400,
    "POST /memory/extract": 501,
    "POST /agents/{agent_name}/graph/describe": 501,
    "POST /maintenance/consolidate": 503,
    "POST /sync/download": 400,
    "POST /sync/restore/{backup_name}": 400,
    "GET /sync/snapshots": 400,
    "POST /sync/upload": 400,
}
"""Other answers to authorised callers: a memory cannot be linked to itself, and no language model or bucket is set."""


ABOUT_BACKUPS = {"POST /backup", "POST /restore", "POST /snapshots", "POST /snapshots/{name}/restore"}


def answers(client: TestClient, operation: Operation) -> set[int]:
    if str(operation) in ABOUT_BACKUPS and not keeps_backups(client):
        return {501}
    return {200, 202, 404, 409, OTHERWISE.get(str(operation), 200)}


@for_all("operation", GUARDED)
@pytest.mark.parametrize("headers", [{"X-API-Key": KEY}, {"Authorization": f"Bearer {KEY}"}], ids=["header", "bearer"])
def test_with_the_right_key_every_route_answers(guarded, operation, headers):
    assert send(guarded, operation, headers) in answers(guarded, operation)


@for_all("operation", GUARDED)
def test_an_open_service_answers_without_a_key_and_refuses_a_wrong_one(shared_client, operation):
    assert send(shared_client, operation, {}) in answers(shared_client, operation)
    assert send(shared_client, operation, {"X-API-Key": "stale"}) == 401


@pytest.mark.parametrize("scheme", ["Bearer", "Token", "token"])
def test_a_key_is_taken_under_either_scheme(guarded, scheme):
    assert guarded.get("/memories", headers={"Authorization": f"{scheme} {KEY}"}).status_code == 200
    assert guarded.get("/memories", headers={"Authorization": f"{scheme} {KEY}x"}).status_code == 401


def test_a_refusal_has_the_reference_message_and_names_the_scheme(start: Start):
    response = start(api_key=KEY).post("/search", json={"query": "anything"})
    assert response.json() == {
        "detail": "Invalid or missing API key",
        "code": "unauthorized",
        "request_id": response.headers["X-Request-ID"],
    }
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("path", sorted(path for path in OPEN_PATHS if "{" not in path))
def test_open_paths_need_no_key_and_ignore_a_wrong_one(start: Start, path):
    client = loaded(start(api_key=KEY))
    assert client.get(path).status_code == 200
    assert client.get(path, headers={"X-API-Key": "wrong"}).status_code == 200


def test_a_key_of_any_characters_can_be_sent_as_utf_8(start: Start):
    client = start(api_key="schlüssel-鍵")
    assert client.get("/stats", headers=[(b"X-API-Key", "schlüssel-鍵".encode())]).status_code == 200
    assert client.get("/stats", headers=[(b"X-API-Key", "schlussel-鍵".encode())]).status_code == 401


def test_an_empty_key_in_the_settings_is_no_key(start: Start):
    assert start(api_key="").get("/stats").status_code == 200


@pytest.mark.parametrize("body", [b"{", b"[" * 1000, b""])
def test_the_body_of_a_refused_request_is_not_looked_at(guarded, body):
    response = guarded.post("/memory/add", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 401


def test_nothing_is_done_for_a_refused_request(start: Start):
    client = start(api_key=KEY)
    assert client.post("/memory/add", json={"text": "a secret", "source": "s"}).status_code == 401
    assert client.get("/memories/count", headers={"X-API-Key": KEY}).json() == {"count": 0}
