"""The nine tools of the reference memory server, in its formats."""

from __future__ import annotations

from itertools import count
from typing import Any

import anyio
import pytest
from mcp import Client

from souvenir.mcp.graph_tools import TOOLS
from tests.client.running import RunningService
from tests.mcp.conftest import Asking, calling

_numbers = count()
ANN = {"name": "Ann_Lee", "entityType": "person", "observations": ["Speaks Basque", "Runs"]}
ACME = {"name": "Acme", "entityType": "company", "observations": []}
WORKS = {"from": "Ann_Lee", "to": "Acme", "relationType": "works_at"}


@pytest.fixture
def path() -> str:
    """Of an agent that no other test uses."""
    return f"/mcp/grapher-{next(_numbers)}"


def test_each_tool_is_compatible_with_the_reference(ask: Asking, path: str):
    assert ask.call("create_entities", path, entities=[ANN, ACME]) == {"entities": [ANN, ACME]}
    assert ask.call("create_entities", path, entities=[{**ANN, "observations": []}]) == {"entities": []}
    assert ask.call("create_relations", path, relations=[WORKS]) == {"relations": [WORKS]}
    assert ask.call("create_relations", path, relations=[WORKS]) == {"relations": []}
    added = ask.call("add_observations", path, observations=[{"entityName": "Acme", "contents": ["Makes anvils"]}])
    assert added == {"results": [{"entityName": "Acme", "addedObservations": ["Makes anvils"]}]}
    acme = {**ACME, "observations": ["Makes anvils"]}
    assert ask.call("read_graph", path) == {"entities": [ANN, acme], "relations": [WORKS]}
    assert ask.call("search_nodes", path, query="basque") == {"entities": [ANN], "relations": [WORKS]}
    assert ask.call("open_nodes", path, names=["Acme", "nobody"]) == {"entities": [acme], "relations": [WORKS]}
    gone = ask.call("delete_observations", path, deletions=[{"entityName": "Ann_Lee", "observations": ["Runs"]}])
    assert gone == {"success": True, "message": "Observations deleted successfully"}
    assert ask.call("delete_relations", path, relations=[WORKS])["success"]
    assert ask.call("delete_entities", path, entityNames=["Acme", "nobody"])["success"]
    assert ask.call("read_graph", path) == {"entities": [{**ANN, "observations": ["Speaks Basque"]}], "relations": []}


def test_texts_are_those_of_the_reference_server(ask: Asking, path: str):
    """Recorded from @modelcontextprotocol/server-memory 2026.8.31, called with the same arguments."""

    def text(tool: str, **arguments: Any) -> str:
        answer = ask.post(calling(tool, arguments), path).json()["result"]
        [content] = answer["content"]
        return str(content["text"])

    ann = """{
      "name": "Ann_Lee",
      "entityType": "person",
      "observations": [
        "Speaks Basque",
        "Runs"
      ]
    }"""
    relation = """{
      "from": "Ann_Lee",
      "to": "Acme",
      "relationType": "works_at"
    }"""
    acme = """{
      "name": "Acme",
      "entityType": "company",
      "observations": []
    }"""
    created = f"[\n    {ann},\n    {acme}\n  ]".replace("\n  ", "\n")
    assert text("create_entities", entities=[ANN, ACME]) == created
    assert text("create_entities", entities=[ANN]) == "[]"
    assert text("create_relations", relations=[WORKS]) == f"[\n    {relation}\n  ]".replace("\n  ", "\n")
    added = text("add_observations", observations=[{"entityName": "Acme", "contents": ["Makes anvils"]}])
    assert added == (
        '[\n  {\n    "entityName": "Acme",\n    "addedObservations": [\n      "Makes anvils"\n    ]\n  }\n]'
    )
    found = f'{{\n  "entities": [\n    {ann}\n  ],\n  "relations": [\n    {relation}\n  ]\n}}'
    assert text("search_nodes", query="basque") == found
    assert text("open_nodes", names=["Ann_Lee", "nobody"]) == found
    deletions = [{"entityName": "Ann_Lee", "observations": ["Runs"]}]
    assert text("delete_observations", deletions=deletions) == "Observations deleted successfully"
    assert text("delete_relations", relations=[WORKS]) == "Relations deleted successfully"
    assert text("delete_entities", entityNames=["Ann_Lee", "nobody"]) == "Entities deleted successfully"
    acme = acme.replace("[]", '[\n        "Makes anvils"\n      ]')
    assert text("read_graph") == f'{{\n  "entities": [\n    {acme}\n  ],\n  "relations": []\n}}'


