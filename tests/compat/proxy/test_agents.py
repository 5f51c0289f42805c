"""Whose memory a call gets: agents, sessions and users, and what a key of one agent may not do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from tests.client.models import MODEL
from tests.client.running import RunningService
from tests.compat.proxy.conftest import Proxied, settings_for, wait_until_indexed
from tests.vendors.llm import KEY, LLMVendor, says

ADMIN = "admin-key-of-the-tests"
SAY = [{"role": "user", "content": "My cat is called Otto."}]
ASK = [{"role": "user", "content": "What is my cat called?"}]


@pytest.mark.parametrize(
    ("headers", "model", "agent", "sent_model"),
    [
        ({"x-souvenir-agent": "ada"}, "gpt", "ada", "gpt"),
        ({"x-souvenir-agent": "ada"}, "org/gpt", "ada", "org/gpt"),
        ({"x-souvenir-agent": "ådå".encode()}, "gpt", "ådå", "gpt"),
        ({"x-namespace": "bob"}, "org/gpt", "bob", "org/gpt"),
        ({}, "cleo/gpt", "cleo", "gpt"),
        ({}, "cleo/org/gpt", "cleo", "org/gpt"),
        ({}, "gpt", "default", "gpt"),
        ({}, "/gpt", "default", "/gpt"),
        ({}, "cleo/", "default", "cleo/"),
    ],
)
def test_the_header_the_namespace_or_the_models_name_tells_the_agent(
    proxied: Proxied, headers: dict[Any, Any], model: str, agent: str, sent_model: str
):
    session = proxied.agent
    answer = httpx.post(
        f"{proxied.service.url}/v1/chat/completions",
        json={"model": model, "messages": SAY},
        headers={"x-souvenir-session": session, **headers},
    )
    assert answer.status_code == 200
    assert proxied.vendor.requests[-1].body["model"] == sent_model
    assert proxied.memory.said(agent, session) == [("user", SAY[0]["content"]), ("assistant", "Noted.")]


@pytest.mark.parametrize("name", ["x-souvenir-agent", "x-souvenir-session", "x-souvenir-user"])
@pytest.mark.parametrize("value", [b"a/b", b"\xff\xfe", b"x" * 201, b"a\tb"])
def test_a_header_that_names_nothing_is_refused_and_nothing_is_sent(proxied: Proxied, name: str, value: bytes):
    headers = {b"x-souvenir-agent": proxied.agent.encode(), name.encode(): value}
    answer = httpx.post(
        f"{proxied.service.url}/v1/chat/completions",
        json={"model": MODEL, "messages": SAY},
        headers=list(headers.items()),
    )
    assert answer.status_code == 422
    assert "1 to 200 printable characters" in answer.json()["detail"]
    assert proxied.vendor.requests == []


def test_only_messages_with_the_user_are_recalled_and_new_ones_are_theirs(proxied: Proxied):
    proxied.ask("I was born in Oslo.", x_souvenir_user="ann", x_souvenir_session="one")
    proxied.ask("I was born in Rome.", x_souvenir_user="ben", x_souvenir_session="two")
    proxied.indexed()
    proxied.ask("Where was I born?", x_souvenir_user="ben", x_souvenir_session="three")
    sent = str(proxied.vendor.requests[-1].body)
    assert "Rome" in sent
    assert "Oslo" not in sent
    assert {message.user for message in proxied.memory.messages(proxied.agent, "three")} == {"ben"}


def test_a_conversation_without_a_name_has_one_session_and_is_not_recalled_to_itself(proxied: Proxied):
    first = proxied.ask("I was born in Oslo.")
    history: list[Any] = ["I was born in Oslo.", {"role": "assistant", "content": "Noted."}, "Where was I born?"]
    second = proxied.ask(*history)
    assert first.headers["x-souvenir-session"] == second.headers["x-souvenir-session"]
    assert proxied.vendor.requests[-1].body["messages"][-1]["content"] == "Where was I born?"
    assert str(proxied.vendor.requests[-1].body).count("Oslo") == 1
    proxied.indexed()
    other = proxied.ask("Where was I born?")
    assert other.headers["x-souvenir-session"] != first.headers["x-souvenir-session"]
    assert "Oslo" in str(proxied.vendor.requests[-1].body)


# --- keys ------------------------------------------------------------------------------------------------------------

Send = Callable[..., httpx.Response]


@pytest.fixture(scope="module")
def guarded(vendor: LLMVendor, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service with keys, and a vendor's key of its own."""
    service = RunningService(
        tmp_path_factory.mktemp("guarded") / "data",
        **settings_for(vendor),
        api_key=SecretStr(ADMIN),
        proxy_openai_api_key=SecretStr(KEY),
        auth_rate_limit=10**6,
    )
    service.start()
    yield service
    service.stop()


@pytest.fixture(scope="module")
def keys(guarded: RunningService) -> dict[str, str]:
    def made(**body: Any) -> str:
        answer = httpx.post(f"{guarded.url}/api/keys", json={"name": "k", **body}, headers={"x-api-key": ADMIN})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["key"])

    return {
        "admin": ADMIN,
        "ann": made(role="read-write", namespace="ann"),
        "ben": made(role="read-write", namespace="ben"),
        "reader": made(role="read-only", namespace="ann"),
        "sourced": made(role="read-write", namespace="ann", prefixes=["notes"]),
        "wrong": "sk-wrong",
    }


