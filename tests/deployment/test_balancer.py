"""deploy/Caddyfile in a real Caddy, in front of servers that answer with their names."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks.service import free_port
from tests.deployment.replica import READY_PATH, Replica
from tests.deployment.requirements import CADDY, INSTALL_CADDY, REPEATS_BODIES_FROM
from tests.vendors.server import Reply

CADDYFILE = Path(__file__).resolve().parent.parent.parent / "deploy" / "Caddyfile"
SHARDS = [f"agent-{number}" for number in range(40)]
WAIT_S = 60
PATH = "/search"


@pytest.fixture
def replicas() -> Iterator[list[Replica]]:
    replicas = [Replica(name) for name in ("one", "two", "three")]
    for replica in replicas:
        replica.start()
    yield replicas
    for replica in replicas:
        replica.stop()


@pytest.fixture
def client(replicas: list[Replica], tmp_path: Path) -> Iterator[httpx.Client]:
    """A client of the balancer."""
    if CADDY is None:
        pytest.skip(INSTALL_CADDY)
    site = f"http://127.0.0.1:{free_port()}"
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
        "SOUVENIR_SITE": site,
        "SOUVENIR_UPSTREAMS": " ".join(f"127.0.0.1:{replica.port}" for replica in replicas),
    }
    command = [CADDY, "run", "--config", str(CADDYFILE), "--adapter", "caddyfile"]
    log = tmp_path / "caddy.log"
    with log.open("wb") as output, subprocess.Popen(command, env=environment, stdout=output, stderr=output) as caddy:
        try:
            with httpx.Client(base_url=site, trust_env=False, timeout=WAIT_S) as client:
                wait_until(lambda: caddy.poll() is None and answers(client), lambda: log.read_text("utf-8"))
                for replica in replicas:
                    replica.requests.clear()
                yield client
        finally:
            caddy.terminate()


def version() -> tuple[int, ...]:
    printed = subprocess.run([str(CADDY), "version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in re.findall(r"\d+", printed)[:3])


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/started").is_success
    except httpx.TransportError:
        return False


def wait_until(condition: Callable[[], bool], failure: Callable[[], str] = lambda: "it did not happen") -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, failure()
        time.sleep(0.02)


def replica_of(client: httpx.Client, shard: str | None = None) -> str:
    """Return the name of the replica that a request reaches."""
    answer = client.get(PATH, headers={"X-Souvenir-Shard": shard} if shard else {})
    assert answer.status_code == 200, answer.text
    name: str = answer.json()["replica"]
    return name


def placement(client: httpx.Client) -> dict[str, str]:
    return {shard: replica_of(client, shard) for shard in SHARDS}


def test_equal_shards_reach_one_replica_and_all_replicas_have_some(client: httpx.Client, replicas: list[Replica]):
    placed = placement(client)
    assert [placement(client) for _ in range(3)] == [placed] * 3
    assert set(placed.values()) == {replica.name for replica in replicas}


def test_requests_without_the_header_are_spread(client: httpx.Client, replicas: list[Replica]):
    assert {replica_of(client) for _ in range(100)} == {replica.name for replica in replicas}


def test_only_the_shards_of_a_dead_replica_move_and_they_return(client: httpx.Client, replicas: list[Replica]):
    before = placement(client)
    dead, *others = replicas
    dead.stop()
    during = placement(client)
    moved = [shard for shard in SHARDS if before[shard] == dead.name]
    assert {during[shard] for shard in moved} <= {other.name for other in others}
    assert [shard for shard in SHARDS if during[shard] != before[shard]] == moved != []
    dead.start()
    wait_until(lambda: placement(client) == before)


def test_a_request_with_a_body_that_meets_a_dead_replica_goes_to_another(client: httpx.Client, replicas: list[Replica]):
    if version() < REPEATS_BODIES_FROM:
        pytest.skip("This Caddy does not repeat requests with a body")
    replicas[0].stop()
    posted = [client.post(PATH, json={}, headers={"X-Souvenir-Shard": shard}) for shard in SHARDS * 2]
    assert {answer.status_code for answer in posted} == {200}
    assert {answer.json()["replica"] for answer in posted} == {"two", "three"}


def test_a_replica_that_is_not_ready_gets_no_requests_until_it_is(client: httpx.Client, replicas: list[Replica]):
    before = placement(client)
    loading = replicas[0]
    loading.ready = False
    wait_until(lambda: loading.name not in placement(client).values())
    loading.requests.clear()
    for _ in range(5):
        placement(client)
    assert loading.requests_to(PATH) == []
    loading.ready = True
    wait_until(lambda: placement(client) == before)


def test_a_replica_that_refuses_requests_under_load_keeps_its_shards(client: httpx.Client, replicas: list[Replica]):
    before = placement(client)
    shard = next(shard for shard in SHARDS if before[shard] == "two")
    replicas[1].replies.extend([Reply(503), Reply(429)])
    headers = {"X-Souvenir-Shard": shard}
    assert [client.get(PATH, headers=headers).status_code for _ in range(3)] == [503, 429, 200]
    assert placement(client) == before


def test_readiness_is_asked_by_a_name_that_every_replica_answers(client: httpx.Client, replicas: list[Replica]):
    wait_until(lambda: all(replica.requests_to(READY_PATH) for replica in replicas))
    asked = [request for replica in replicas for request in replica.requests_to(READY_PATH)]
    assert {request.headers["host"] for request in asked} == {"localhost"}


def test_a_client_cannot_choose_the_address_that_replicas_see(client: httpx.Client, replicas: list[Replica]):
    client.get("/address", headers={"X-Forwarded-For": "203.0.113.9"})
    [seen] = [request for replica in replicas for request in replica.requests_to("/address")]
    assert seen.headers["x-forwarded-for"] == "127.0.0.1"