def test_observations_of_unknown_entities_are_refused_by_name(ask: Asking, path: str):
    said = ask.call("add_observations", path, observations=[{"entityName": "Nobody", "contents": ["Runs"]}])
    assert said == "Entity with name Nobody not found; make it with create_entities first"


def test_aliases_of_arguments_are_accepted_and_missing_ones_named(ask: Asking, path: str):
    given = {"name": "Ann", "entity_type": "person", "observations": []}
    assert ask.call("create_entities", path, entities=[given])["entities"][0]["entityType"] == "person"
    assert "entities.0.entityType" in ask.call("create_entities", path, entities=[{"name": "a", "observations": []}])


def test_entities_are_memories_of_the_other_tools(ask: Asking, path: str):
    ask.call("create_entities", path, entities=[ANN])
    [found] = ask.call("search_memory", path, query="Who speaks Basque?")["memories"]
    assert found["memory"] == "Ann Lee (person)\nSpeaks Basque\nRuns"
    [listed] = ask.http.get("/memories", headers={"X-Namespace": path.rpartition("/")[2]}).json()["memories"]
    ask.http.patch(f"/memory/{listed['id']}", json={"pinned": True}, headers={"X-Namespace": path.rpartition("/")[2]})
    assert "is pinned" in ask.call("delete_entities", path, entityNames=["Ann_Lee"])


def test_schemas_have_the_names_of_the_reference(ask: Asking):
    def fields_of(schema: Any, name: str) -> tuple[set[str], set[str]]:
        item = schema["$defs"][schema["properties"][name]["items"]["$ref"].rpartition("/")[2]]
        return set(item["properties"]), set(item["required"])

    schemas = {tool.name: tool.input_schema for tool in TOOLS}
    assert fields_of(schemas["create_entities"], "entities") == ({*ANN}, {*ANN})
    for tool in ("create_relations", "delete_relations"):
        assert fields_of(schemas[tool], "relations") == ({*WORKS}, {*WORKS})
    of_added, of_gone = {"entityName", "contents"}, {"entityName", "observations"}
    assert fields_of(schemas["add_observations"], "observations") == (of_added, of_added)
    assert fields_of(schemas["delete_observations"], "deletions") == (of_gone, of_gone)
    assert [schemas[tool]["required"] for tool in ("delete_entities", "search_nodes", "open_nodes")] == [
        ["entityNames"],
        ["query"],
        ["names"],
    ]
    answered = next(tool for tool in TOOLS if tool.name == "read_graph").output_schema
    assert fields_of(answered, "relations") == ({*WORKS}, {*WORKS})


def test_the_official_client_finds_the_answers_true_to_their_schemas(service: RunningService, path: str):
    async def use() -> None:
        async with Client(f"{service.url}{path}") as client:
            assert {tool.name for tool in TOOLS} <= {tool.name for tool in (await client.list_tools()).tools}
            await client.call_tool("create_entities", {"entities": [ANN, ACME]})
            await client.call_tool("create_relations", {"relations": [WORKS]})
            found = await client.call_tool("read_graph", {})
            assert found.structured_content == {"entities": [ANN, ACME], "relations": [WORKS]}

    anyio.run(use)
