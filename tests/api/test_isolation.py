"""Two keys with disjoint scopes send random requests to every route, and see none of each other's data."""

from __future__ import annotations

import random
from pathlib import Path

from starlette.testclient import TestClient

from benchmarks.isolation.player import Player, Send, leaks_by_history
from benchmarks.isolation.requests import Party, Pool, Request
from tests.api.conftest import KEY, Start
from tests.api.operations import DOCUMENT
from tests.thoroughness import sampled

ENV = {"X-API-Key": KEY}
PARTIES = (Party("a", "proj/a", "zqa"), Party("ab", "proj/ab", "zqb"))
AGENTS = (Party("a", "proj/a", "zqa", agent="ann"), Party("ab", "proj/ab", "zqb", agent="ann-b"))
TURNS, REQUESTS_A_TURN = sampled(12, 40), 25


def sending(client: TestClient, key: str) -> Send:
    def send(request: Request) -> tuple[int, str]:
        headers = {"X-API-Key": key, "Content-Type": request.content_type}
        response = client.request(request.method, request.path, content=request.body, headers=headers)
        return response.status_code, response.text

    return send


def players_of(client: TestClient, keys: list[str], parties: tuple[Party, Party] = PARTIES) -> list[Player]:
    pool = Pool({party.name: [] for party in parties}, tokens={party.name: [] for party in parties})
    pairs = zip((parties, parties[::-1]), keys, strict=True)
    return [
        Player(DOCUMENT, me, other, pool, sending(client, key), random.Random(me.name)) for (me, other), key in pairs
    ]


def take_turns(players: list[Player], turns: int) -> None:
    for _ in range(turns):
        for player in players:
            player.play(REQUESTS_A_TURN)


def test_two_keys_with_disjoint_scopes_see_nothing_of_each_other(start: Start, tmp_path: Path):
    client = start(api_key=KEY)
    bodies = [party.key() for party in PARTIES]
    made = [client.post("/api/keys", json=body, headers=ENV).json() for body in bodies]
    players = players_of(client, [key["key"] for key in made])
    take_turns(players, TURNS)
    for player in players:
        player.reach("POST /search")
    client.__exit__(None, None, None)
    leaks = [leak for player in players for leak in player.findings.leaks]
    leaks += leaks_by_history(tmp_path / "data" / "souvenir.db", players, [key["id"] for key in made])
    assert leaks == []
    for player in players:
        assert len(player.findings.ids_seen) > sampled(30, 100)
        assert player.findings.counts_checked > sampled(15, 100)
        assert player.findings.answered["POST /search"] > 0


def test_two_agents_with_keys_of_their_own_see_nothing_of_each_other(start: Start, tmp_path: Path):
    client = start(api_key=KEY, auth_rate_limit=10**6)
    made = [client.post("/api/keys", json=agent.key(), headers=ENV).json() for agent in AGENTS]
    players = players_of(client, [key["key"] for key in made], AGENTS)
    take_turns(players, TURNS)
    for player in players:
        for operation in ("POST /messages", "POST /messages/search", "POST /context/{agent_name}"):
            player.reach(operation)
    client.__exit__(None, None, None)
    leaks = [leak for player in players for leak in player.findings.leaks]
    leaks += leaks_by_history(tmp_path / "data" / "souvenir.db", players, [key["id"] for key in made])
    assert leaks == []
    for player in players:
        assert player.findings.answered["POST /messages/search"] > 0
        assert player.findings.answered["POST /context/{agent_name}"] > 0
        assert player.findings.tokens_checked > 2 * TURNS


def test_a_caller_who_sees_all_would_be_noticed(start: Start, tmp_path: Path):
    """Otherwise the test above could not fail."""
    client = start(api_key=KEY, auth_rate_limit=10**6)
    bodies = [{"name": party.name, "role": "read-write", "prefixes": ["proj"]} for party in PARTIES]
    made = [client.post("/api/keys", json=body, headers=ENV).json() for body in bodies]
    players = players_of(client, [key["key"] for key in made])
    take_turns(players, 5)
    client.__exit__(None, None, None)
    for player in players:
        assert any("shows the text" in leak for leak in player.findings.leaks)
        assert any("listed" in leak for leak in player.findings.leaks)
    by_history = leaks_by_history(tmp_path / "data" / "souvenir.db", players, [key["id"] for key in made])
    assert any("shows the id" in leak for leak in by_history)
