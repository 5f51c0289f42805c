"""add, search, list, get, delete: what they store, find and print."""

from __future__ import annotations

import json

import pytest

from souvenir_client import Souvenir


def test_an_added_memory_is_found_and_shown_with_its_metadata(run, answer):
    added = run("add", "Billing runs on Postgres 17.", "--source", "team/billing", "--metadata", "owner=Ana",
                "--metadata", "level:=3", "--namespace", "one")  # fmt: skip
    assert (added.exit_code, added.stdout) == (0, "Stored memory 1.\n")
    [hit] = answer("search", "what does billing run on", "--namespace", "one")["results"]
    assert (hit["text"], hit["owner"], hit["level"]) == ("Billing runs on Postgres 17.", "Ana", 3)
    shown = run("get", "1", "--namespace", "one").stdout
    assert "source: team/billing\n" in shown
    assert "owner: Ana\n" in shown
    assert shown.endswith("\nBilling runs on Postgres 17.\n")


def test_a_dash_reads_the_text_from_stdin(run, answer):
    run("add", "-", "--namespace", "stdin", stdin="Two\nlines\n")
    [memory] = answer("list", "--namespace", "stdin")["memories"]
    assert memory["text"] == "Two\nlines"


def test_an_empty_stdin_is_wrong_usage(run):
    done = run("add", "-", stdin="\n")
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", "The text is empty.\n")


def test_an_agent_is_a_namespace(run, answer):
    run("add", "Ana likes tea.", "--agent", "bot-of-add")
    assert answer("list", "--namespace", "bot-of-add")["total"] == 1


def test_storing_for_an_agent_creates_it(run, answer):
    assert run("add", "Ana likes tea.", "--agent", "newbie").exit_code == 0
    assert answer("search", "tea", "--agent", "newbie")["results"]
    assert answer("context", "newbie", "what does Ana like?")["text"]
    assert run("export", "--agent", "newbie").exit_code == 0


def test_a_limited_key_stores_for_an_existing_agent(run, own_service):
    with Souvenir(own_service.url) as client:
        admin = client.keys.create(name="root", role="admin").key
    with Souvenir(own_service.url, api_key=admin) as client:
        key = client.keys.create(name="w", role="read-write", namespace="a", prefixes=["mine"]).key
    env = {"SOUVENIR_URL": own_service.url, "SOUVENIR_API_KEY": key}
    assert run("add", "One.", "--agent", "a", "--source", "mine", **env).exit_code == 0
    refused = run("add", "One.", "--agent", "another", "--source", "mine", **env)
    assert (refused.exit_code, refused.stdout) == (1, "")


def test_a_command_creates_a_missing_agent_and_a_route_does_not(run):
    done = run("context", "nobody", "anything")
    assert done.exit_code == 1
    assert done.stderr.startswith("Agent 'nobody' not found; create it with `souvenir agents create NAME` (404")


def test_agent_and_namespace_together_are_wrong_usage(run):
    done = run("add", "Something.", "--agent", "a", "--namespace", "b")
    assert done.exit_code == 2
    assert "--agent and --namespace" in done.stderr


def test_search_of_an_agent_finds_messages_and_memories(run, answer, service):
    with Souvenir(service.url) as client:
        client.messages.add(agent_name="chatty", role="user", content="My favourite colour is blue.", user="alice")
    run("add", "Blue paint is in the shed.", "--agent", "chatty")
    found = answer("search", "blue", "--agent", "chatty")["results"]
    assert {hit["kind"] for hit in found} == {"message", "memory"}
    assert answer("search", "blue", "--agent", "chatty", "--by", "keyword")["searched_by"] == ["keyword"]
    assert run("search", "blue", "--namespace", "chatty", "--by", "keyword").exit_code == 2
    drawn = run("search", "blue", "--agent", "chatty").stdout
    assert "user (alice)" in drawn
    assert "My favourite colour is blue." in drawn
    assert "Blue paint is in the shed." in drawn


def test_a_verified_search_prints_the_verdict(run, answer):
    run("add", "The ferry leaves at six.", "--agent", "ferries")
    done = run("search", "ferry", "--verify", "--namespace", "ferries")
    assert "Answered: unknown: There is no reader; set EXTRACT_PROVIDER or RERANK_MODEL.\n" in done.stderr
    assert answer("search", "ferry", "--verify", "--agent", "ferries")["answered"] == "unknown"
    assert answer("context", "ferries", "ferry", "--verify")["answered"] == "unknown"
    assert "answered" not in answer("search", "ferry", "--namespace", "ferries")


