"""Export and import of an agent's graph: each node and relation once, and only into the given agent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from souvenir_client import Souvenir
from souvenir_client.errors import InvalidRequest, NotFound
from souvenir_client.importing import ImportReport, Kind, import_file
from tests.client.running import RunningService

IDS = {"message_id", "concept_id", "topic_id", "memory_id", "response_to"}
"""Properties that another database gives other values."""

TALK = [
    ("user", "alice", "My name is Alice and I moved our billing to Redis in Oslo.", "2024-03-01T09:00:00Z"),
    ("assistant", "alice", "Nice to meet you, Alice! Redis keeps the billing sessions.", "2024-03-01T09:00:05Z"),
    ("user", "alice", " Is Redis in Oslo?\r\n\x07", "2024-03-01T09:01:00Z"),
    ("system", None, "Answer in English.", "2024-03-01T09:01:01Z"),
]
LATER = [("user", "bob", "Redis moved to Bergen, says Alice.", "2024-05-06T07:00:00Z")]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    service = RunningService(tmp_path_factory.mktemp("graph") / "data")
    service.start()
    yield service
    service.stop()


@pytest.fixture(scope="module")
def client(service: RunningService) -> Iterator[Souvenir]:
    with Souvenir(service.url) as client:
        fill(client, "source")
        catch_up(service)
        stated = client.agents.state_concepts(
            "source",
            concepts=[
                {"key": "Redis", "description": "Where sessions live.", "kind": "database", "aliases": ["cache"]},
                {"key": "Oslo", "aliases": ["Bergen"]},
            ],
            relations=[{"from_key": "redis", "to_key": "Oslo", "relationship_type": "runs in", "strength": 0.75}],
        )
        assert (stated.stated, stated.unchanged, stated.unknown) == (5, 0, [])
        catch_up(service)
        yield client


def fill(client: Souvenir, agent: str) -> None:
    for session, talk in (("first", TALK), ("second", LATER)):
        client.sessions.start(agent_name=agent, session_id=session, user=talk[0][1], started_at="2024-02-29T12:00:00Z")
        said = [
            {"role": role, "content": content, "created_at": at, **({"user": user} if user else {})}
            for role, user, content, at in talk
        ]
        client.messages.add_batch(agent_name=agent, session_id=session, messages=said)
    client.sessions.end(agent, "first", ended_at="2024-03-01T10:00:00Z")
    there = client.in_namespace(agent)
    there.memories.add(text="Redis runs in Oslo.", source="notes/redis", metadata={"importance": 0.9})
    there.memories.add(text="Alice likes green tea.", source="notes", metadata={"document_at": "2024-03-02"})


def catch_up(service: RunningService) -> None:
    service.app.state.service.graph.indexer.catch_up()


def exported(client: Souvenir, agent: str, **options: Any) -> Any:
    return json.loads(b"".join(client.agents.graph(agent, **options)))


def said(properties: dict[str, Any]) -> str:
    return json.dumps({name: value for name, value in sorted(properties.items()) if name not in IDS})


def but_for_ids(graph: dict[str, Any]) -> Counter[str]:
    """Nodes by what they say, and relations by what their ends say.

    How much a message discusses a topic depends on the bytes of texts, of which GraphML replaces some.
    """
    nodes = {one["id"]: f"{one['label']} {said(one['properties'])}" for one in graph["nodes"]}
    relations = [
        f"{one['type']} {nodes[one['from_id']]} {nodes[one['to_id']]} "
        f"{'' if one['type'] == 'DISCUSSES' else said(one['properties'])}"
        for one in graph["relations"]
    ]
    return Counter([*nodes.values(), *relations])


def of(graph: dict[str, Any], what: str) -> list[dict[str, Any]]:
    everything = ((one.get("label") or one["type"], one) for one in (*graph["nodes"], *graph["relations"]))
    return [one["properties"] for name, one in everything if name == what]


def written(client: Souvenir, agent: str, path: Path, **options: Any) -> Path:
    path.write_bytes(b"".join(client.agents.graph(agent, **options)))
    return path


def test_every_node_and_relation_has_the_properties_of_the_documentation(client: Souvenir):
    graph = exported(client, "source")
    assert (graph["format"], graph["version"], graph["agent"]) == ("souvenir-graph", "1.0", "source")
    assert [one["name"] for one in of(graph, "User")] == ["alice", "bob"]
    assert of(graph, "User")[0]["created_at"] == "2024-02-29T12:00:00.000000+00:00"
    times = {"started_at": "2024-02-29T12:00:00.000000+00:00", "ended_at": "2024-03-01T10:00:00.000000+00:00"}
    assert of(graph, "Session") == [
        {"session_id": "first", **times},
        {"session_id": "second", "started_at": times["started_at"]},
    ]
    assert [one["content"] for one in of(graph, "Message")] == [one[2] for one in (*TALK, *LATER)]
    assert [one["sequence_number"] for one in of(graph, "CONTAINS")] == [1, 2, 3, 4, 1]
    assert len(of(graph, "SENT")) == 3
    messages = of(graph, "Message")
    assert of(graph, "RECEIVED") == [{"response_to": messages[0]["message_id"]}]
    [redis] = [one for one in of(graph, "Concept") if one["key"] == "redis"]
    wanted = {"name": "Redis", "description": "Where sessions live.", "kind": "database", "aliases": ["cache"]}
    assert {name: redis[name] for name in wanted} == wanted
    assert (redis["stated"], redis["stated_aliases"]) == (["description", "kind"], ["cache"])
    assert "bergen" not in [one["key"] for one in of(graph, "Concept")]
    related = {one["relationship_type"]: one["strength"] for one in of(graph, "RELATES_TO")}
    assert related["runs_in"] == 0.75
    assert 0 < related["co_occurs"] <= 1
    assert all(0 <= one["relevance"] <= 1 for one in of(graph, "MENTIONS"))
    assert {one["importance"] for one in of(graph, "Memory")} == {0.5, 0.9}
    assert len(of(graph, "REFERENCES")) >= 3


@pytest.mark.parametrize("written_as", ["json", "graphml"])
def test_a_graph_round_trips_to_another_agent_except_for_ids(client, service, tmp_path, written_as):
    path, agent = tmp_path / "graph", f"copy-{written_as}"
    first = import_file(client, written(client, "source", path, format=written_as), agent=agent)
    assert (first.kind, first.skipped, first.altered) == (Kind.GRAPH, (), ())
    assert counts(first) == {"messages": 5, "sessions": 2, "memories": 2, "concepts": 5}
    catch_up(service)
    copy, source = exported(client, agent), exported(client, "source")
    if written_as == "graphml":
        source = json.loads(json.dumps(source).replace("\\u0007", "\ufffd"))
    assert but_for_ids(copy) - but_for_ids(source) == but_for_ids(source) - but_for_ids(copy) == Counter()
    again = import_file(client, path, agent=agent)
    assert (again.imported, again.updated, again.unchanged) == (0, 0, 5 + 2 + 5)
    assert but_for_ids(exported(client, agent)) == but_for_ids(copy)


def counts(report: ImportReport) -> dict[str, int]:
    return {name: getattr(report, name).imported for name in ("messages", "sessions", "memories", "concepts")}


def test_importing_a_graph_into_its_own_agent_changes_nothing(client, tmp_path):
    before = exported(client, "source")
    report = import_file(client, written(client, "source", tmp_path / "own.json"), agent="source")
    assert (report.imported, report.updated) == (0, 0)
    assert but_for_ids(exported(client, "source")) == but_for_ids(before)


def test_statements_about_unmentioned_concepts_are_reported(client, tmp_path):
    graph = exported(client, "source")
    atlantis = {"name": "Atlantis", "description": "An island."}
    graph["nodes"].append({"id": "x", "label": "Concept", "properties": atlantis})
    (tmp_path / "more.json").write_text(json.dumps(graph))
    report = import_file(client, tmp_path / "more.json", agent="source")
    assert [(one.reason, list(one.places)) for one in report.skipped] == [
        ("no imported text mentions this concept", ["concept Atlantis"])
    ]


def test_vectors_are_exported_on_request_and_never_to_graphml(client):
    assert not any("embedding" in one for one in of(exported(client, "source"), "Message"))
    vectors = [one["embedding"] for one in of(exported(client, "source", embeddings=True), "Message")]
    assert all(len(vector) == len(vectors[0]) and abs(sum(x * x for x in vector) - 1) < 1e-3 for vector in vectors)
    with pytest.raises(InvalidRequest, match="GraphML holds no vectors"):
        list(client.agents.graph("source", format="graphml", embeddings=True))


def test_a_new_agent_has_an_empty_graph_and_other_namespaces_have_none(client):
    client.agents.create(name="empty")
    graph = exported(client, "empty")
    assert (graph["nodes"], graph["relations"]) == ([], [])
    for ask in (lambda: list(client.agents.graph("nobody")), lambda: client.agents.state_concepts("nobody")):
        with pytest.raises(NotFound):
            ask()


def test_an_export_contains_nothing_of_another_agent(client, service):
    client.messages.add(agent_name="neighbour", session_id="own", role="user", content="The Zanzibar secret.")
    catch_up(service)
    assert "Zanzibar" in json.dumps(exported(client, "neighbour"))
    assert "Zanzibar" not in json.dumps(exported(client, "source"))
