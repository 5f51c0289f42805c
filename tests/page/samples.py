"""Sample data, through the API: of each kind that the page shows."""

from __future__ import annotations

from typing import Any, Protocol

from benchmarks.service import Service

MEMORIES = (
    ("Biscuit, the user's beagle, turns five in May.", "notes/family", ["family", "pets"]),
    ("The user prefers window seats on long flights.", "notes/travel", ["travel"]),
    ("The billing service moves to Postgres 17 in May.", "claude-code/billing", ["database", "decision"]),
    ("Deployments are frozen between 20 December and 3 January.", "claude-code/operations", ["decision"]),
    ("Ana is allergic to peanuts and carries an EpiPen.", "notes/family", ["family", "health"]),
    ("The staging database runs in Frankfurt.", "claude-code/operations", ["database"]),
    ("Retries of the payment client stop after three attempts.", "claude-code/billing", ["payments"]),
    ("The user's sister Mira lives in Lisbon and teaches chemistry.", "notes/family", ["family"]),
    ("Invoices are sent on the first working day of the month.", "claude-code/billing", ["payments"]),
    ("The team writes design documents before larger changes.", "claude-code/process", ["process"]),
)

MESSAGES = (
    ("user", "My sister Mira moved from Porto to Lisbon last week."),
    ("assistant", "How does she like Lisbon so far?"),
    ("user", "She loves it. She starts at her school on Monday."),
)


class Api(Protocol):
    def __call__(self, method: str, path: str, body: Any = None, *, namespace: str | None = None) -> Any:
        """Send a request to a service, and return the answer.

        :raises AssertionError: If the status is no success.
        """


def api_of(service: Service, key: str | None = None) -> Api:
    def send(method: str, path: str, body: Any = None, *, namespace: str | None = None) -> Any:
        # A connection for each request: a service that was killed in between is reached again.
        client = service.client(key)
        try:
            status, answer = client.call(method, path, body, namespace=namespace)
        finally:
            client.close()
        assert status < 300, (method, path, status, answer)
        return answer

    return send


def add_samples(api: Api) -> None:
    """Ten memories with sources and tags, and an agent with a conversation and a block."""
    drafts = [{"text": text, "source": source, "tags": tags} for text, source, tags in MEMORIES]
    api("POST", "/memory/add-batch", {"memories": drafts})
    api("POST", "/agents", {"name": "assistant"})
    block = {"agent_name": "assistant", "label": "human", "value": "Speaks English and Portuguese."}
    api("POST", "/memory-blocks", block)
    messages = [{"role": role, "content": content} for role, content in MESSAGES]
    api("POST", "/messages/batch", {"agent_name": "assistant", "messages": messages})
