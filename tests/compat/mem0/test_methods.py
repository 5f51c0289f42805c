"""Every public method of both of Mem0's clients is called; the few that are not offered are named here."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from tests.api.conftest import KEY
from tests.compat.mem0.conftest import Running

NOT_OFFERED = {"chat", "project.add_member", "project.update_member", "project.remove_member"}
"""`chat` is not implemented in the clients. Members are keys here."""


class Listed(BaseModel):
    memories: list[str]


def public(of: type, prefix: str = "") -> set[str]:
    found = inspect.getmembers(of, inspect.isfunction)
    return {prefix + name for name, _ in found if not name.startswith("_")}


class Recorded:
    """A client, or its project, of which each called method is noted; coroutines are awaited."""

    def __init__(self, of: Any, runner: asyncio.Runner, called: set[str], prefix: str = "") -> None:
        self._of, self._runner, self._called, self._prefix = of, runner, called, prefix

    @property
    def project(self) -> Recorded:
        return Recorded(self._of.project, self._runner, self._called, "project.")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._of, name)

        def call(*values: Any, **named: Any) -> Any:
            self._called.add(self._prefix + name)
            result = method(*values, **named)
            return self._runner.run(result) if inspect.iscoroutine(result) else result

        return call


@pytest.fixture(params=["MemoryClient", "AsyncMemoryClient"])
def both(request: pytest.FixtureRequest, mem0: Any, running: Running) -> Iterator[tuple[Recorded, set[str], set[str]]]:
    """Each of the clients with an admin's key, its called methods, and all that it has."""
    called: set[str] = set()
    with asyncio.Runner() as runner:
        client = getattr(mem0, request.param)(api_key=KEY, host=running.url)
        offered = public(type(client)) | public(type(client.project), "project.")
        yield Recorded(client, runner, called), called, offered
        if request.param == "AsyncMemoryClient":
            runner.run(client.async_client.aclose())
        else:
            client.client.close()


def use_memories(client: Recorded) -> None:
    added = client.add([{"role": "user", "content": text} for text in ("green tea", "black tea")], user_id="ann")
    one, other = (result["id"] for result in added["results"])
    assert client.get(one)["memory"] == "green tea"
    assert client.get_all(filters={"user_id": "ann"})["count"] == 2
    assert client.search("tea", filters={"user_id": "ann"}, top_k=1)["results"]
    assert client.update(one, text="white tea")["memory"] == "white tea"
    assert [row["event"] for row in client.history(one)] == ["ADD", "UPDATE"]
    client.batch_update([{"memory_id": other, "text": "red tea"}])
    assert client.feedback(one, "POSITIVE")["feedback"] == "POSITIVE"
    assert ("user", "ann") in {(entity["type"], entity["name"]) for entity in client.users()["results"]}
    client.delete(one)
    client.batch_delete([{"memory_id": other}])
    client.add("oolong", user_id="ben")
    client.delete_all(user_id="ben")
    client.delete_users(user_id="ben")
    client.add("assam", user_id="ben")
    client.reset()
    assert client.get_all()["count"] == 0


def use_exports_and_profiles(client: Recorded) -> None:
    client.add("I like chess", user_id="ann")
    made = client.create_memory_export(schema=Listed.model_json_schema(), user_id="ann")
    assert client.get_memory_export(memory_export_id=made["id"]) == {"memories": ["I like chess"]}
    assert client.get_summary({"user_id": "ann"})["summary"] == "- I like chess"
    assert client.update_profile_settings(enabled=True)["enabled"]
    assert client.get_profile_settings()["entities"]["user"] == {"schema": None, "custom_instructions": None}
    assert client.get_profile("ann")["profile"] == {"memories": ["I like chess"]}
    assert client.generate_profile("ann")["status"] == "succeeded"
    sampled = client.sample_profiles(limit=2)
    assert sampled["entity_ids"] == ["ann"]
    assert client.get_profile_job(sampled["status_url"])["job"]["total"] == 1
    client.update_profile_settings(enabled=False)


def use_webhooks_and_projects(client: Recorded, mem0: Any) -> None:
    address = "http://127.0.0.1:9/hook"
    hook = client.create_webhook(address, "Logger", "default", ["memory_add"])
    client.update_webhook(hook["webhook_id"], name="Log")
    assert [one["name"] for one in client.get_webhooks("default")] == ["Log"]
    client.delete_webhook(hook["webhook_id"])
    assert client.project.update(custom_instructions="Only tea")["message"].startswith("Project updated")
    assert client.project.get(fields=["custom_instructions"]) == {"custom_instructions": "Only tea"}
    client.update_project(custom_instructions="Only chess")
    assert client.get_project()["custom_instructions"] == "Only chess"
    assert client.project.create("made", "for tests")["description"] == "for tests"
    assert client.project.get_members() == {"members": []}
    for refused in (
        lambda: client.project.add_member("a@example.com"),
        lambda: client.project.update_member("a@example.com", "OWNER"),
        lambda: client.project.remove_member("a@example.com"),
    ):
        with pytest.raises(mem0.exceptions.MemoryError, match="POST /api/keys") as raised:
            refused()
        assert raised.value.error_code == "HTTP_501"
    with pytest.raises(NotImplementedError):
        client.chat()
    assert client.project.delete()["message"] == "Project deleted successfully"


def test_every_method_of_a_client_is_called(both, mem0):
    client, called, offered = both
    use_memories(client)
    use_exports_and_profiles(client)
    use_webhooks_and_projects(client, mem0)
    assert called == offered
    assert offered >= NOT_OFFERED