def test_a_search_without_results_says_so_and_exits_with_1(run):
    done = run("search", "anything", "--namespace", "empty", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["results"] == []
    assert json.loads(done.stderr)["error"]["message"] == "No results."


def test_filters_of_source_and_metadata_narrow_a_search(run, answer):
    for source, owner in [("a/b", "x"), ("a/b", "y"), ("ab", "x")]:
        run("add", f"The shed is red, says {source} {owner}.", "--source", source, "--metadata", f"owner={owner}",
            "--namespace", "filters")  # fmt: skip
    found = answer("search", "shed", "--source", "a", "--metadata", "owner=x", "--namespace", "filters")["results"]
    assert [hit["text"] for hit in found] == ["The shed is red, says a/b x."]


def test_a_skipped_duplicate_is_named(run):
    run("add", "The shed is red.", "--namespace", "twice")
    done = run("add", "The shed is red.", "--on-duplicate", "skip", "--namespace", "twice")
    assert done.exit_code == 0
    assert done.stdout.startswith("Not stored: it duplicates memory ")


def test_list_shows_a_row_per_memory_and_their_count(run):
    for number in range(3):
        run("add", f"Number {number}\nof three", "--source", "s", "--namespace", "rows")
    done = run("list", "--limit", "2", "--namespace", "rows")
    header, *rows = done.stdout.splitlines()
    assert header.split() == ["ID", "CREATED", "(UTC)", "SOURCE", "TEXT"]
    assert [row.split("s  ", 1)[1].strip() for row in rows] == ["Number 0 of three", "Number 1 of three"]
    assert done.stderr == "2 of 3; --offset 2 shows more\n"


def test_archived_memories_are_listed_on_request(run, answer):
    here = ("--namespace", "archive")
    shed = "Behind our wooden house stands one small garden shed painted bright red"
    run("add", shed, *here)
    run("add", f"{shed} since", "--on-duplicate", "supersede", *here)
    shown, listed = (answer("list", *more, *here)["total"] for more in ([], ["--archived"]))
    assert (shown, listed) == (1, 2)


def test_an_unknown_memory_exits_with_1(run):
    done = run("get", "424242")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "Memory ID 424242 not found (404, memory_not_found)\n"


def test_delete_reports_the_ids_that_were_not_deleted(run, answer):
    first, pinned = (
        answer("add", text, *more, "--namespace", "gone")["id"]
        for text, more in [("One.", ()), ("Two.", ("--metadata", "pinned:=true"))]
    )
    done = run("delete", str(first), str(pinned), "4242", "--yes", "--namespace", "gone")
    assert (done.exit_code, done.stdout) == (1, "Deleted 1 of 3.\n")
    assert done.stderr == f"Not deleted: 4242 not found; {pinned} pinned.\n"
    assert [memory["id"] for memory in answer("list", "--namespace", "gone")["memories"]] == [pinned]


def test_delete_without_a_terminal_deletes_nothing(run, answer):
    made = answer("add", "Stays.", "--namespace", "stays")["id"]
    done = run("delete", str(made), "--namespace", "stays", stdin="y\n")
    assert done.exit_code == 2
    assert "--yes" in done.stderr
    assert answer("list", "--namespace", "stays")["total"] == 1


@pytest.mark.parametrize("said", ["owner", "=x", ":=1", "owner:=x"])
def test_invalid_metadata_is_wrong_usage(run, said):
    done = run("add", "Something.", "--metadata", said)
    assert done.exit_code == 2
    assert "--metadata" in done.stderr


def test_tags_and_facts_are_stored_filtered_by_and_listed(run, answer):
    here = ("--namespace", "tagged")
    added = run("add", "Heron is fast. It runs on Lambda.", "--tag", "Heron", "--tag", "x", "--split", *here)
    assert added.stdout.endswith(" It has 2 facts (by sentences).\n")
    run("add", "Heron has an owner.", "--tag", "heron", "--fact", "Ana owns Heron", *here)
    run("add", "Heron is a bird.", *here)
    assert len(answer("search", "Heron", "--tag", "HERON", *here)["results"]) == 2
    assert answer("list", "--tag", "x", *here)["total"] == 1
    [first, second] = answer("tags", *here)["tags"]
    assert [(one["tag"], one["count"]) for one in (first, second)] == [("Heron", 2), ("x", 1)]
    assert run("tags", "--regex", "^x$", *here).stdout.splitlines()[1].split()[:2] == ["x", "1"]
    assert run("search", "Heron", "--tag", "x", "--agent", "tagged").exit_code == 2
