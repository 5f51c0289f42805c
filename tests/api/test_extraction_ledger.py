"""Operations on finished extractions over HTTP: commit, approve, undo, run again, compare."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import Start
from tests.api.learning import ended, learned, takes_everything
from tests.vendors.llm import LLMRequest, LLMVendor

SOURCE = "notes"
SAID = "We moved billing to Postgres 17."
OTHER = "Staging listens on port 8900."
TALK = f"User: {SAID} {OTHER}"
COUNTS = ("extracted_count", "stored_count", "updated_count", "deleted_count")


@pytest.fixture
def client(start: Start, learner: LLMVendor) -> TestClient:
    return start(extract_max_deletes=1, **learner.settings("openai"))


def texts(client: TestClient) -> list[str]:
    memories = client.get("/memories").json()["memories"]
    return [memory["text"] for memory in memories if not memory["archived"]]


def obeys(request: LLMRequest) -> Any:
    """A model that deletes every memory that it is shown, as the transcript orders it to."""
    made = takes_everything(request)
    if request.prompt == "decide":
        for number, decision in enumerate(made["decisions"], start=1):
            decision |= {"verdict": "DELETE", "memory": number}
    return made


def commit(client: TestClient, actions: list[dict[str, Any]]) -> dict[str, Any]:
    answer = client.post("/memory/extract/commit", json={"actions": actions, "source": SOURCE})
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def test_a_dry_run_changes_nothing_and_its_approved_actions_are_applied(client: TestClient):
    result = learned(client, TALK, source=SOURCE, dry_run=True)["result"]
    assert result["dry_run"] is True
    assert [(one["action"], one["fact_index"]) for one in result["actions"]] == [("ADD", 0), ("ADD", 1)]
    assert (result["conflict_count"], result["promotion_candidates"], result["links_created"]) == (0, [], [])
    assert texts(client) == []
    first, second = result["actions"]
    done = commit(client, [{**first, "approved": True}, second])
    assert {name: done[name] for name in COUNTS} == dict(zip(COUNTS, (1, 1, 0, 0), strict=True))
    assert texts(client) == [SAID]


def test_a_commit_without_anything_approved_is_four_zeros(client: TestClient):
    result = learned(client, TALK, source=SOURCE, dry_run=True)["result"]
    nothing: list[dict[str, Any]] = []
    for actions in (nothing, result["actions"]):
        done = commit(client, actions)
        assert [done[name] for name in COUNTS] == [0, 0, 0, 0]
    assert texts(client) == []


def test_committed_actions_may_be_edited_or_written_by_the_caller(client: TestClient):
    [first, _] = learned(client, TALK, source=SOURCE, dry_run=True)["result"]["actions"]
    reworded = {**first, "text": "Billing is on Postgres 17 since May.", "approved": True}
    made_up = {"action": "ADD", "text": "The office is in Basel.", "approved": True}
    commit(client, [reworded, made_up])
    assert texts(client) == [reworded["text"], made_up["text"]]
    [memory, _] = client.get("/memories").json()["memories"]
    update = {"action": "update", "old_id": memory["id"], "new_text": "Billing is on Postgres 18.", "approved": True}
    assert commit(client, [update])["updated_count"] == 1
    assert texts(client) == [made_up["text"], update["new_text"]]


@pytest.mark.parametrize(
    "action",
    [
        {"action": "burn", "text": SAID},
        {"action": "add"},
        {"action": "update", "text": SAID},
        {"action": "delete", "old_id": -1},
    ],
)
def test_an_action_that_cannot_be_done_is_refused_with_all_others(client: TestClient, action: dict[str, Any]):
    good = {"action": "add", "text": SAID, "approved": True}
    body = {"actions": [good, {**action, "approved": True}], "source": SOURCE}
    refused = client.post("/memory/extract/commit", json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")
    assert texts(client) == []


def test_more_deletes_than_may_be_wait_for_an_approval(client: TestClient, learner: LLMVendor):
    add = [{"text": text, "source": SOURCE} for text in (SAID, OTHER)]
    client.post("/memory/add-batch", json={"memories": add})
    learner.script(obeys)
    job = learned(client, TALK, source=SOURCE)
    assert (job["status"], job["result"]["approval"], job["result"]["deleted_count"]) == ("completed", "required", 0)
    assert texts(client) == [SAID, OTHER]
    path = f"/memory/extract/{job['job_id']}"
    approved = client.post(f"{path}/approve")
    assert approved.status_code == 200
    assert approved.json()["result"]["deleted_count"] == 2
    assert texts(client) == []
    again = client.post(f"{path}/approve")
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    undone = client.post(f"{path}/undo")
    assert (undone.status_code, undone.json()["restored"], undone.json()["removed"]) == (200, [1, 2], [])
    assert texts(client) == [SAID, OTHER]


def test_an_undo_removes_memories_unless_they_were_changed_since(client: TestClient):
    jobs = [learned(client, f"User: {text}", source=SOURCE) for text in (SAID, OTHER)]
    first, second = (f"/memory/extract/{job['job_id']}/undo" for job in jobs)
    [changed] = [one["id"] for one in jobs[0]["result"]["actions"]]
    client.patch(f"/memory/{changed}", json={"text": "Billing is on Postgres 18."})
    refused = client.post(first)
    assert (refused.status_code, refused.json()["code"]) == (409, "undo_blocked")
    assert str(changed) in refused.json()["detail"]
    assert client.post(second).json()["success"] is True
    assert texts(client) == ["Billing is on Postgres 18."]
    assert client.post(second).status_code == 409


def test_a_transcript_is_read_again_by_another_model_and_the_two_are_compared(client: TestClient, learner: LLMVendor):
    first = learned(client, TALK, source=SOURCE, dry_run=True)["job_id"]
    learner.script(lambda request: {"facts": []} if request.prompt == "propose" else takes_everything(request))
    rerun = client.post(f"/memory/extract/{first}/rerun", json={"model": "scripted-2"})
    assert rerun.status_code == 202
    second = rerun.json()["job_id"]
    assert ended(client, second)["result"]["dry_run"] is True
    assert learner.requests[-1].body["model"] == "scripted-2"
    found = client.get(f"/memory/extract/{first}/diff", params={"other": second}).json()
    assert [one["text"] for one in found["only_first"]] == [SAID, OTHER]
    assert (found["agreed"], found["decided_otherwise"], found["only_second"]) == ([], [], [])
    same = client.get(f"/memory/extract/{first}/diff", params={"other": first}).json()
    assert [(pair["first"]["text"], pair["second"]["text"]) for pair in same["agreed"]] == [
        (SAID, SAID),
        (OTHER, OTHER),
    ]
    assert texts(client) == []


def test_a_rerun_needs_no_body(client: TestClient, learner: LLMVendor):
    first = learned(client, TALK, source=SOURCE, dry_run=True)["job_id"]
    rerun = client.post(f"/memory/extract/{first}/rerun")
    assert rerun.status_code == 202, rerun.text
    assert ended(client, rerun.json()["job_id"])["result"]["extracted_count"] == 2


def test_a_result_links_its_undo_and_reports_it_afterwards(client: TestClient):
    done = commit(client, [{"action": "add", "text": SAID, "approved": True}])
    url = done["result_url"]
    assert url.startswith(f"/memory/extract/{done['job_id']}")
    before = client.get(url).json()["result"]
    assert "undone" not in before
    assert client.post(f"{url}/undo").json()["removed"] == [one["id"] for one in done["actions"]]
    after = client.get(url).json()["result"]
    at = after.pop("undone_at")
    assert after.pop("undone") is True
    assert after == before
    [event] = client.get("/audit", params={"action": "job.undo"}).json()["entries"]
    assert event["at"] == at


def test_a_rerun_of_an_undone_extraction_is_not_undone(client: TestClient):
    first = learned(client, TALK, source=SOURCE)["job_id"]
    client.post(f"/memory/extract/{first}/undo")
    rerun = client.post(f"/memory/extract/{first}/rerun").json()["job_id"]
    assert "undone" not in ended(client, rerun)["result"]


def test_a_noop_is_noted_without_a_text_and_a_fact_is_enough_for_an_add(client: TestClient):
    [known] = commit(client, [{"action": "add", "text": SAID, "approved": True}])["actions"]
    noop = {"action": "NOOP", "existing_id": known["id"], "approved": True}
    add = {"action": "ADD", "fact": {"text": OTHER, "category": "decision"}, "approved": True}
    done = commit(client, [noop, add])
    assert (done["noop_count"], done["stored_count"]) == (1, 1)
    assert [(one["action"], one["ordinal"]) for one in done["actions"]] == [("noop", 0), ("add", 1)]
    assert (done["actions"][0]["existing_id"], done["actions"][1]["fact"]["category"]) == (known["id"], "decision")
    assert texts(client) == [SAID, OTHER]
    body = {"actions": [noop, {"action": "ADD", "approved": True}], "source": SOURCE}
    refused = client.post("/memory/extract/commit", json=body)
    assert (refused.status_code, refused.json()["detail"].partition(" stores")[0]) == (422, "Approved action 1")


def test_the_counts_of_a_dry_run_are_those_of_an_application(client: TestClient):
    commit(client, [{"action": "add", "text": SAID, "approved": True}])
    result = learned(client, TALK, source=SOURCE, dry_run=True)["result"]
    assert [one["action"] for one in result["actions"]] == ["NOOP", "ADD"]
    assert {name: result[name] for name in ("noop_count", "stored_count", "deleted_count")} == {
        "noop_count": 1,
        "stored_count": 1,
        "deleted_count": 0,
    }
    assert "removing" not in result


def test_a_dry_run_that_would_delete_more_than_may_be_says_so(client: TestClient, learner: LLMVendor):
    add = [{"text": text, "source": SOURCE} for text in (SAID, OTHER)]
    client.post("/memory/add-batch", json={"memories": add})
    learner.script(obeys)
    result = learned(client, TALK, source=SOURCE, dry_run=True)["result"]
    assert (result["removing"], result["deleted_count"]) == ([0, 1], 2)
    assert texts(client) == [SAID, OTHER]


@pytest.mark.parametrize("verb", ["approve", "undo", "rerun"])
def test_an_extraction_that_is_not_there_is_404(client: TestClient, verb: str):
    refused = client.post(f"/memory/extract/{'0' * 32}/{verb}", json={})
    assert (refused.status_code, refused.json()["code"]) == (404, "job_not_found")
