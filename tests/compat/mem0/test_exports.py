"""Exports by a schema, and summaries, without a language model."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any, Literal
from zlib import compress

import pytest
from pydantic import BaseModel

from souvenir.compat.mem0.exports import MAX_SUMMARY_CHARS


class Note(BaseModel):
    id: str
    memory: str
    user_id: str | None
    categories: list[str]


class Notes(BaseModel):
    memories: list[str] = []
    notes: list[Note]


class Person(BaseModel):
    full_name: str | None = None
    memories: list[str]


class Mood(BaseModel):
    memory: Literal["good", "bad"]


class Moods(BaseModel):
    moods: list[Mood]


def refused(call: Any) -> Any:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the caller looks at it
        call()
    return raised.value


def test_an_export_lists_the_selected_memories_as_its_schema_says(client):
    mem0 = client()
    for text, user in (("one", "u-export"), ("two", "u-export"), ("three", "u-other")):
        mem0.add(text, user_id=user)
    mem0.add("past", user_id="u-export", expiration_date="2020-01-01")
    for named in ({"user_id": "u-export"}, {"filters": {"AND": [{"user_id": "u-export"}]}}):
        made = mem0.create_memory_export(schema=Notes.model_json_schema(), **named)
        export = Notes.model_validate(mem0.get_memory_export(memory_export_id=made["id"]))
        assert export.memories == ["two", "one"]
        assert [(note.memory, note.user_id, note.categories) for note in export.notes] == [
            ("two", "u-export", []),
            ("one", "u-export", []),
        ]


def test_a_schema_is_also_taken_as_a_text(client):
    client().add("one", user_id="u-text")
    text = '{"properties": {"memories": {"type": "array", "items": {"type": "string"}}}}'
    made = client().create_memory_export(schema=text, user_id="u-text")
    assert client().get_memory_export(memory_export_id=made["id"]) == {"memories": ["one"]}


def test_a_forgotten_memory_is_in_no_earlier_export(client):
    mem0 = client()
    added = mem0.add([{"role": "user", "content": text} for text in ("the zebraquartz", "kept")], user_id="u-forget")
    made = mem0.create_memory_export(schema=Notes.model_json_schema(), user_id="u-forget")
    assert "zebraquartz" in str(mem0.get_memory_export(memory_export_id=made["id"]))
    mem0.delete(added["results"][0]["id"])
    for named in ({"memory_export_id": made["id"]}, {"user_id": "u-forget"}):
        assert mem0.get_memory_export(**named)["memories"] == ["kept"]
    assert "zebraquartz" not in mem0.get_summary({"user_id": "u-forget"})["summary"]


def test_an_export_by_filters_has_the_schema_of_the_last_one_with_these_filters(client, running):
    mem0 = client(running.new_key(role="read-write", namespace="by-filters"))
    assert refused(lambda: mem0.get_memory_export(user_id="ann")).error_code == "HTTP_404"
    mem0.add("one", user_id="ann")
    mem0.add("two", user_id="ben")
    listed = {"properties": {"memories": {"type": "array", "items": {"type": "string"}}}}
    records = {
        "properties": {
            "found": {"type": "array", "items": {"type": "object", "properties": {"memory": {"type": "string"}}}}
        }
    }
    mem0.create_memory_export(schema=listed, user_id="ann")
    mem0.create_memory_export(schema=records, user_id="ben")
    assert mem0.get_memory_export(user_id="ann") == {"memories": ["one"]}
    assert mem0.get_memory_export(user_id="ben") == {"found": [{"memory": "two"}]}
    since = {"AND": [{"user_id": "ann"}, {"created_at": {"gte": "2020-01-01"}}]}
    assert mem0.get_memory_export(filters=since) == {"found": [{"memory": "one"}]}


def test_the_id_of_an_export_gives_no_access_to_its_memories(client):
    alpha, beta = client("alpha"), client("beta")
    alpha.add("only alpha knows", user_id="u-scope")
    beta.add("only beta knows", user_id="u-scope")
    own = alpha.create_memory_export(schema=Notes.model_json_schema(), user_id="u-scope")
    assert beta.get_memory_export(memory_export_id=own["id"])["memories"] == ["only beta knows"]
    assert client("reader").get_memory_export(memory_export_id=own["id"])["memories"] == ["only alpha knows"]
    named = client("admin").create_memory_export(schema=Notes.model_json_schema(), filters={"agent_id": "alpha"})
    for call in (
        lambda: beta.get_memory_export(memory_export_id=named["id"]),
        lambda: beta.get_memory_export(filters={"agent_id": "alpha"}),
        lambda: beta.create_memory_export(schema=Notes.model_json_schema(), agent_id="alpha"),
        lambda: beta.get_summary({"agent_id": "alpha"}),
    ):
        error = refused(call)
        assert error.error_code in ("HTTP_403", "HTTP_404")
        assert "only alpha knows" not in str(error)
    assert "only alpha knows" not in str(beta.get_summary({"agent_id": "*"}))


def test_a_key_for_some_sources_exports_these_only(client, running):
    client("alpha").add("of mem0", user_id="u-sources")
    for prefixes, texts in (["notes"], []), (["mem0"], ["of mem0"]):
        limited = client(running.new_key(role="read-write", namespace="alpha", prefixes=prefixes))
        made = limited.create_memory_export(schema=Notes.model_json_schema(), user_id="u-sources")
        for named in ({"memory_export_id": made["id"]}, {"user_id": "u-sources"}):
            assert limited.get_memory_export(**named)["memories"] == texts
        assert limited.get_summary({"user_id": "u-sources"})["memories"] == len(texts)


def test_a_key_that_only_reads_names_its_exports_by_id(client):
    client("alpha").add("read", user_id="u-reader")
    reader = client("reader")
    made = reader.create_memory_export(schema=Notes.model_json_schema(), user_id="u-reader")
    assert reader.get_memory_export(memory_export_id=made["id"])["memories"] == ["read"]
    assert refused(lambda: reader.get_memory_export(user_id="u-reader")).error_code == "HTTP_404"


@pytest.mark.parametrize("schema", [Person.model_json_schema(), Moods.model_json_schema()], ids=["name", "enum"])
def test_a_schema_that_needs_a_model_is_refused_without_one(client, schema):
    error = refused(lambda: client().create_memory_export(schema=schema, user_id="u-model"))
    assert error.error_code == "HTTP_501"
    assert error.message.startswith(f"Only a language model can fill {'moods' if 'moods' in str(schema) else 'full'}")


_SELF = {"$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}, "properties": {"a": {"$ref": "#/$defs/a"}}}
_BRANCHING = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}] * 30}, "b": {"anyOf": [{"type": "null"}] * 30}}}


@pytest.mark.parametrize(
    "schema",
    [
        "{",
        "[]",
        "{}",
        '{"title": "\\ud800", "properties": {"memories": {"type": "array", "items": {"type": "string"}}}}',
        {"properties": {}},
        {"properties": {"a": {}}},
        {"properties": {"a": {"type": "object"}}},
        {"properties": {"a": {"type": "array"}}},
        {"properties": {"a": {"$ref": "#/$defs/none"}}},
        {"properties": {"a": {"$ref": "https://example.com/schema"}}},
        {"properties": {"a": {"enum": [{}]}}},
        {"properties": {"a": {"type": "string", "minLength": -1}}},
        {"properties": {"a": {"type": "string", "description": "x" * 20_000}}},
        _SELF,
        {**_BRANCHING, "properties": {"a": {"$ref": "#/$defs/a"}}},
    ],
    ids=lambda schema: str(schema)[:60],
)
def test_a_schema_that_cannot_be_filled_is_refused(client, mem0, schema):
    error = refused(lambda: client().create_memory_export(schema=schema, user_id="u-schema"))
    assert (type(error), error.error_code) == (mem0.exceptions.ValidationError, "HTTP_422")


def packed(written: str) -> str:
    return urlsafe_b64encode(compress(written.encode())).decode().rstrip("=")


FORGED = [
    *("x", "eJw", "7!", "é", "", "A" * 1000),
    packed("[" * 100_000),
    packed("3"),
    packed('[{}, "x"]'),
    packed('[{}, "x", []]'),
    packed('[{}, "x", {"user_id": "\\ud800"}]'),
    packed(f'["{"x" * 10**7}", "x", {{}}]'),
]


@pytest.mark.parametrize("named", FORGED, ids=lambda named: named[:20])
def test_an_id_that_is_none_is_not_found(client, mem0, named):
    error = refused(lambda: client().get_memory_export(memory_export_id=named))
    assert isinstance(error, mem0.exceptions.MemoryNotFoundError)


def test_an_export_is_named_by_its_id_or_by_filters(client):
    for named in ({}, {"memory_export_id": "x", "user_id": "ann"}):
        assert refused(lambda named=named: client().get_memory_export(**named)).error_code == "HTTP_422"


def test_without_a_model_a_summary_is_the_newest_memories(client, running):
    mem0 = client(running.new_key(role="read-write", namespace="summaries"))
    empty = mem0.get_summary()
    assert (empty["summary"], empty["memories"], empty["newest_at"]) == ("", 0, None)
    mem0.add("first", user_id="ann", timestamp=1_600_000_000)
    mem0.add("second\nline", user_id="ann", timestamp=1_700_000_000)
    made = mem0.get_summary({"user_id": "ann"})
    assert (made["summary"], made["made_by"], made["memories"]) == ("- second line\n- first", "excerpts", 2)
    assert (made["oldest_at"][:10], made["newest_at"][:10]) == ("2020-09-13", "2023-11-14")
    for number in range(3):
        mem0.add(f"{number} " + "tea " * 300, user_id="long")
    assert 1_000 < len(mem0.get_summary({"user_id": "long"})["summary"]) <= MAX_SUMMARY_CHARS
