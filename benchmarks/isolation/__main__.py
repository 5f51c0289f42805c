"""Two read-write keys with disjoint scopes send random requests to all routes of the real service concurrently.

Both work in one namespace, on sources of which one looks like the beginning of the other, or with `--agents` each has
an agent, with sessions, users and blocks of the same names. Every answer is searched for texts, ids and counts of the
other; at the end the history says whose every id was, and who changed what.

    python -m benchmarks.isolation --requests 50000
    python -m benchmarks.isolation --requests 50000 --agents
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.isolation.player import Player, leaks_by_history
from benchmarks.isolation.requests import Party, Pool, Request
from benchmarks.service import Service, ServiceFailed

PARTIES = (Party("a", "proj/a", "zqa"), Party("ab", "proj/ab", "zqb"))
AGENTS = (Party("a", "proj/a", "zqa", agent="ann"), Party("ab", "proj/ab", "zqb", agent="ann-b"))
ADMIN_KEY = "isolation-admin"
TIMEOUT_S = 120.0
SHOWN = 20
PROGRESS_S = 30.0


class Connection:
    """One keep-alive connection with a key; not for more than one thread."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        self._headers = {"X-API-Key": key}

    def send(self, request: Request) -> tuple[int, str]:
        headers = self._headers if request.body is None else {**self._headers, "Content-Type": request.content_type}
        self._connection.request(request.method, request.path, request.body, headers)
        response = self._connection.getresponse()
        return response.status, response.read().decode("utf-8", "replace")


def make_key(admin: Connection, party: Party) -> tuple[str, str]:
    """The id and the secret of a new key for the party."""
    body = json.dumps(party.key()).encode()
    status, text = admin.send(Request("POST", "/api/keys", "/api/keys", body))
    if status != 200:
        raise ServiceFailed(f"no key was made: {text}")
    made = json.loads(text)
    return made["id"], made["key"]


def play(
    service: Service, parties: tuple[Party, Party], requests: int, dice: random.Random
) -> tuple[list[Player], list[str]]:
    """Let both play at once; returns them and the ids of their keys."""
    admin = Connection(service.port, ADMIN_KEY)
    document = json.loads(admin.send(Request("GET", "/openapi.json", "/openapi.json"))[1])
    pool = Pool({party.name: [] for party in parties}, tokens={party.name: [] for party in parties})
    players, key_ids = [], []
    for me, other in (parties, parties[::-1]):
        key_id, secret = make_key(admin, me)
        send = Connection(service.port, secret).send
        players.append(Player(document, me, other, pool, send, random.Random(dice.getrandbits(64))))
        key_ids.append(key_id)
    threads = [threading.Thread(target=player.play, args=(requests // 2,), daemon=True) for player in players]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        next(thread for thread in threads if thread.is_alive()).join(PROGRESS_S)
        print(f"{sum(player.findings.requests for player in players)} requests", flush=True)
    return players, key_ids


def report(players: Sequence[Player], leaks: Sequence[str]) -> None:
    findings = [player.findings for player in players]
    answered = sum((one.answered for one in findings), Counter())
    statuses = sum((one.statuses for one in findings), Counter())
    routes = {route for one in findings for route in one.answered}
    print(f"{sum(one.requests for one in findings)} requests over {len(routes)} routes, {len(answered)} gave answers")
    print("statuses: " + ", ".join(f"{status} {count}" for status, count in sorted(statuses.items())))
    print(
        f"looked at {sum(one.tokens_checked for one in findings)} texts, "
        f"{sum(len(one.ids_seen) for one in findings)} ids, {sum(one.counts_checked for one in findings)} counts"
    )
    for leak in leaks[:SHOWN]:
        print(f"LEAK {leak}")
    print(f"{len(leaks)} texts, ids or counts of the other scope")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--agents", action="store_true", help="a key an agent, and not a key a path")
    parser.add_argument("--seed", type=int, default=0, help="0 draws one")
    arguments = parser.parse_args()
    seed = arguments.seed or random.SystemRandom().getrandbits(32)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder) / "data", API_KEY=ADMIN_KEY)
        service.start()
        begin = time.monotonic()
        parties = AGENTS if arguments.agents else PARTIES
        players, key_ids = play(service, parties, arguments.requests, random.Random(seed))
        print(f"{time.monotonic() - begin:.0f} s")
        service.stop()
        leaks = [leak for player in players for leak in player.findings.leaks]
        leaks += leaks_by_history(Path(folder) / "data" / "souvenir.db", players, key_ids)
    report(players, leaks)
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main())