@pytest.fixture
def send(guarded: RunningService, keys: dict[str, str], vendor: LLMVendor) -> Send:
    vendor.requests.clear()
    vendor.script(lambda _: "Noted.")

    def send(key: str, messages: Any = SAY, model: str = MODEL, **headers: str) -> httpx.Response:
        named = {"authorization": f"Bearer {keys[key]}", **{one.replace("_", "-"): headers[one] for one in headers}}
        body = {"model": model, "messages": messages}
        answer = httpx.post(f"{guarded.url}/v1/chat/completions", json=body, headers=named)
        if answer.is_success:
            wait_until_indexed(guarded)
        return answer

    return send


def test_a_key_of_one_agent_reaches_its_memory_only(send: Send, vendor: LLMVendor):
    assert send("ann").status_code == 200
    assert send("ann", ASK).headers["x-souvenir-context"] == "added"
    assert "Otto" in str(vendor.requests[-1].body)
    assert send("ben", ASK).status_code == 200
    assert "Otto" not in str(vendor.requests[-1].body)
    before = len(vendor.requests)
    assert send("ben", ASK, x_souvenir_agent="ann").status_code == 403
    assert send("ben", ASK, x_namespace="ann").status_code == 403
    assert len(vendor.requests) == before
    # The vendor's name of a model is not taken for an agent that the key is not for.
    assert send("ben", ASK, model="ann/gpt").status_code == 200
    assert vendor.requests[-1].body["model"] == "ann/gpt"
    assert "Otto" not in str(vendor.requests[-1].body)
    assert send("ann", ASK, model="ann/gpt").status_code == 200
    assert vendor.requests[-1].body["model"] == "gpt"


@pytest.mark.parametrize(("key", "status"), [("wrong", 401), ("reader", 403), ("sourced", 403)])
def test_keys_that_may_not_write_an_agents_messages_are_refused(send: Send, vendor: LLMVendor, key: str, status: int):
    assert send(key).status_code == status
    assert vendor.requests == []


def test_an_agent_that_grants_no_search_gives_no_context(send: Send, guarded: RunningService, vendor: LLMVendor):
    assert send("ben").status_code == 200
    closed = dict.fromkeys(("quick_memory", "logs", "full_memory"), False)
    answer = httpx.put(f"{guarded.url}/agents/ben/access", json=closed, headers={"x-api-key": ADMIN})
    assert answer.status_code == 200, answer.text
    assert send("ben", ASK).headers["x-souvenir-context"] == "none"
    assert "Otto" not in str(vendor.requests[-1].body)
    assert send("admin", ASK, x_souvenir_agent="ben").headers["x-souvenir-context"] == "added"


def test_a_tool_loop_shows_nothing_after_access_was_withdrawn(send: Send, guarded: RunningService, vendor: LLMVendor):
    def grant(granted: bool) -> None:
        levels = dict.fromkeys(("quick_memory", "logs", "full_memory"), granted)
        answer = httpx.put(f"{guarded.url}/agents/ann/access", json=levels, headers={"x-api-key": ADMIN})
        assert answer.status_code == 200, answer.text

    grant(True)
    assert send("ann", x_souvenir_session="told").status_code == 200
    assert send("ann", ASK, x_souvenir_session="loop").headers["x-souvenir-context"] == "added"
    assert "Otto" in str(vendor.requests[-1].body)
    grant(False)
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "Nothing."}
    loop = [*ASK, {"role": "assistant", "content": None, "tool_calls": [call]}, result]
    assert send("ann", loop, x_souvenir_session="loop").headers["x-souvenir-context"] == "none"
    assert "Otto" not in str(vendor.requests[-1].body)
    grant(True)


def test_an_answer_of_another_key_names_no_session(guarded: RunningService, keys: dict[str, str], vendor: LLMVendor):
    vendor.script(lambda _: says("Noted.", response_id="resp_of_ann"))

    def respond(key: str, **body: Any) -> str:
        headers = {"authorization": f"Bearer {keys[key]}", "x-souvenir-agent": key}
        if "previous_response_id" not in body:
            headers["x-souvenir-session"] = "diagnosis"
        answer = httpx.post(f"{guarded.url}/v1/responses", json={"model": MODEL, **body}, headers=headers)
        assert answer.status_code == 200, answer.text
        wait_until_indexed(guarded)
        return answer.headers["x-souvenir-session"]

    assert respond("ann", input="I am ill.") == "diagnosis"
    assert respond("ann", input="Since when?", previous_response_id="resp_of_ann") == "diagnosis"
    assert respond("ben", input="Since when?", previous_response_id="resp_of_ann") != "diagnosis"


@pytest.mark.parametrize("body", [b"no JSON", b'{"model":' + b"1" * 5000 + b"}", b"[" * 2000])
def test_a_body_that_cannot_be_read_needs_the_same_key(
    guarded: RunningService, keys: dict[str, str], vendor: LLMVendor, body: bytes
):
    vendor.requests.clear()
    url = f"{guarded.url}/v1/chat/completions"
    for key, agent in (("sourced", "ann"), ("ben", "ann")):
        headers = {"authorization": f"Bearer {keys[key]}", "x-souvenir-agent": agent}
        assert httpx.post(url, content=body, headers=headers).status_code == 403
    assert vendor.requests == []


def test_the_services_keys_never_reach_the_vendor(send: Send, vendor: LLMVendor, keys: dict[str, str]):
    assert send("ann").status_code == 200
    assert send("ann", x_api_key="sk-of-a-vendor").status_code == 401
    assert send("wrong", x_souvenir_key=keys["ann"]).status_code == 200
    for request in vendor.requests:
        assert request.key == KEY
        assert not any(key in str(request.headers) for key in keys.values())
        assert [name for name in request.headers if name.startswith("x-souvenir")] == ["x-souvenir-proxied"]
