"""Facts over HTTP: stored with a memory, returned, searched, replaced, and split later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import Start, loaded
from tests.vendors.llm import LLMVendor, fails

TEXT = (
    "Mira prefers TypeScript for the backend of Heron. It runs in strict mode with ESLint, "
    "and is deployed on AWS Lambda with Node.js 18."
)
FACTS = ["Mira prefers TypeScript for Heron", "Heron is deployed on AWS Lambda", "Heron uses Node.js 18"]


@pytest.fixture
def llm_vendor() -> Iterator[LLMVendor]:
    vendor = LLMVendor()
    vendor.start()
    vendor.script(lambda request: {"facts": FACTS})
    yield vendor
    vendor.stop()


@pytest.fixture
def learned(start: Start, llm_vendor: LLMVendor) -> TestClient:
    """A service with a model that finds `FACTS` in every text."""
    return loaded(start(**llm_vendor.settings("openai")))


def post(client: TestClient, path: str, **body: Any) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def texts(facts: list[dict[str, Any]]) -> list[str]:
    return [fact["text"] for fact in facts]


def test_a_memory_is_split_when_it_is_stored(learned: TestClient):
    added = post(learned, "/memory/add", text=TEXT, source="notes", tags=["Heron"], split=True)
    id_ = added.pop("id")
    assert added == {
        "success": True,
        "message": "Memory added successfully",
        "facts_created": 3,
        "facts_by": "model",
        "split_pending": False,
    }
    record = learned.get(f"/memory/{id_}").json()
    assert (record["tags"], texts(record["facts"])) == (["Heron"], FACTS)
    assert {fact["made_by"] for fact in record["facts"]} == {"model"}
    [hit] = post(learned, "/search", query="Node.js 18")["results"]
    assert (hit["id"], hit["facts"][0]["text"]) == (id_, FACTS[2])
    assert hit["facts"][0].keys() == {"id", "text", "score"}
    [listed] = learned.get("/memories").json()["memories"]
    assert "facts" not in listed


def test_while_the_model_is_away_the_answer_says_so_and_the_sentences_are_the_facts(
    learned: TestClient, llm_vendor: LLMVendor
):
    llm_vendor.script(lambda request: fails(503, "down", retry_after="500"))
    added = post(learned, "/memory/add", text=TEXT, source="notes", split=True)
    assert (added["facts_created"], added["facts_by"], added["split_pending"]) == (2, "sentences", True)
    assert "failed with status 503" in added["split_failure"]


def test_without_a_model_the_sentences_are_the_facts(client: TestClient):
    added = post(client, "/memory/add", text=TEXT, source="notes", split=True, on_duplicate="add")
    assert (added["action"], added["facts_by"], added["split_pending"]) == ("added", "sentences", False)
    assert "split_failure" not in added


def test_facts_of_a_caller_are_stored_by_every_route(client: TestClient):
    given = {"text": TEXT, "source": "notes", "facts": FACTS[:1], "tags": ["a"]}
    single = post(client, "/memory/add", **given)
    assert (single["facts_created"], single["facts_by"]) == (1, "caller")
    [batched] = post(client, "/memory/add-batch", memories=[given])["ids"]
    upserted = post(client, "/memory/upsert", **given, key="one")["id"]
    [other] = post(client, "/memory/upsert-batch", memories=[{**given, "key": "two"}])["results"]
    for id_ in (single["id"], batched, upserted, other["id"]):
        record = client.get(f"/memory/{id_}").json()
        assert (texts(record["facts"]), record["tags"]) == (FACTS[:1], ["a"])
    post(client, "/memory/upsert", text=TEXT, source="notes", key="one", facts=FACTS[1:], tags=["b"])
    record = client.get(f"/memory/{upserted}").json()
    assert (texts(record["facts"]), record["tags"]) == (FACTS[1:], ["a", "b"])


def test_items_of_a_batch_are_split_afterwards(learned: TestClient):
    item = {"text": TEXT, "source": "notes", "split": True}
    ids = post(learned, "/memory/add-batch", memories=[item, {**item, "split": False}])["ids"]
    job = learned.app.state.service.engine.facts.queue.jobs  # type: ignore[attr-defined]
    learned.app.state.service.engine.facts.queue.submit_jobs()  # type: ignore[attr-defined]
    for one in learned.get("/jobs", params={"kind": "split"}).json()["jobs"]:
        job.wait(one["id"], 30)
    assert [texts(learned.get(f"/memory/{id_}").json().get("facts", [])) for id_ in ids] == [FACTS, []]


def test_facts_and_tags_are_returned_on_request_only(client: TestClient):
    added = post(client, "/memory/add", text=TEXT, source="notes", metadata={"tags": "mine", "facts": 3})
    assert added.keys() == {"success", "id", "message"}
    shown = [client.get(f"/memory/{added['id']}").json(), *client.get("/memories").json()["memories"]]
    shown += post(client, "/search", query="Heron")["results"]
    assert [(one["tags"], one["facts"]) for one in shown] == [("mine", 3)] * 3
    client.patch(f"/memory/{added['id']}", json={"tags": ["ours"], "facts": ["Heron is deployed"]})
    record = client.get(f"/memory/{added['id']}").json()
    assert (record["tags"], texts(record["facts"])) == (["ours"], ["Heron is deployed"])


def test_a_change_names_tags_and_facts(client: TestClient):
    id_ = post(client, "/memory/add", text=TEXT, source="notes", tags=["a", "B"], facts=FACTS)["id"]
    before = client.get(f"/memory/{id_}").json()["facts"]
    changed = client.patch(
        f"/memory/{id_}", json={"add_tags": ["c"], "remove_tags": ["b"], "facts": [FACTS[1], "Heron is fast"]}
    )
    assert changed.json() == {"id": id_, "updated_fields": ["tags", "facts"]}
    record = client.get(f"/memory/{id_}").json()
    assert (record["tags"], texts(record["facts"])) == (["a", "c"], [FACTS[1], "Heron is fast"])
    assert record["facts"][0] == before[1]
    client.patch(f"/memory/{id_}", json={"text": "Something else."})
    # A job splits the new text, sooner or later.
    assert texts(client.get(f"/memory/{id_}").json().get("facts", [])) in ([], ["Something else."])
    assert client.patch(f"/memory/{id_}", json={}).status_code == 400
    assert client.patch("/memory/77", json={"facts": ["x"]}).status_code == 404


def test_facts_are_set_and_split_again(learned: TestClient):
    id_ = post(learned, "/memory/add", text=TEXT, source="notes")["id"]
    given = learned.put(f"/memory/{id_}/facts", json={"facts": FACTS[:1]}).json()
    assert (given["facts_created"], given["facts_by"], texts(given["facts"])) == (1, "caller", FACTS[:1])
    anew = learned.put(f"/memory/{id_}/facts").json()
    assert (anew["memory_id"], anew["facts_created"], texts(anew["facts"])) == (id_, 3, FACTS)
    assert anew["facts"][0] == given["facts"][0]
    assert learned.put(f"/memory/{id_}/facts", json={"facts": []}).json() == {
        "memory_id": id_,
        "facts": [],
        "facts_created": 0,
        "split_pending": False,
    }
    assert learned.put("/memory/77/facts").json()["code"] == "memory_not_found"


def test_facts_come_in_pages(client: TestClient):
    first = post(client, "/memory/add", text=TEXT, source="notes", facts=FACTS)["id"]
    second = post(client, "/memory/add", text="Ana leads", source="notes", facts=["Ana leads Heron"])["id"]
    page = client.get("/facts", params={"offset": 2, "limit": 2}).json()
    assert (page["total"], [(one["memory_id"], one["text"]) for one in page["facts"]]) == (
        4,
        [(first, FACTS[2]), (second, "Ana leads Heron")],
    )
    assert client.get("/facts", params={"memory_id": second}).json()["total"] == 1
    assert client.get("/facts", params={"memory_id": 77}).status_code == 404
    assert client.get("/facts", headers={"X-Namespace": "empty"}).json()["facts"] == []


def test_memories_without_facts_are_split_later(learned: TestClient, llm_vendor: LLMVendor):
    here = post(learned, "/memory/add", text=TEXT, source="proj/a")["id"]
    post(learned, "/memory/add", text=TEXT, source="other")
    done = post(learned, "/facts/split", source_prefix="proj/")
    assert done == {"split": 1, "by_model": 1, "by_sentences": 0, "changed": 0, "has_more": False}
    assert texts(learned.get(f"/memory/{here}").json()["facts"]) == FACTS
    assert len(llm_vendor.requests) == 1


@pytest.mark.parametrize(
    "body", [{"facts": [""]}, {"facts": ["x"] * 51}, {"facts": ["x" * 2001]}, {"tags": [" "]}, {"tags": ["a\nb\0"]}]
)
def test_facts_and_tags_that_cannot_be_used_are_refused(client: TestClient, body):
    answer = client.post("/memory/add", json={"text": TEXT, "source": "notes", **body})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert client.get("/memories/count").json() == {"count": 0}


def test_searches_and_lists_are_filtered_by_tags(client: TestClient):
    for text, tags in (("Heron one", ["A", "b"]), ("Heron two", ["a"]), ("Heron three", [])):
        post(client, "/memory/add", text=text, source="notes", tags=tags)
    for tags, match, found in ((["a"], "any", 2), (["A", "B"], "any", 2), (["a", "B"], "all", 1), (["c"], "any", 0)):
        query = {"query": "Heron", "tags": tags, "tag_match": match}
        assert len(post(client, "/search", **query)["results"]) == found
        assert len(post(client, "/search/explain", **query)["results"]) == found
        assert len(post(client, "/search/batch", queries=[query])["results"][0]["results"]) == found
        assert client.get("/memories", params={"tag": tags, "tag_match": match}).json()["total"] == found


def test_tags_are_listed_renamed_merged_and_deleted(client: TestClient):
    ids = [
        post(client, "/memory/add", text=f"Heron {number}", source="notes", tags=tags)["id"]
        for number, tags in enumerate([["Proj/Heron", "x"], ["proj/heron"], ["y"]])
    ]
    listed = client.get("/tags", params={"regex": "^proj/", "limit": 1}).json()
    first, second = (client.get(f"/memory/{id_}").json()["created_at"] for id_ in ids[:2])
    assert listed == {
        "tags": [{"tag": "Proj/Heron", "count": 2, "first_used_at": first, "last_used_at": second}],
        "total": 1,
        "offset": 0,
        "limit": 1,
    }
    assert post(client, "/tags/rename", old="PROJ/heron", new="proj/h") == {"changed": 2}
    assert post(client, "/tags/merge", tags=["x", "y"], into="z") == {"changed": 2}
    assert client.delete("/tags/proj/h").json() == {"changed": 2}
    assert [client.get(f"/memory/{id_}").json().get("tags") for id_ in ids] == [["z"], None, ["z"]]
    gone = client.delete("/tags/proj/h")
    assert (gone.status_code, gone.json()["code"]) == (404, "tag_not_found")
    bad = client.get("/tags", params={"regex": "("})
    assert (bad.status_code, bad.json()["code"]) == (422, "invalid_request")
