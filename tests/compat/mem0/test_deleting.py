"""What deletions by Mem0's routes delete: exactly what they name, and for good."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.settings import Settings
from souvenir.core.types import Scope
from souvenir.store import pending_removals
from souvenir.store.pending_removals import Removable, Target
from tests.api.conftest import BASE_URL, KEY
from tests.api.learning import PATIENCE_S, ended, takes_everything
from tests.compat.mem0.test_routes import ENV, key_for
from tests.fake_embedder import FakeEmbedder, fake_of
from tests.vendors.llm import LLMRequest, LLMVendor


class Learner:
    """A service whose model answers when it is let to, with an admin's key."""

    def __init__(self, client: TestClient, answers: Event) -> None:
        self.client, self._answers = client, answers

    def queue(self, agent: str, user: str, headers: dict[str, str] = ENV, **more: Any) -> str:
        messages = [{"role": "user", "content": f"{user} drinks tea."}]
        body = {"messages": messages, "agent_id": agent, "user_id": user, **more}
        answer = self.client.post("/v3/memories/add/", json=body, headers=headers)
        assert answer.json()["status"] == "PENDING", answer.text
        return str(answer.json()["event_id"])

    def statuses(self, agent: str, jobs: list[str]) -> list[str]:
        """The ends of jobs, after the model answered."""
        self._answers.set()
        return [ended(self.client, job, headers={**ENV, "X-Namespace": agent})["status"] for job in jobs]

    def held(self, agent: str) -> list[str]:
        body = {"filters": {"agent_id": agent}}
        return [one["memory"] for one in self.client.post("/v3/memories/", json=body, headers=ENV).json()["results"]]


@pytest.fixture
def learner(tmp_path: Path) -> Iterator[Learner]:
    vendor, answers = LLMVendor(), Event()

    def answer(request: LLMRequest) -> Any:
        answers.wait(PATIENCE_S)
        return takes_everything(request)

    vendor.start()
    vendor.script(answer)
    settings = Settings(data_dir=tmp_path, api_key=SecretStr(KEY), auth_rate_limit=10**6, **vendor.settings("openai"))
    with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL) as client:
        yield Learner(client, answers)
        answers.set()
    vendor.stop()


DELETIONS: dict[str, Callable[[TestClient], Any]] = {
    "user": lambda client: client.delete("/v2/entities/user/alice/", headers=ENV),
    "agent": lambda client: client.delete("/v2/entities/agent/one/", headers=ENV),
    "reset": lambda client: client.post("/mem0/reset", headers=ENV),
    "all of a user": lambda client: client.delete("/v1/memories/?agent_id=one&user_id=alice", headers=ENV),
    "all of an agent": lambda client: client.delete("/v1/memories/?agent_id=one", headers=ENV),
}


@pytest.mark.parametrize("deletion", DELETIONS.values(), ids=DELETIONS)
def test_what_is_being_extracted_when_it_is_deleted_is_not_stored(learner, deletion):
    jobs = [learner.queue("one", "alice") for _ in range(3)]
    assert deletion(learner.client).status_code == 200
    assert learner.statuses("one", jobs) == ["cancelled"] * 3
    assert learner.held("one") == []


def test_extractions_of_others_go_on(learner):
    kept = [learner.queue("one", "ben"), learner.queue("two", "ben")]
    learner.client.delete("/v2/entities/user/alice/", headers=ENV)
    learner.client.delete("/v1/memories/?agent_id=one&user_id=alice", headers=ENV)
    learner.client.delete("/v1/memories/?agent_id=one&run_id=r", headers=ENV)
    learner.client.delete("/v2/entities/agent/three/", headers=ENV)
    assert learner.statuses("one", kept[:1]) + learner.statuses("two", kept[1:]) == ["completed"] * 2
    assert learner.held("one") == learner.held("two") == ["ben drinks tea."]


def test_a_key_for_some_sources_ends_its_own_extractions_only(learner):
    of_mem0 = learner.queue("one", "alice")
    native = {"messages": "User: I drink tea.", "source": "notes"}
    elsewhere = learner.client.post("/memory/extract", json=native, headers={**ENV, "X-Namespace": "one"})
    key = key_for(learner.client, namespace="one", prefixes=["mem0"])
    assert learner.client.post("/mem0/reset", headers=key).status_code == 200
    assert learner.statuses("one", [of_mem0, elsewhere.json()["job_id"]]) == ["cancelled", "completed"]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("deleting"), api_key=SecretStr(KEY), auth_rate_limit=10**6)
    with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL) as running:
        yield running


def add(client: TestClient, text: str, **more: Any) -> Any:
    body = {"messages": [{"role": "user", "content": text}], **more}
    return client.post("/v3/memories/add/", json=body, headers=ENV)


def listed(client: TestClient, **filters: Any) -> list[str]:
    answer = client.post("/v3/memories/", json={"filters": filters}, headers=ENV)
    assert answer.status_code == 200, answer.text
    return sorted(one["memory"] for one in answer.json()["results"])


@pytest.mark.parametrize("kind", ["user", "app", "run", "agent"])
def test_an_entity_of_the_name_star_is_no_other_one(client, kind):
    for user in ("ann", "ben"):
        assert add(client, f"tea of {user}", agent_id="stars", user_id=user, app_id="a", run_id="r").status_code == 200
    before = listed(client, agent_id="stars")
    assert client.delete(f"/v2/entities/{kind}/*/", headers=ENV).status_code == 200
    assert listed(client, agent_id="stars") == before
    client.delete("/v2/entities/agent/stars/", headers=ENV)
    assert listed(client, agent_id="stars") == []


@pytest.mark.parametrize("name", ["user_id", "app_id", "run_id", "agent_id"])
@pytest.mark.parametrize("within", ["body", "filters"])
def test_no_entity_is_called_star(client, name, within):
    named = {name: "*"}
    answer = add(client, "tea", **(named if within == "body" else {"filters": named}))
    assert (answer.status_code, f"{name} cannot be *" in answer.json()["detail"]) == (422, True)


def test_an_entity_that_cannot_be_one_is_refused_with_one_sentence(client):
    for kind in ("user", "agent"):
        answer = client.delete(f"/v2/entities/{kind}/a%00b/", headers=ENV)
        assert (answer.status_code, isinstance(answer.json()["detail"], str)) in ((422, True), (400, True))


def test_an_agent_whose_removal_is_not_finished_is_found_by_nobody(client):
    id_ = add(client, "tea of the past", agent_id="past", user_id="pat").json()["results"][0]["id"]
    engine = client.app.state.service.engine
    with engine.namespace(Scope("past")) as (_, namespace):
        targets = [Target(Removable.NAMESPACE, namespace.id)]
    engine.models.remove(lambda connection: pending_removals.begin(connection, targets, "unfinished"))
    assert client.get(f"/v1/memories/{id_}/", headers=ENV).status_code == 404
    assert client.get(f"/v1/memories/{id_}/history/", headers=ENV).status_code == 404
    assert "tea of the past" not in listed(client, agent_id="*")
    wanted = {"query": "tea of the past", "filters": {"agent_id": "*"}}
    assert "past" not in client.post("/v3/memories/search/", json=wanted, headers=ENV).json()["results"]
    assert "pat" not in [one["name"] for one in client.get("/v1/entities/", headers=ENV).json()["results"]]
