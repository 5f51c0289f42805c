"""Reads everything that a running service holds, and looks for contents that must be nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.faults.jobs import answered
from benchmarks.faults.ledger import Item, Ledger, Stored, marks_of, silent
from benchmarks.faults.part import Outcome
from benchmarks.faults.writers import AGENTS, FORGOTTEN, KNOWN, Keys, Writer
from benchmarks.service import Client

PAGE = 1_000
SEARCHED = 15


def read(client: Client, ledgers: Iterable[Ledger]) -> Stored:
    """Every item of every kind; claims only of the jobs in the ledgers."""
    stored = Stored()
    for namespace in (None, FORGOTTEN):
        for memory in _pages(client, "/memories?include_archived=true", "memories", namespace):
            stored.add("archived" if memory["archived"] else "memory", memory["text"], memory["id"])
    for fact in _pages(client, "/facts", "facts", None):
        stored.add("fact", fact["text"], fact["memory_id"])
    for agent in existing(client):
        for message in _pages(client, f"/messages/{agent}", None, None):
            stored.add("message", message["content"], message["id"])
        for block in _pages(client, f"/memory-blocks/{agent}", None, None):
            stored.add("block", f"{block['label']}={block['value']}", block["id"])
    for key in answered(client, "GET", "/api/keys")["keys"]:
        stored.add("revoked" if key["revoked"] else "key", key["name"], key["id"])
    for seen in _observations(client):
        stored.add("observation", seen, None)
    for job_id in {item.content for ledger in ledgers for item in ledger.there if item.kind == "claim"}:
        status, job = client.call("GET", f"/agents/{KNOWN}/graph/describe/{job_id}")
        if status == HTTPStatus.OK and job["claims"]:
            stored.add("claim", job_id, job_id)
    return stored


def existing(client: Client) -> list[str]:
    """The writers' agents, as far as they exist."""
    return [agent for agent in AGENTS if client.call("GET", f"/agents/{agent}")[0] == HTTPStatus.OK]


def _pages(client: Client, path: str, name: str | None, namespace: str | None) -> Iterator[Any]:
    offset, mark = 0, "&" if "?" in path else "?"
    while True:
        answer = answered(client, "GET", f"{path}{mark}limit={PAGE}&offset={offset}", namespace=namespace)
        items = answer if name is None else answer[name]
        yield from items
        offset += len(items)
        if len(items) < PAGE:
            return


def _observations(client: Client) -> Iterator[str]:
    offset: int | None = 0
    while offset is not None:
        page = answered(client, "GET", f"/knowledge-graph?offset={offset}", namespace=KNOWN)
        for entity in page["entities"]:
            yield from entity["observations"]
        offset = page["next_offset"]


# --- searches, counts and files --------------------------------------------------------------------------------------


def search(client: Client, ledgers: Iterable[Ledger], dice: Random) -> Outcome:
    """A sample of what is there is found by its own word, and of what is gone is not."""
    lost, risen = list[str](), list[str]()
    ledgers = list(ledgers)
    for kind, path, find in (("memory", "/search", _memories_by), ("message", "/messages/search", _messages_by)):
        there = [item for ledger in ledgers for item in ledger.of_kind(kind)]
        gone = [item for ledger in ledgers for item in ledger.gone if item.kind == kind]
        for item in dice.sample(there, min(SEARCHED, len(there))):
            if item.content not in find(client, item):
                lost.append(f"{kind} {item.content!r} is there and {path} does not find it by its own word")
        for item in dice.sample(gone, min(SEARCHED, len(gone))):
            if item.content in find(client, item):
                risen.append(f"{kind} {item.content!r} is gone and {path} finds it")
    return Outcome(wrong=tuple(lost), risen=tuple(risen))


def _own_word(item: Item) -> str:
    """The word that no other text has; to the model it is noise, so memories are searched by words alone."""
    return next(iter(marks_of(item.content)))


def _memories_by(client: Client, item: Item) -> set[str]:
    body = {"query": _own_word(item), "k": 3, "vector_weight": 0.0}
    found = [answered(client, "POST", "/search", body, namespace=name)["results"] for name in (None, FORGOTTEN)]
    return {hit["text"] for hits in found for hit in hits}


def _messages_by(client: Client, item: Item) -> set[str]:
    found = set[str]()
    for agent in existing(client):
        body = {"agent_name": agent, "query": item.content, "limit": 5}
        found |= {hit["content"] for hit in answered(client, "POST", "/messages/search", body)}
    return found


def health(client: Client, *, expected: frozenset[str] | None = frozenset()) -> tuple[str, ...]:
    """Sentences if the service is not ready, its counts differ, or its warnings are not the expected ones.

    :param expected: The codes of the warnings; None for any.
    """
    ready = answered(client, "GET", "/health/ready")
    problems = []
    if not ready["ready"] or ready["index_count"] != ready["record_count"]:
        problems.append(f"/health/ready is {ready}")
    codes = frozenset(one["code"] for one in ready.get("warnings", []))
    if expected is not None and codes != expected:
        problems.append(f"/health/ready warns of {sorted(codes)}, expected are {sorted(expected)}: {ready}")
    return tuple(problems)


def exported(client: Client, ledgers: Iterable[Ledger]) -> tuple[str, ...]:
    """Sentences for contents in the exports that are gone or erased."""
    ledgers = list(ledgers)
    there = set[str]().union(*(marks_of(item.content) for ledger in ledgers for item in ledger.there))
    gone = {mark: "gone" for ledger in ledgers for item in ledger.gone for mark in marks_of(item.content) - there}
    erased = {mark: "erased" for ledger in ledgers for mark in ledger.erased}
    problems: list[str] = []
    for namespace in ("default", FORGOTTEN):
        problems += silent(gone | erased, marks_of(client.text("GET", "/export", namespace=namespace)), "the export")
        histories = client.text("GET", "/export?history=true", namespace=namespace)
        problems += silent(erased, marks_of(histories), "the export of histories")
    return tuple(problems)


def in_files(folder: Path, ledgers: Iterable[Ledger]) -> tuple[str, ...]:
    """Sentences for the erased contents that are in the bytes of any file; their erasures said that none is."""
    erased = {mark: "erased" for ledger in ledgers for mark in ledger.erased}
    problems: list[str] = []
    for path in folder.rglob("*"):
        if path.is_file():
            problems += silent(erased, marks_of(path.read_bytes()), str(path.relative_to(folder)))
    return tuple(problems)


def keys(port: int, writers: Iterable[Writer]) -> tuple[str, ...]:
    """Sentences for created keys that do not work, and revoked ones that do."""
    problems: list[str] = []
    for writer in writers:
        if isinstance(writer, Keys):
            works: Mapping[Item, bool] = {item: item.kind == "key" for item in writer.ledger.there}
            for item, right in works.items():
                if (secret := writer.secrets.get(item.content)) is None:
                    continue
                client = Client(port, key=secret)
                status, _ = client.call("GET", "/api/keys/me")
                client.close()
                if (status == HTTPStatus.OK) is not right:
                    problems.append(f"{item.kind} {item.content!r} is answered {status}")
    return tuple(problems)
