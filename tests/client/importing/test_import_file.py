"""Imports into the real service: stored, found, dated, and idempotent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count

import pytest

from souvenir_client import Souvenir
from souvenir_client.errors import Forbidden, NotImportable
from souvenir_client.importing import ImportReport, Kind, Missing, Progress, export_sender, import_file
from tests.client.importing.files import (
    chatgpt_conversation,
    chatgpt_message,
    claude_conversation,
    claude_message,
    json_file,
    json_lines,
)

_numbers = count()


@pytest.fixture
def client(service) -> Iterator[Souvenir]:
    with Souvenir(service.url) as client:
        yield client


@pytest.fixture
def agent() -> str:
    """A name that no other test uses."""
    return f"importer-{next(_numbers)}"


def reasons(report: ImportReport) -> dict[str, tuple[str, ...]]:
    return {one.reason: tuple(one.places) for one in report.skipped}


def write_markdown(folder):
    (folder / "notes").mkdir(exist_ok=True)
    (folder / "notes" / "pets.md").write_text("---\ndate: 2021-02-03\n---\nThe parrot is called Polly.")
    return folder / "notes"


def write_jsonl(folder):
    lines = [{"text": "The parrot is called Polly.", "created_at": "2021-02-03"}, {"text": "The bike is red."}]
    return json_lines(folder / "plain.jsonl", lines)


def write_mem0(folder):
    memory = {"id": "m1", "memory": "The parrot is called Polly.", "created_at": "2021-02-03", "user_id": "ann"}
    return json_file(folder / "mem0.json", {"results": [memory]})


def write_graph(folder):
    polly = {"name": "Polly", "entityType": "pet", "observations": ["The parrot is called Polly.", "Likes nuts."]}
    lines = [
        {"type": "relation", "from": "Polly", "to": "Ann", "relationType": "lives_with"},
        {"type": "entity", **polly},
        {"type": "entity", "name": "Ann", "entityType": "person", "observations": []},
    ]
    return json_lines(folder / "memory.jsonl", lines)


def test_lines_import_tags_and_facts_but_not_from_metadata(client, agent, tmp_path):
    facts = ["Polly is a parrot", {"text": "Polly lives in Oslo"}]
    metadata = {"tags": ["inner"]}
    line = {"text": "We have a pet.", "tags": ["Pets", "home"], "facts": facts, "metadata": metadata}
    path = json_lines(tmp_path / "plain.jsonl", [line, {"text": "The bike is red.", "tags": "red", "facts": [7]}])
    first = import_file(client, path, agent=agent)
    assert [(one.count, list(one.places)) for one in first.altered] == [(1, ["line 2"]), (1, ["line 2"])]
    there = client.in_namespace(agent)
    [pet] = there.memories.list(tag=["pets"]).memories
    assert sorted(pet.tags) == ["Pets", "home"]
    [exported_tags] = [
        one["custom_fields"]["tags"] for one in there.transfer.export_memories() if one.get("id") == pet.id
    ]
    assert exported_tags == ["inner"]
    assert [fact.text for fact in there.facts.list(memory_id=pet.id).facts] == [
        "Polly is a parrot",
        "Polly lives in Oslo",
    ]
    again = import_file(client, path, agent=agent)
    assert (again.imported, again.updated, again.unchanged) == (0, 0, 2)
    line["facts"] = ["Polly is a macaw"]
    assert import_file(client, json_lines(path, [line]), agent=agent).updated == 1
    assert [fact.text for fact in there.facts.list(memory_id=pet.id).facts] == ["Polly is a macaw"]


@pytest.mark.parametrize("write", [write_markdown, write_jsonl, write_mem0])
def test_memories_keep_their_dates_and_importing_again_changes_nothing(client, agent, tmp_path, write):
    path = write(tmp_path)
    first = import_file(client, path, agent=agent)
    assert first.memories.imported >= 1
    assert (first.skipped, first.altered) == ((), ())
    there = client.in_namespace(agent)
    [best, *_] = there.memories.search(query="What is the parrot called?").results
    assert "The parrot is called Polly." in best.text
    assert best.document_at == "2021-02-03T00:00:00.000000+00:00"
    again = import_file(client, path, agent=agent)
    assert (again.imported, again.updated, again.unchanged) == (0, 0, first.imported)
    assert len(there.memories.history(best.id).changes) == 1
    assert client.agents.stats(agent).memories == first.imported


def test_importing_a_memory_server_graph_again_adds_new_items_only(client, agent, tmp_path):
    path = write_graph(tmp_path)
    first = import_file(client, path, agent=agent)
    assert (first.memories.imported, first.links, first.skipped, first.altered) == (2, 1, (), ())
    there = client.in_namespace(agent)
    graph = there.graph.read()
    assert [(one.name, one.entity_type, list(one.observations)) for one in graph.entities] == [
        ("Polly", "pet", ["The parrot is called Polly.", "Likes nuts."]),
        ("Ann", "person", []),
    ]
    [relation] = graph.relations
    assert (relation.from_entity, relation.relation_type, relation.to_entity) == ("Polly", "lives_with", "Ann")
    assert there.memories.search(query="What is the parrot called?").results[0].id == graph.entities[0].id
    again = import_file(client, path, agent=agent)
    assert (again.imported, again.updated, again.unchanged, again.links) == (0, 0, 2, 0)
    more = {"type": "entity", "name": "Ann", "entityType": "person", "observations": ["Runs."]}
    report = import_file(client, json_lines(path, [more]), agent=agent)
    assert (report.imported, report.updated, report.unchanged) == (0, 1, 0)
    with pytest.raises(NotImportable, match="fixed source"):
        import_file(client, path, agent=agent, source="old")


def write_chatgpt(folder):
    messages = [
        chatgpt_message("user", "My parrot is called Polly.", at=1_612_310_400),
        chatgpt_message("assistant", "Hello Polly.", at=1_612_310_401),
    ]
    return json_file(folder / "conversations.json", [chatgpt_conversation(messages)])


def write_claude(folder):
    at = "2021-02-03T00:00:00.000000Z"
    messages = [
        claude_message("human", "My parrot is called Polly.", "m1", created_at=at),
        claude_message("assistant", "Hello Polly.", "m2", created_at=at),
    ]
    return json_file(folder / "conversations.json", [claude_conversation(messages)])


@pytest.mark.parametrize("write", [write_chatgpt, write_claude])
def test_messages_keep_their_dates_and_importing_again_changes_nothing(client, agent, tmp_path, write):
    path = write(tmp_path)
    first = import_file(client, path, agent=agent)
    assert (first.sessions.imported, first.messages.imported) == (1, 2)
    [best, *_] = client.messages.search(agent_name=agent, query="What is my parrot called?")
    assert (best.content, best.role) == ("My parrot is called Polly.", "user")
    assert best.created_at == "2021-02-03T00:00:00.000000+00:00"
    [session] = client.sessions.list(agent).sessions
    assert session.title in ("Moving house", "Tea")
    assert session.session_id == best.session_id
    again = import_file(client, path, agent=agent)
    assert (again.imported, again.messages.unchanged, again.sessions.unchanged) == (0, 2, 1)
    assert client.agents.stats(agent).messages == 2


def test_a_continued_conversation_gets_its_new_messages(client, agent, tmp_path):
    messages = [chatgpt_message("user", f"Sentence {number}") for number in range(3)]
    path = json_file(tmp_path / "conversations.json", [chatgpt_conversation(messages[:2])])
    import_file(client, path, agent=agent)
    json_file(path, [chatgpt_conversation(messages)])
    report = import_file(client, path, agent=agent)
    assert (report.messages.imported, report.messages.unchanged, report.sessions.updated) == (1, 2, 1)
    found = client.sessions.messages(agent, "chatgpt-6a1f")
    assert [one.content for one in found] == ["Sentence 0", "Sentence 1", "Sentence 2"]


def test_new_messages_of_an_ended_session_are_counted(client, agent, tmp_path):
    messages = [chatgpt_message("user", f"Sentence {number}") for number in range(3)]
    path = json_file(tmp_path / "conversations.json", [chatgpt_conversation(messages[:1])])
    import_file(client, path, agent=agent)
    client.sessions.end(agent, "chatgpt-6a1f")
    json_file(path, [chatgpt_conversation(messages), chatgpt_conversation(messages, conversation_id="other")])
    report = import_file(client, path, agent=agent)
    assert report.messages.imported == 3
    [ended] = report.skipped
    assert (ended.count, ended.places) == (2, ("conversation 6a1f",))
    assert "has ended" in ended.reason


def test_an_interrupted_import_resumes(client, agent, tmp_path):
    lines = [chatgpt_message("user", f"Line {number}") for number in range(3)]
    said = [chatgpt_conversation(lines, conversation_id=name) for name in ("a", "b", "c")]
    path = json_file(tmp_path / "conversations.json", said)

    def cut(progress: Progress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_file(client, path, agent=agent, progress=cut)
    report = import_file(client, path, agent=agent)
    assert (report.messages.unchanged, report.messages.imported) == (6, 3)
    assert client.agents.stats(agent).messages == 9


def test_a_conversation_larger_than_a_batch_is_stored_in_order(client, agent, tmp_path):
    messages = [chatgpt_message("user", f"Number {number}") for number in range(250)]
    messages.insert(100, chatgpt_message("user", "long " * 24_000))
    path = json_file(tmp_path / "conversations.json", [chatgpt_conversation(messages)])
    report = import_file(client, path, agent=agent)
    assert report.messages.imported == 253
    assert [(one.count, one.places) for one in report.altered] == [(1, ("conversation 6a1f, message n100",))]
    found = client.sessions.messages(agent, "chatgpt-6a1f", limit=1000)
    assert [one.content for one in found if one.content.startswith("Number")] == [f"Number {n}" for n in range(250)]


def test_corrections_on_the_service_stay_and_changes_in_the_file_are_applied(client, agent, tmp_path):
    notes = write_markdown(tmp_path)
    (notes / "bike.md").write_text("The bike is red.")
    (notes / "gone.md").write_text("# One\n\n" + "Old words. " * 400 + "\n\n# Two\n\nMore.")
    import_file(client, notes, agent=agent)
    there = client.in_namespace(agent)
    [parrot] = there.memories.list(source="notes/pets").memories
    there.memories.update(parrot.id, text="The parrot is called Poll.")
    (notes / "bike.md").write_text("The bike is blue.")
    (notes / "gone.md").write_text("# One\n\nShort now.")
    report = import_file(client, notes, agent=agent)
    assert (report.imported, report.updated, report.unchanged, report.gone) == (0, 2, 1, 1)
    texts = {one.text for one in there.memories.list(limit=100).memories}
    assert {"The parrot is called Poll.", "The bike is blue.", "# One\n\nShort now.", "Two\n\nMore."} == texts


def test_an_archived_memory_is_not_restored_by_an_import(client, agent, tmp_path):
    path = write_mem0(tmp_path)
    import_file(client, path, agent=agent)
    there = client.in_namespace(agent)
    [memory] = there.memories.list().memories
    there.memories.update(memory.id, archived=True)
    assert import_file(client, path, agent=agent).memories.unchanged == 1
    assert (there.memories.list().total, there.memories.list(include_archived=True).total) == (0, 1)


def test_refused_records_are_counted_by_reason_and_the_rest_is_stored(client, agent, tmp_path):
    lines: list[dict[str, object]] = [{"text": f"Fact number {number}."} for number in range(20)]
    lines[7]["metadata"] = {"pinned": "perhaps"}
    lines[13]["metadata"] = {"origin_class": "rumour"}
    report = import_file(client, json_lines(tmp_path / "x.jsonl", lines), agent=agent)
    assert report.memories.imported == 18
    assert [one.places for one in report.skipped] == [("line 8",), ("line 14",)]
    assert "pinned takes true or false" in report.skipped[0].reason


def test_privacy_policies_apply_to_imports_and_redacted_items_are_recognised(client, agent, tmp_path):
    messages = [chatgpt_message("user", f"Write to ann{number}@example.org") for number in range(2)]
    messages.append(chatgpt_message("user", "Thanks."))
    path = json_file(tmp_path / "conversations.json", [chatgpt_conversation(messages)])
    client.agents.create(name=agent)
    client.agents.set_policy(agent, pii="reject")
    report = import_file(client, path, agent=agent)
    assert (report.messages.imported, report.skipped_count) == (1, 2)
    titled = chatgpt_conversation(
        [chatgpt_message("user", "Hi.")], title="For ann@example.org", conversation_id="titled"
    )
    report = import_file(client, json_file(path, [titled]), agent=agent)
    assert (report.messages.imported, [one.places for one in report.altered]) == (1, [("conversation titled",)])
    client.agents.set_policy(agent, pii="redact")
    notes = tmp_path / "mail.md"
    notes.write_text("Write to ann@example.org")
    assert import_file(client, notes, agent=agent).imported == 1
    assert import_file(client, notes, agent=agent).unchanged == 1


def test_a_memory_export_is_imported_with_times_keys_and_links(client, agent, tmp_path):
    there = client.in_namespace(agent)
    database = there.memories.upsert(text="Billing runs on Postgres.", source="infra", key="db").id
    old = there.memories.add(text="The office is in Rome.", source="office").id
    assert old is not None
    office = there.memories.supersede(old, text="The office is in Oslo.").new_id
    there.links.add(office, to_id=database, type="related_to")
    path = json_lines(tmp_path / "memories.jsonl", there.transfer.export_memories())

    copy = f"{agent}-copy"
    report = import_file(client, path, namespace=copy)
    assert (report.memories.imported, report.links, report.skipped) == (3, 2, ())
    assert report.backup is not None
    lines = [list(client.in_namespace(name).transfer.export_memories())[1:] for name in (agent, copy)]
    kept = ("text", "source", "key", "created_at", "updated_at", "archived", "valid_to")
    assert [[line[name] for name in kept] for line in lines[1]] == [[line[name] for name in kept] for line in lines[0]]

    for name in (agent, copy):
        again = import_file(client, path, namespace=name)
        assert (again.imported, again.unchanged, again.backup) == (0, 3, None)


def test_an_export_truncated_between_lines_reports_missing_items(client, agent, tmp_path):
    there = client.in_namespace(agent)
    there.memories.add_batch(memories=[{"text": f"Fact {number}.", "source": "facts"} for number in range(3)])
    lines = list(there.transfer.export_memories())
    copy = f"{agent}-copy"
    cut = import_file(client, json_lines(tmp_path / "cut.jsonl", lines[:-2]), namespace=copy)
    assert (cut.memories.imported, cut.missing, cut.skipped) == (1, (Missing("memories", 3, 1),), ())
    whole = import_file(client, json_lines(tmp_path / "whole.jsonl", lines), namespace=copy)
    assert (whole.memories.imported, whole.missing) == (2, ())


def test_a_truncated_agent_export_reports_each_kind_of_missing_item(client, agent, tmp_path):
    messages = [{"role": "user", "content": f"Message {number}."} for number in range(3)]
    client.messages.add_batch(agent_name=agent, session_id="one", messages=messages)
    client.blocks.create(agent_name=agent, label="persona", value="Kind.")
    lines = list(client.agents.export(agent))
    last = max(number for number, line in enumerate(lines) if line["type"] == "message")
    cut = import_file(client, json_lines(tmp_path / "cut.jsonl", lines[:last]), agent=f"{agent}-copy")
    assert (cut.messages.imported, set(cut.missing)) == (2, {Missing("messages", 3, 2), Missing("blocks", 1, 0)})
    assert import_file(client, json_lines(tmp_path / "whole.jsonl", lines), agent=f"{agent}-copy").missing == ()


def test_a_long_import_is_awaited_as_a_job(client, agent, tmp_path, monkeypatch):
    monkeypatch.setattr(export_sender, "WAIT_S", 0)
    monkeypatch.setattr(export_sender, "POLL_S", 0.01)
    header = {"_header": True, "version": "4.0.0"}
    lines = [{"text": f"Fact {number}.", "source": "facts", "custom_fields": {}} for number in range(500)]
    path = json_lines(tmp_path / "memories.jsonl", [header, *lines, {**lines[0], "source": ""}])
    seen: list[Progress] = []
    report = import_file(client, path, namespace=agent, progress=seen.append)
    assert (report.memories.imported, [one.places for one in report.skipped]) == (500, [("line 502",)])
    assert len(seen) > len(lines) + 2
    assert seen[-1].imported == 500
    assert import_file(client, path, namespace=agent).memories.unchanged == 500


def test_unusable_lines_of_an_export_are_named_by_line_number(client, agent, tmp_path):
    there = client.in_namespace(agent)
    for number in range(3):
        there.memories.add(text=f"Fact {number}.", source="facts")
    header, *lines = there.transfer.export_memories()
    broken = [header, lines[0], {"source": "no text"}, lines[1], {**lines[2], "text": ""}, lines[2]]
    path = json_lines(tmp_path / "memories.jsonl", broken)
    path.write_text(path.read_text() + "{cut of", encoding="utf-8")
    import_file(client, json_lines(tmp_path / "part.jsonl", [header, lines[0]]), namespace=f"{agent}-copy")
    report = import_file(client, path, namespace=f"{agent}-copy", source="old")
    assert report.memories.imported == 3
    assert sorted(place for places in reasons(report).values() for place in places) == ["line 3", "line 5", "line 7"]
    sources = [one.source for one in client.in_namespace(f"{agent}-copy").memories.list(limit=50).memories]
    assert sorted(sources) == ["facts", "old/facts", "old/facts", "old/facts"]


def test_an_agent_export_is_imported_completely_into_another_agent(client, agent, tmp_path):
    moved = {"role": "user", "content": "I moved to Lisbon.", "name": "Ann", "created_at": "2023-05-08T09:30:00Z"}
    asked = {
        "role": "assistant",
        "content": "How is it?",
        "metadata": {"model": "m"},
        "created_at": "2023-05-08T09:31Z",
    }
    client.sessions.start(agent_name=agent, session_id="one", user="ann", title="Moves", metadata={"k": 1})
    client.messages.add_batch(agent_name=agent, session_id="one", messages=[moved, asked])
    client.messages.add(agent_name=agent, role="user", content="Elsewhere.", session_id="two", user="bob")
    client.blocks.create(agent_name=agent, label="persona", value="Kind.", description="Who I am.", limit=77)
    client.in_namespace(agent).memories.add(text="Ann lives in Lisbon.", source="facts")
    path = json_lines(tmp_path / "agent.jsonl", client.agents.export(agent))

    copy = f"{agent}-copy"
    report = import_file(client, path, agent=copy)
    assert (report.sessions.imported, report.messages.imported) == (2, 3)
    assert (report.blocks.imported, report.memories.imported, report.skipped) == (1, 1, ())
    session = client.sessions.get(copy, "one")
    assert (session.user, session.title, session.metadata) == ("ann", "Moves", {"k": 1})
    first, second = client.sessions.messages(copy, "one")
    assert (first.content, first.name, first.user) == ("I moved to Lisbon.", "Ann", "ann")
    assert (first.created_at, second.created_at) == (
        "2023-05-08T09:30:00.000000+00:00",
        "2023-05-08T09:31:00.000000+00:00",
    )
    assert second.metadata is not None
    assert second.metadata["model"] == "m"
    block = client.blocks.get(copy, "persona")
    assert (block.value, block.description, block.limit) == ("Kind.", "Who I am.", 77)

    client.blocks.update(copy, "persona", value="Stern.")
    for name in (agent, copy):
        again = import_file(client, path, agent=name)
        assert (again.imported, again.messages.unchanged, again.memories.unchanged) == (0, 3, 1)
        assert list(reasons(again).values()) == ([("line 10",)] if name == copy else [])
    third = import_file(client, json_lines(tmp_path / "copy.jsonl", client.agents.export(copy)), agent=agent)
    assert third.messages.unchanged == 3


def test_an_agent_export_is_imported_into_its_agent_unless_overridden(client, agent, tmp_path):
    client.messages.add(agent_name=agent, role="user", content="Hello.", session_id="one")
    path = json_lines(tmp_path / "agent.jsonl", client.agents.export(agent))
    client.agents.delete(agent)
    assert import_file(client, path).messages.imported == 1
    assert client.agents.stats(agent).messages == 1


def test_restricted_access_levels_are_imported_by_an_admin_and_reported_to_others(own_service, tmp_path):
    with Souvenir(own_service.url) as client:
        admin = client.keys.create(name="admin", role="admin").key
    with Souvenir(own_service.url, api_key=admin) as client:
        client.agents.create(name="bot")
        client.agents.set_access("bot", full_memory=False)
        path = json_lines(tmp_path / "agent.jsonl", client.agents.export("bot"))
        key = client.keys.create(name="copier", role="read-write", namespace="copy").key
        with Souvenir(own_service.url, api_key=key) as other:
            report = import_file(other, path, agent="copy")
        [reason] = reasons(report)
        assert reason.startswith("access levels need an admin key")
        assert client.agents.access("copy").full_memory
        client.agents.set_access("copy", logs=False)
        assert import_file(client, path, agent="copy").skipped == ()
        levels = client.agents.access("copy")
    assert (levels.quick_memory, levels.full_memory, levels.logs) == (True, False, False)


def test_progress_is_reported_per_item_and_ends_at_the_total(client, agent, tmp_path):
    path = json_lines(tmp_path / "x.jsonl", [{"text": "One."}, {"text": ""}, {"text": "Three."}])
    seen: list[Progress] = []
    import_file(client, path, agent=agent, progress=seen.append)
    assert [(one.done, one.total) for one in seen] == [(1, 3), (2, 3), (3, 3), (3, 3)]
    assert (seen[-1].imported, seen[-1].skipped) == (2, 1)


def test_conversations_need_an_agent_and_an_agent_is_the_namespace(client, tmp_path):
    path = write_claude(tmp_path)
    with pytest.raises(NotImportable, match="need an agent"):
        import_file(client, path)
    with pytest.raises(ValueError, match="an agent is a namespace"):
        import_file(client, path, agent="one", namespace="other")
    with pytest.raises(NotImportable, match="does not exist"):
        import_file(client, tmp_path / "nowhere.json", kind=Kind.CLAUDE, agent="one")


def test_a_given_kind_overrides_the_detected_one(client, agent, tmp_path):
    path = tmp_path / "data.md"
    path.write_text(json.dumps({"text": "Raw JSON."}), encoding="utf-8")
    assert import_file(client, path, kind=Kind.MARKDOWN, agent=agent).kind is Kind.MARKDOWN
    assert client.in_namespace(agent).memories.list().memories[0].text == '{"text": "Raw JSON."}'


def test_the_key_of_an_agent_imports_into_that_agent(own_service, tmp_path):
    with Souvenir(own_service.url) as open_client:
        admin = open_client.keys.create(name="root", role="admin").key
    with Souvenir(own_service.url, api_key=admin) as root:
        key = root.keys.create(name="a", role="read-write", namespace="my_agent").key
    with Souvenir(own_service.url, api_key=key) as client:
        assert import_file(client, write_chatgpt(tmp_path), agent="my_agent").messages.imported == 2
        assert import_file(client, write_markdown(tmp_path), agent="my_agent").memories.imported == 1
        with pytest.raises(Forbidden):
            import_file(client, write_markdown(tmp_path), agent="another")


def test_a_key_with_sources_imports_into_them_only_and_a_reader_nothing(own_service, tmp_path):
    with Souvenir(own_service.url) as open_client:
        admin = open_client.keys.create(name="root", role="admin").key
    with Souvenir(own_service.url, api_key=admin) as root:
        writer = root.keys.create(name="w", role="read-write", prefixes=["mine"]).key
        reader = root.keys.create(name="r", role="read-only", prefixes=["mine"]).key
    path = json_lines(
        tmp_path / "x.jsonl", [{"text": f"Fact in {name}.", "source": name} for name in ("mine", "yours")]
    )
    with Souvenir(own_service.url, api_key=writer) as client:
        report = import_file(client, path)
        assert (report.memories.imported, [one.places for one in report.skipped]) == (1, [("line 2",)])
    with Souvenir(own_service.url, api_key=reader) as client, pytest.raises(Forbidden):
        import_file(client, path)
