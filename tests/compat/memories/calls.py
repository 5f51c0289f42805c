"""Sends the calls of the Memories family to a service, and compares its answers with the wire.

    python -m tests.compat.memories.calls http://127.0.0.1:8900 [KEY]

sends every operation of `wire.py`, with all of the body that clients send and with its required fields only, and prints
a line for each. It ends with 1 if an answer has another status or lacks a key. Give it an empty service with
EXTRACT_FALLBACK_ADD=true: it stores, changes and deletes memories.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from typing import Any

import httpx

from tests.compat.memories.parameters import PARAMETERS
from tests.compat.memories.wire import OPERATIONS, Operation

TIMEOUT_S = 60

_numbers = itertools.count()


def name_of(operation: Operation) -> str:
    return f"{operation.method} {operation.path} {operation.status}"


def filled(client: httpx.Client, operation: Operation, body: Any) -> tuple[str, Any]:
    """Return the path and the body with ids of new memories and of an extraction."""
    text = json.dumps([operation.path, body])
    for name in ("$a", "$b"):
        if name in text:
            new = {"text": f"Fact {next(_numbers)}", "source": "notes/ops"}
            id_ = client.post("/memory/add", json=new).json()["id"]
            text = text.replace(f'"{name}"', str(id_)).replace(name, str(id_))
    if "$job" in text:
        body = {"messages": "User: We decided to use Redis.", "source": "chat"}
        text = text.replace("$job", client.post("/memory/extract", json=body).json()["job_id"])
    path, body = json.loads(text)
    return path, body


def sent(client: httpx.Client, operation: Operation, body: Any) -> Any:
    path, body = filled(client, operation, body)
    if isinstance(body, str):
        return client.request(operation.method, path, content=body, headers={"Content-Type": "application/x-ndjson"})
    return client.request(operation.method, path, json=body)


def missing_keys(operation: Operation, answer: httpx.Response) -> set[str]:
    return set(operation.keys.split()) - answer.json().keys() if operation.keys else set()


def minimal(operation: Operation) -> Any:
    """Return the body with its required fields only; None if it has no others."""
    named = f"{operation.method} {operation.path.partition('?')[0].replace('$a', '{memory_id}')}"
    required = {parameter.name for parameter in PARAMETERS.get(named, ()) if parameter.required}
    if not isinstance(operation.body, dict) or not required < operation.body.keys():
        return None
    return {name: operation.body[name] for name in required}


def differences(client: httpx.Client) -> Iterator[tuple[str, str]]:
    """Send each call; yield its name, and how its answer differs from the wire, or an empty string."""
    for operation in OPERATIONS:
        if "$key" in operation.path:
            continue
        if "/extraction/profiles" in operation.path:
            client.put("/extraction/profiles/chat/", json={"max_facts": 5})
        answer = sent(client, operation, operation.body)
        yield name_of(operation), _difference(operation, answer, missing_keys(operation, answer))
        body = minimal(operation)
        if body is not None and operation.status < 300:
            yield f"{name_of(operation)} minimal", _difference(operation, sent(client, operation, body), set())


def _difference(operation: Operation, answer: httpx.Response, missing: set[str]) -> str:
    if answer.status_code != operation.status:
        return f"status {answer.status_code}: {answer.text[:200]}"
    return f"without {', '.join(sorted(missing))}" if missing else ""


def main(url: str, key: str | None = None) -> int:
    """:return: The number of answers that differ; 1 if the service cannot extract."""
    headers = {} if key is None else {"X-API-Key": key}
    found = 0
    with httpx.Client(base_url=url, headers=headers, timeout=TIMEOUT_S, trust_env=False) as client:
        status = client.get("/extract/status").json()
        if not (status["enabled"] or status["fallback_add_enabled"]):
            print("The service cannot extract; start it with EXTRACT_FALLBACK_ADD=true")
            return 1
        for name, difference in differences(client):
            found += bool(difference)
            print(f"{'differs' if difference else 'ok':8}{name}{f': {difference}' if difference else ''}")
    return found


if __name__ == "__main__":
    sys.exit(min(1, main(*sys.argv[1:])))
