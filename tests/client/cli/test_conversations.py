"""agents, context, chat, extract: an agent's data, its conversations, and extraction from them."""

from __future__ import annotations

import pytest

from souvenir_client import Souvenir
from tests.conversations.talk import without_tokens


@pytest.fixture
def agent(service, request):
    """An agent of the test with two sessions."""
    name = f"agent-{request.node.name}"
    with Souvenir(service.url) as client:
        for session, said in [("monday", "My favourite colour is blue."), ("tuesday", "I moved to Lisbon.")]:
            turns = [{"role": "user", "content": said, "user": "alice"}, {"role": "assistant", "content": "Noted."}]
            client.messages.add_batch(agent_name=name, session_id=session, messages=turns)
    return name


def test_an_agent_is_made_listed_shown_and_deleted(run, answer):
    assert run("agents", "create", "short-lived", "--metadata", "team=x").exit_code == 0
    assert "short-lived" in [one["name"] for one in answer("agents", "list")["agents"]]
    shown = answer("agents", "show", "short-lived")
    assert (shown["metadata"], shown["stats"]["messages"]) == ({"team": "x"}, 0)
    assert run("agents", "delete", "short-lived", "--yes").exit_code == 0
    gone = run("agents", "show", "short-lived")
    assert (gone.exit_code, gone.stdout) == (1, "")


def test_access_levels_of_an_agent_are_set_and_shown(run, answer, agent):
    assert answer("agents", "access", agent, "--no-full", "--no-logs") == {
        "quick_memory": True,
        "full_memory": False,
        "logs": False,
    }
    assert run("agents", "access", agent, "--logs").stdout == f"Access levels of {agent}: quick_memory, logs.\n"
    assert run("agents", "access", agent, "--no-quick", "--no-logs").stdout == f"Access levels of {agent}: none.\n"
    assert not any(answer("agents", "access", agent).values())


def test_deleting_an_agent_prints_the_deleted_counts(run, agent):
    done = run("agents", "delete", agent, "--yes")
    assert done.stdout == f"Deleted {agent}: 4 messages and 0 memories.\n"


def test_history_is_printed_oldest_first(run, answer, agent):
    messages = answer("chat", "history", agent, "--limit", "3")
    assert [one["content"] for one in messages["messages"]] == ["Noted.", "I moved to Lisbon.", "Noted."]
    assert messages["total"] == 4
    drawn = run("chat", "history", agent, "--session", "monday").stdout
    assert drawn.index("— monday") < drawn.index("user (alice)") < drawn.index("blue") < drawn.index("Noted.")
    assert "Lisbon" not in drawn


def test_sessions_are_listed_newest_first(run, answer, agent):
    assert [one["session_id"] for one in answer("chat", "sessions", agent)["sessions"]] == ["tuesday", "monday"]
    assert "tuesday" in run("chat", "sessions", agent).stdout


def test_context_prints_prompt_text(run, answer, agent):
    done = run("context", agent, "favourite colour", "--session", "tuesday")
    assert done.exit_code == 0
    assert "My favourite colour is blue." in done.stdout
    text = answer("context", agent, "favourite colour", "--session", "tuesday")["text"]
    assert without_tokens(done.stdout).rstrip() == without_tokens(text).rstrip()


def test_context_of_an_agent_without_memory_exits_with_1(run):
    run("agents", "create", "blank")
    done = run("context", "blank", "anything")
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", "The context is empty.\n")


TRANSCRIPT = "User: We decided to move billing to Postgres 18 in June.\nAssistant: Noted."


def test_extract_prints_the_decisions(run, answer, tmp_path):
    path = tmp_path / "talk.txt"
    path.write_text(TRANSCRIPT, encoding="utf-8")
    done = run("extract", str(path), "--source", "team", "--agent", "learner")
    assert done.exit_code == 0
    assert "fallback_add" in done.stdout
    assert "We decided to move billing to Postgres 18 in June." in done.stdout
    [memory] = answer("list", "--namespace", "learner")["memories"]
    assert memory["source"] == "team"


def test_extract_creates_a_missing_agent_except_in_a_dry_run(run, answer):
    answer("extract", "-", "--agent", "learned-for", stdin=TRANSCRIPT)
    answer("extract", "-", "--agent", "dry-for", "--dry-run", stdin=TRANSCRIPT)
    assert run("agents", "show", "learned-for").exit_code == 0
    assert run("agents", "show", "dry-for").exit_code == 1


def test_extract_reads_stdin_and_changes_nothing_when_dry(answer):
    job = answer("extract", "-", "--dry-run", "--agent", "dry", stdin=TRANSCRIPT)
    assert job["status"] == "completed"
    assert [action["action"] for action in job["result"]["actions"]] == ["ADD"]
    assert answer("list", "--namespace", "dry")["total"] == 0


def test_extract_without_waiting_names_the_job(answer):
    assert answer("extract", "-", "--wait", "0", "--agent", "queued", stdin=TRANSCRIPT)["job_id"]


def test_extract_without_extraction_configured_exits_with_1(run, own_service):
    done = run("extract", "-", "--json", stdin=TRANSCRIPT, SOUVENIR_URL=own_service.url)
    assert done.exit_code == 1
    # The service of the tests logs to the same stream.
    assert '"status": 501' in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xfe\xff"])
def test_an_invalid_transcript_is_wrong_usage(run, tmp_path, content):
    path = tmp_path / "talk.txt"
    path.write_bytes(content)
    done = run("extract", str(path))
    assert done.exit_code == 2
    assert str(path) in done.stderr
