"""A damaged row is left out of answers and named; everything else is answered, and it can be deleted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.settings import Settings
from tests.api.conftest import BASE_URL, loaded
from tests.fake_embedder import FakeTokenEmbedder
from tests.store.damage import overwrite
from tests.transfer.stores import lines_of

pytestmark = pytest.mark.sqlite_only(reason="damages rows of a file")

AGENT = "ann"
NOT_UTF8 = "CAST(x'61ff62' AS TEXT)"
TOO_LATE = str(2**62)
NAN = "CAST(x'0000c07f' || substr(vector, 5) AS BLOB)"
SECOND_MEMORY = "(SELECT id FROM memories WHERE source = 'notes' ORDER BY id LIMIT 1 OFFSET 1)"
SECOND_MESSAGE = "(SELECT id FROM messages ORDER BY id LIMIT 1 OFFSET 1)"
ITS_PASSAGE = f"(SELECT id FROM passages WHERE kind = 'memory' AND owner_id = {SECOND_MEMORY} AND fact_id IS NULL)"

Open = Callable[[], AbstractContextManager[TestClient]]

MEMORIES = {
    "text that is not UTF-8": ("text", NOT_UTF8),
    "JSON that does not parse": ("metadata", "'{\"a\": '"),
    "JSON that is no object": ("metadata", "'[1]'"),
    "an enum value that does not exist": ("origin_class", "'nobody'"),
    "a time out of range": ("created_at", TOO_LATE),
}
MESSAGES = {
    "text that is not UTF-8": ("content", NOT_UTF8),
    "JSON that does not parse": ("metadata", "'{\"a\": '"),
    "an enum value that does not exist": ("role", "'nobody'"),
    "a time out of range": ("created_at", TOO_LATE),
}
PASSAGES = {
    "a passage's text": ("passages", "text", NOT_UTF8, f"id = {ITS_PASSAGE}"),
    "a passage's time": ("passages", "occurred_at", TOO_LATE, f"id = {ITS_PASSAGE}"),
    "a vector's length": ("vectors", "vector", "substr(vector, 3)", f"passage_id = {ITS_PASSAGE}"),
    "a vector with NaN": ("vectors", "vector", NAN, f"passage_id = {ITS_PASSAGE}"),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Settings(data_dir=tmp_path).database_path


@pytest.fixture
def service(path: Path) -> Open:
    """Open the service on the same store again and again."""
    settings = Settings(data_dir=path.parent)
    return lambda: TestClient(create_app(settings, FakeTokenEmbedder()), base_url=BASE_URL)


@pytest.fixture
def ids(service: Open) -> list[int]:
    """Store memories with facts and tags, messages and a block; return the ids of the memories."""
    found = []
    with service() as client:
        for number in range(3):
            memory = {"text": f"memory number{number} of Ann", "source": "notes", "metadata": {"n": number}}
            more = {"facts": [f"fact number{number}", "Ann counts"], "tags": [f"tag{number}"]}
            found.append(int(done(client.post("/memory/add", json={**memory, **more}))["id"]))
            message = {"agent_name": AGENT, "role": "user", "content": f"message number{number} of Ann"}
            done(client.post("/messages", json={**message, "session_id": "s", "metadata": {"n": number}}))
            block = {"agent_name": AGENT, "label": f"label{number}", "value": f"value{number}"}
            done(client.post("/memory-blocks", json=block))
    return found


def remove_snapshots(path: Path) -> None:
    """Let the index be built from the rows."""
    for file in path.parent.glob("index*/*"):
        file.unlink()


def done(answer: Any) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()


def listed(client: TestClient) -> set[int]:
    return {one["id"] for one in done(client.get("/memories"))["memories"]}


def found_by(client: TestClient, query: str) -> set[int]:
    found = done(client.post("/search", json={"query": query, "k": 10}))
    return {one["id"] for one in found["results"]}


def exported(client: TestClient, **query: Any) -> list[dict[str, Any]]:
    answer = client.get("/export", params=query)
    assert answer.status_code == 200, answer.text
    return lines_of(answer.content)[1:]


def warned(client: TestClient) -> str:
    """Return the warning about unreadable rows."""
    warnings = loaded(client).get("/health/ready").json()["warnings"]
    return "".join(one["message"] for one in warnings if one["code"] == "rows_unreadable")


@pytest.mark.parametrize(("column", "value"), MEMORIES.values(), ids=MEMORIES.keys())
def test_a_damaged_memory_is_left_out_and_named_and_can_be_deleted(
    service: Open, path: Path, ids: list[int], column: str, value: str
):
    assert overwrite(path, "memories", column, value, where=f"id = {SECOND_MEMORY}") == 1
    others = {ids[0], ids[2]}
    with service() as client:
        assert listed(client) == others
        assert found_by(client, "memory number0 number1 number2") == others
        assert {one["id"] for one in exported(client, include_history=True)} == others
        assert done(client.post("/search", json={"query": "Ann", "metadata": {"n": 2}}))["results"]
        assert warned(client).startswith(f"Rows that cannot be read are left out of answers: 1 (memories {ids[1]})")
        assert "python app.py check --repair" in warned(client)
        refused = client.get(f"/memory/{ids[1]}")
        assert (refused.status_code, refused.json()["code"]) == (500, "memory_unreadable")
        assert client.patch(f"/memory/{ids[1]}", json={"pinned": True}).json()["code"] == "memory_unreadable"
        many = done(client.post("/memory/update-batch", json={"ids": [*ids, 10**6], "pinned": True}))
        assert (set(many["updated_ids"]), many["missing_ids"]) == (others, [10**6])
        assert [one["id"] for one in many["refused"]] == [ids[1]]
        assert client.get(f"/memory/{ids[0]}").status_code == 200
        assert done(client.delete(f"/memory/{ids[1]}"))["deleted_text"] in ("", "memory number1 of Ann")
        assert client.get(f"/memory/{ids[1]}").status_code == 404
        assert warned(client) == ""
    with service() as client:
        assert warned(client) == ""
        assert listed(client) == others


@pytest.mark.parametrize(("column", "value"), MESSAGES.values(), ids=MESSAGES.keys())
def test_a_damaged_message_is_left_out_and_named_and_can_be_deleted(
    service: Open, path: Path, ids: list[int], column: str, value: str
):
    with service() as client:
        uids = [one["id"] for one in done(client.get(f"/messages/{AGENT}"))][::-1]
    assert overwrite(path, "messages", column, value, where=f"id = {SECOND_MESSAGE}") == 1
    others = {uids[0], uids[2]}
    with service() as client:
        assert {one["id"] for one in done(client.get(f"/messages/{AGENT}"))} == others
        assert {one["id"] for one in done(client.get(f"/sessions/{AGENT}/s/messages"))} == others
        asked = {"agent_name": AGENT, "query": "number0 number1 number2"}
        assert {one["id"] for one in done(client.post("/messages/search", json=asked))} == others
        lines = lines_of(client.get(f"/agents/{AGENT}/export").content)
        assert sum("label" in str(line) for line in lines) >= 3
        assert "rows_unreadable" in str(loaded(client).get("/health/ready").json())
        refused = client.get(f"/messages/{AGENT}/{uids[1]}")
        assert (refused.status_code, refused.json()["code"]) == (500, "message_unreadable")
        assert client.delete(f"/messages/{AGENT}/{uids[1]}").status_code == 200
        assert client.get(f"/messages/{AGENT}/{uids[1]}").status_code == 404


@pytest.mark.parametrize(("table", "column", "value", "where"), PASSAGES.values(), ids=PASSAGES.keys())
def test_a_damaged_passage_leaves_only_itself_out_of_search(
    service: Open, path: Path, ids: list[int], table: str, column: str, value: str, where: str
):
    remove_snapshots(path)
    assert overwrite(path, table, column, value, where=where) == 1
    for text in ("a new one", "another one"):
        with service() as client:
            assert {ids[0], ids[2]} <= found_by(client, "memory number0 number1 number2")
            assert set(ids) <= listed(client)
            assert table in warned(client)
            assert loaded(client).get("/health/ready").json()["ready"]
            added = done(client.post("/memory/add", json={"text": text, "source": "notes"}))["id"]
            assert added in found_by(client, text)
    with service() as client:
        assert done(client.delete(f"/memory/{ids[1]}"))["success"]
        assert found_by(client, "memory number1")


@pytest.mark.parametrize("value", ["x'01'", "substr(tokens, 1, length(tokens) - 1)", "x''"])
def test_damaged_token_vectors_count_as_missing(service: Open, path: Path, ids: list[int], value: str):
    remove_snapshots(path)
    with_tokens = "SELECT min(passage_id) FROM vectors WHERE tokens IS NOT NULL"
    assert overwrite(path, "vectors", "tokens", value, where=f"passage_id = ({with_tokens})") == 1
    with service() as client:
        assert found_by(client, "fact number0 number1 number2") == set(ids)
        assert "vectors" in warned(client)


@pytest.mark.parametrize("value", [NOT_UTF8, "'{'", "'[]'"])
def test_a_damaged_history_row_is_left_out_of_histories_and_of_the_past(
    service: Open, path: Path, ids: list[int], value: str
):
    with service() as client:
        at = done(client.get(f"/memory/{ids[2]}"))["updated_at"]
        for memory_id in ids:
            done(client.patch(f"/memory/{memory_id}", json={"text": f"changed {memory_id}"}))
    first = f"(SELECT min(id) FROM history WHERE memory_id = {ids[1]})"
    assert overwrite(path, "history", "after", value, where=f"id = {first}") == 1
    with service() as client:
        whole, damaged = (done(client.get(f"/memory/{ids[at]}/history"))["changes"] for at in (0, 1))
        assert [one["action"] for one in whole[:2]] == ["add", "update"]
        assert [one["action"] for one in damaged[:1]] == ["update"]
        assert len(exported(client, include_history=True)) == 3
        past = done(client.get("/memories", params={"as_of": at}))
        assert ids[1] not in {one["id"] for one in past["memories"]}
        then = client.get(f"/memory/{ids[1]}", params={"as_of": at})
        assert (then.status_code, then.json()["code"]) == (500, "memory_unreadable")
        never = client.get(f"/memory/{ids[1]}", params={"as_of": "2001-01-01T00:00:00Z"})
        assert (never.status_code, never.json()["code"]) == (404, "memory_not_found")
        assert "history" in warned(client)


def test_damaged_facts_tags_and_blocks_are_left_out(service: Open, path: Path, ids: list[int]):
    of_second = f"memory_id = {ids[1]}"
    assert overwrite(path, "facts", "text", NOT_UTF8, where=f"{of_second} AND ordinal = 0") == 1
    assert overwrite(path, "memory_tags", "tag", NOT_UTF8, where=of_second) == 1
    assert overwrite(path, "blocks", "value", NOT_UTF8, where="label = 'label1'") == 1
    with service() as client:
        assert listed(client) == set(ids)
        facts = done(client.get(f"/memory/{ids[1]}"))["facts"]
        assert [fact["text"] for fact in facts] == ["Ann counts"]
        assert len(done(client.get("/facts"))["facts"]) == 5
        assert len(exported(client)) == 3
        blocks = done(client.get(f"/memory-blocks/{AGENT}"))
        assert [one["label"] for one in blocks] == ["label0", "label2"]
        refused = client.get(f"/memory-blocks/{AGENT}/label1")
        assert (refused.status_code, refused.json()["code"]) == (500, "block_unreadable")
        assert all(table in warned(client) for table in ("facts", "memory_tags", "blocks"))
        assert done(client.delete(f"/memory-blocks/{AGENT}/label1"))["label"] == "label1"
        assert client.get(f"/memory-blocks/{AGENT}/label1").status_code == 404
        assert "blocks" not in warned(client)


SAILING = "Alice took the Albatross from Lisbon to Madeira"
BAKING = "Boris bakes Panettone with Greta in Milan"
TOPIC = "(SELECT topic_id FROM topic_segments ORDER BY topic_id LIMIT 1)"
GRAPH = {
    "a relation between concepts": ("claims", "text", NOT_UTF8, "kind = 'relation' AND text = 'works_for'"),
    "an alias of a concept": ("claims", "text", NOT_UTF8, "kind = 'alias'"),
    "a concept": ("concepts", "key", NOT_UTF8, "key = 'greta'"),
    "a topic's name": ("topics", "name", NOT_UTF8, f"id = {TOPIC}"),
    "a link": ("links", "type", NOT_UTF8, "type = 'caused_by'"),
    "a link's time": ("links", "created_at", TOO_LATE, "type = 'caused_by'"),
    "a session": ("sessions", "name", NOT_UTF8, "name = 'oven'"),
    "a user": ("users", "name", NOT_UTF8, "name = 'eva'"),
}
LOST_NODES = {
    "concepts": {"Concept"},
    "topics": {"Topic"},
    "sessions": {"Session", "Message"},
    "users": {"User", "Session", "Message"},
}
"""By the table of the damaged row: the labels of the nodes that the graph loses."""


@pytest.fixture
def graph(service: Open, ids: list[int]) -> list[int]:
    """Let Ann have concepts, relations and topics, and link the memories; return the ids of the memories."""
    with service() as client:
        for session, user, text in (("sea", "eva", SAILING), ("sea2", "eva", SAILING), ("oven", "tom", BAKING)):
            message = {"agent_name": AGENT, "role": "user", "content": text, "session_id": session, "user": user}
            done(client.post("/messages", json=message))
        indexer = loaded(client).app.state.service.graph.indexer  # type: ignore[attr-defined]  # an application
        indexer.catch_up()
        concepts = [{"key": key, "aliases": [f"{key} the first"]} for key in ("alice", "greta", "milan")]
        between = (("alice", "greta", "works_for"), ("greta", "milan", "lives_in"), ("alice", "milan", "visits"))
        relations = [{"from_key": one, "to_key": other, "relationship_type": kind} for one, other, kind in between]
        done(client.post(f"/agents/{AGENT}/graph", json={"concepts": concepts, "relations": relations}))
        indexer.catch_up()
        for other, kind in zip(ids[1:], ("caused_by", "blocked_by"), strict=True):
            done(client.post(f"/memory/{ids[0]}/link", json={"to_id": other, "type": kind}))
    return ids


Seen = dict[str, set[Any]]


def seen_in_graph(client: TestClient, memory_id: int) -> Seen:
    """Return the ids of everything that reads of the agent's graph and of a memory's links show."""
    whole = done(client.get(f"/agents/{AGENT}/graph"))
    assert client.get(f"/agents/{AGENT}/graph", params={"format": "graphml"}).status_code == 200
    concepts = done(client.get(f"/agents/{AGENT}/concepts", params={"limit": 100}))["concepts"]
    relations = set()
    for concept in concepts:
        path = f"/agents/{AGENT}/concepts/{concept['id']}"
        assert done(client.get(path))["name"] == concept["name"]
        done(client.get(f"{path}/related"))
        relations |= {(r["concept"], r["type"], r["other"]) for r in done(client.get(f"{path}/relations"))["relations"]}
    topics = done(client.get(f"/agents/{AGENT}/topics"))["topics"]
    for topic in topics:
        done(client.get(f"/agents/{AGENT}/topics/{topic['id']}"))
    done(client.get(f"/agents/{AGENT}/insights"))
    links = done(client.get(f"/memory/{memory_id}/links"))["links"]
    return {
        "nodes": {(one["label"], one["id"]) for one in whole["nodes"]},
        "edges": {(one["type"], one["from_id"], one["to_id"]) for one in whole["relations"]},
        "concepts": {one["id"] for one in concepts},
        "relations": relations,
        "topics": {one["id"] for one in topics},
        "links": {one["to_id"] for one in links},
    }


@pytest.mark.parametrize(("table", "column", "value", "where"), GRAPH.values(), ids=GRAPH.keys())
def test_a_damaged_row_of_the_graph_leaves_only_itself_out(
    service: Open, path: Path, graph: list[int], table: str, column: str, value: str, where: str
):
    with service() as client:
        before = seen_in_graph(client, graph[0])
        assert warned(client) == ""
    assert overwrite(path, table, column, value, where=where) >= 1
    with service() as client:
        after = seen_in_graph(client, graph[0])
        assert table in warned(client)
    assert all(after[part] <= before[part] for part in before)
    lost = {part: before[part] - after[part] for part in before}
    lost_ids = {id_ for _, id_ in lost["nodes"]}
    of_lost_nodes = {edge for edge in before["edges"] if lost_ids & {*edge[1:]}}
    is_relation = "works_for" in where
    assert {label for label, _ in lost["nodes"]} == LOST_NODES.get(table, set())
    assert of_lost_nodes <= lost["edges"]
    assert len(lost["edges"] - of_lost_nodes) == is_relation
    assert {kind for _, kind, _ in lost["relations"]} == (
        {"works_for"} if is_relation else {"works_for", "lives_in"} if table == "concepts" else set()
    )
    assert [len(lost[part]) for part in ("concepts", "topics", "links")] == [
        table == one for one in ("concepts", "topics", "links")
    ]


def test_a_damaged_entity_leaves_the_concepts_of_the_others(service: Open, path: Path, ids: list[int]):
    headers = {"X-Namespace": AGENT}
    entities = [{"name": name, "entity_type": "person"} for name in ("zoe", "mia")]
    with service() as client:
        knows = {"from_entity": "mia", "to_entity": "zoe", "relation_type": "knows"}
        done(client.post("/knowledge-graph", json={"entities": entities, "relations": [knows]}, headers=headers))
    assert overwrite(path, "memories", "metadata", "CAST(x'7bff' AS TEXT)", where="key = 'zoe'") == 1
    queue = (
        "INSERT INTO unread (namespace_id, kind, owner_id) SELECT namespace_id, 'memory', id FROM memories "
        "WHERE key IS NOT NULL ON CONFLICT DO NOTHING"
    )
    with service() as client:
        running = loaded(client).app.state.service  # type: ignore[attr-defined]
        running.engine.write_rows(lambda connection: connection.execute(queue))
        running.graph.indexer.catch_up()
        mia = done(client.get(f"/agents/{AGENT}/concept", params={"name": "mia"}))
        assert (mia["kind"], mia["mentions"]) == ("person", 1)
        assert "memories" in warned(client)


def test_lists_of_tags_and_agents_leave_damaged_rows_out(service: Open, path: Path, ids: list[int]):
    with service() as client:
        done(client.post("/agents", json={"name": "bob", "metadata": {"n": 1}}))
        done(client.post("/agents", json={"name": "cid", "metadata": {"n": 2}}))
    of_bob = "namespace_id = (SELECT id FROM namespaces WHERE name = 'bob')"
    for damage in (
        {"metadata": "'{'"},
        {"metadata": "NULL", "access": "'{'"},
        {"access": "'{}'", "created_at": TOO_LATE},
    ):
        for column, value in damage.items():
            assert overwrite(path, "agents", column, value, where=of_bob) == 1
        with service() as client:
            assert [one["name"] for one in done(client.get("/agents"))["agents"]] == [AGENT, "cid"]
            assert "agents" in warned(client)
    assert overwrite(path, "memory_tags", "tag", NOT_UTF8, where=f"memory_id = {ids[1]}") == 1
    with service() as client:
        assert {one["tag"] for one in done(client.get("/tags"))["tags"]} == {"tag0", "tag2"}
        assert f"memory_tags {ids[1]}" in warned(client)


def test_a_restore_clears_the_warning(service: Open, path: Path, ids: list[int]):
    with service() as client:
        backup = done(client.post("/backup"))["backup_path"].removeprefix("backups/")
    overwrite(path, "memories", "text", NOT_UTF8, where=f"id = {SECOND_MEMORY}")
    with service() as client:
        assert listed(client) == {ids[0], ids[2]}
        assert warned(client)
        done(client.post("/restore", json={"backup_name": backup}))
        assert warned(client) == ""
        assert listed(client) == set(ids)
