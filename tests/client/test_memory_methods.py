"""The methods that memory SDKs share, over the real service; with a scripted model where one is needed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from souvenir_client import AsyncSouvenir, Souvenir
from souvenir_client.errors import NotFound, ServerFailed
from souvenir_client.records.transfer import ImportResponse
from tests.api.learning import takes_everything
from tests.client.running import RunningService
from tests.vendors.llm import LLMVendor, fails


@pytest.fixture
def client(service: RunningService, request: pytest.FixtureRequest) -> Iterator[Souvenir]:
    """In a namespace of its test."""
    with Souvenir(service.url, namespace=request.node.name[:200]) as client:
        yield client


def texts(answer: dict[str, list[dict[str, object]]]) -> list[object]:
    return [one["memory"] for one in answer["results"]]


def test_a_text_is_added_searched_listed_and_read(client: Souvenir):
    [added] = client.add("Alice prefers tea.", user_id="alice", metadata={"topic": "drinks"}, infer=False)["results"]
    assert (added["memory"], added["event"]) == ("Alice prefers tea.", "ADD")
    [found] = client.search("what does Alice drink? tea?", user_id="alice")["results"]
    assert (found["id"], found["user_id"], found["metadata"]) == (
        added["id"],
        "alice",
        {"topic": "drinks", "role": "user"},
    )
    assert isinstance(found["score"], float)
    assert client.get(added["id"]) == client.get_all(user_id="alice")["results"][0]
    assert client.get(str(added["id"])) is not None


def test_messages_are_stored_separately_with_their_role(client: Souvenir):
    said: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "I moved to Lisbon."}, {"type": "image_url"}]},
        {"role": "assistant", "content": "How nice."},
        {"role": "assistant", "content": None},
    ]
    assert texts(client.add(said, run_id="7", infer=False)) == ["I moved to Lisbon.", "How nice."]
    assert [one["metadata"]["role"] for one in client.get_all(run_id="7")["results"]] == ["user", "assistant"]
    assert client.add([], infer=False) == {"results": []}


def test_users_runs_and_agents_are_isolated(client: Souvenir):
    agent = f"{client._transport.address.namespace}-agent"[:200]
    owned: list[tuple[str, dict[str, Any]]] = [
        ("Tea of Alice.", {"user_id": "alice"}),
        ("Tea of Alice in run one.", {"user_id": "alice", "run_id": "1"}),
        ("Tea of Alicea.", {"user_id": "alicea"}),
        ("Tea of a/b.", {"user_id": "a/b"}),
        ("Tea of run one.", {"run_id": "1"}),
        ("Tea of the agent.", {"agent_id": agent}),
        ("Tea of nobody.", {}),
    ]
    for text, owner in owned:
        client.add(text, infer=False, **owner)
    expectations: list[tuple[dict[str, Any], list[str]]] = [
        ({"user_id": "alice"}, ["Tea of Alice.", "Tea of Alice in run one."]),
        ({"run_id": "1"}, ["Tea of Alice in run one.", "Tea of run one."]),
        ({"user_id": "alice", "run_id": "1"}, ["Tea of Alice in run one."]),
        ({"user_id": "a/b"}, ["Tea of a/b."]),
        ({"agent_id": agent}, ["Tea of the agent."]),
    ]
    for owner, expected in expectations:
        assert texts(client.get_all(**owner)) == expected
        assert sorted(map(str, texts(client.search("tea", limit=50, **owner)))) == sorted(expected)
    assert len(client.get_all()["results"]) == 6
    assert len(client.get_all(limit=2)["results"]) == 2


def test_an_update_keeps_the_old_text_in_the_history(client: Souvenir):
    [added] = client.add("Alice prefers tea.", infer=False)["results"]
    client.update(added["id"], "Alice prefers coffee.", metadata={"sure": True})
    assert (client.get(added["id"]) or {})["metadata"]["sure"] is True
    first, second = client.history(added["id"])[:2]
    assert (first["event"], first["old_memory"], first["new_memory"]) == ("ADD", None, "Alice prefers tea.")
    assert (second["event"], second["old_memory"], second["new_memory"]) == (
        "UPDATE",
        "Alice prefers tea.",
        "Alice prefers coffee.",
    )


def test_the_sdk_marks_what_an_import_says_of_the_past(client: Souvenir):
    entry = {"action": "add", "actor": "key:of-another", "at": "2023-05-08"}
    line = {"text": "Alice prefers tea.", "source": "notes", "id": 10**12, "history": [entry]}
    answer = client.transfer.import_memories(iter([json.dumps(line).encode()]))
    assert isinstance(answer, ImportResponse)
    [changed] = answer.changed_ids
    assert (answer.changed_id_count, changed.old) == (1, 10**12)
    marks = [("key:of-another", True), ("anonymous", False)]
    assert [(one["actor"], one["imported"]) for one in client.history(changed.new)] == marks
    assert [(one.actor, one.imported) for one in client.memories.history(changed.new).changes] == marks
    audited = client.audit.list(resource_id=str(changed.new)).entries
    assert [(one.actor, one.imported) for one in reversed(audited)] == marks


def test_a_deleted_memory_is_gone_and_an_unknown_id_is_an_error(client: Souvenir):
    [added] = client.add("Alice prefers tea.", infer=False)["results"]
    client.delete(added["id"])
    assert client.get(added["id"]) is None
    with pytest.raises(NotFound):
        client.delete(added["id"])
    with pytest.raises(NotFound):
        client.update(added["id"], "Back again.")


def test_delete_all_deletes_the_memories_of_one_user_only(client: Souvenir):
    for number in range(3):
        client.add(f"Fact {number} of Alice.", user_id="alice", infer=False)
    client.add("Fact of Bob.", user_id="bob", infer=False)
    assert client.delete_all(user_id="alice") == {"message": "3 memories deleted successfully!"}
    assert texts(client.get_all()) == ["Fact of Bob."]
    with pytest.raises(ValueError, match="whose memories to delete"):
        client.delete_all()


@pytest.mark.parametrize("name", ["", " ", ".", ".."])
def test_an_invalid_name_is_refused(name: str, client: Souvenir):
    with pytest.raises(ValueError, match="not a valid user_id"):
        client.add("Tea.", user_id=name)


def test_invalid_messages_are_refused(client: Souvenir):
    with pytest.raises(TypeError, match="a list of messages"):
        client.add(["Tea."], infer=False)  # type: ignore[list-item]


def test_the_asynchronous_client_has_the_same_memory_methods(client: Souvenir):
    async def run() -> tuple[object, ...]:
        async with AsyncSouvenir(client.server_url, namespace=client._transport.address.namespace) as souvenir:
            [added] = (await souvenir.add("Alice prefers tea.", user_id="alice", infer=False))["results"]
            await souvenir.update(added["id"], "Alice prefers coffee.")
            found = await souvenir.search("coffee", user_id="alice")
            changes = await souvenir.history(added["id"])
            message = await souvenir.delete_all(user_id="alice")
            return texts(found), len(changes), message, await souvenir.get_all()

    assert asyncio.run(run()) == (
        ["Alice prefers coffee."],
        2,
        {"message": "1 memories deleted successfully!"},
        {"results": []},
    )


@pytest.fixture
def model() -> Iterator[LLMVendor]:
    vendor = LLMVendor()
    vendor.start()
    yield vendor
    vendor.stop()


@pytest.fixture
def learner(tmp_path: Path, model: LLMVendor) -> Iterator[Souvenir]:
    """A client of a service with a language model."""
    service = RunningService(tmp_path / "data", **model.settings("openai"))
    service.start()
    with Souvenir(service.url) as client:
        yield client
    service.stop()


def test_with_a_model_extracted_facts_are_stored_for_the_user(learner: Souvenir, model: LLMVendor):
    model.script(takes_everything)
    answer = learner.add("Alice prefers tea.", user_id="alice", metadata={"topic": "drinks"})
    assert [(one["memory"], one["event"]) for one in answer["results"]] == [("Alice prefers tea.", "ADD")]
    [kept] = learner.get_all(user_id="alice")["results"]
    assert kept["metadata"]["topic"] == "drinks"


def test_a_model_that_fails_is_an_error_and_changes_nothing(learner: Souvenir, model: LLMVendor):
    model.script(lambda _: fails(401, "wrong key"))
    with pytest.raises(ServerFailed, match="The extraction failed"):
        learner.add("I prefer tea.", user_id="alice")
    assert learner.get_all()["results"] == []


def test_without_a_model_texts_are_stored_verbatim(client: Souvenir):
    assert client.extraction.status().fallback_add_enabled
    said = [{"role": "user", "content": "I love jazz."}, {"role": "assistant", "content": "Who does not?"}]
    assert texts(client.add(said, user_id="zed")) == ["I love jazz.", "Who does not?"]
    assert texts(client.get_all(user_id="zed")) == ["I love jazz.", "Who does not?"]
