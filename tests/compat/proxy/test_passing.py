"""What the vendor receives and what the caller gets back, byte for byte, and whose credentials are sent."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest

from souvenir.compat.proxy import answers
from tests.client.models import MODEL
from tests.client.running import RunningService, free_port
from tests.compat.proxy.conftest import Proxied, settings_for
from tests.thoroughness import THOROUGH
from tests.vendors.llm import KEY, LLMVendor, call, fails, says
from tests.vendors.server import Reply

QUESTION = {"role": "user", "content": "What is the weather?"}
CHAT = {"model": MODEL, "messages": [QUESTION]}
MESSAGES = {**CHAT, "max_tokens": 64}
RESPONSES = {"model": MODEL, "input": [QUESTION]}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", CHAT),
    ("/v1/responses", RESPONSES),
    ("/v1/messages", MESSAGES),
]
ANSWERS = {
    "text": says("It rains."),
    "tools": says("", calls=[call("get_weather", city="Lisbon"), call("get_time", "call_2")]),
    "gzip": says("It rains.", gzip=True),
    "refused": says("No.", ending="refusal"),
    "error": fails(429, "Slow down", retry_after="7"),
    "overloaded": fails(529, "Overloaded"),
    "nonsense": Reply(body=b"<html>no JSON \xff", headers={"Content-Type": "text/html"}),
    "empty": Reply(body=b""),
    "redirect": Reply(status=307, body=b"", headers={"Location": "/elsewhere"}),
}


def direct(proxied: Proxied, path: str, body: Any) -> httpx.Response:
    return httpx.post(f"{proxied.vendor.url}{path}", json=body, headers={"accept-encoding": "gzip"})


def raw(response: httpx.Response) -> bytes:
    return b"".join(response.iter_raw())


def without_own(headers: httpx.Headers) -> dict[str, str]:
    """The headers of an answer as far as the vendor determines them."""
    names = ("content-type", "content-encoding", "location", "retry-after", "x-request-id")
    return {name: headers[name] for name in names if name in headers}


EACH = [(path, body, name) for path, body in CALLS for name in ANSWERS]
MOST_DIFFERENT = [(path, body, name) for path, body, name in EACH if path == CALLS[0][0] or name in ("tools", "error")]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize(("path", "body", "name"), EACH if THOROUGH else MOST_DIFFERENT)
def test_answers_and_errors_are_passed_on_byte_for_byte(
    proxied: Proxied, path: str, body: dict[str, Any], name: str, stream: bool
):
    body = {**body, "stream": True} if stream else body
    proxied.vendor.script(lambda _: ANSWERS[name])
    sent: list[tuple[int, bytes, dict[str, str]]] = []
    for url in (proxied.vendor.url, proxied.service.url):
        headers = {"accept-encoding": "gzip", "x-souvenir-agent": proxied.agent}
        with httpx.stream("POST", f"{url}{path}", json=body, headers=headers) as answer:
            own = without_own(answer.headers)
            own.pop("x-request-id", None)
            sent.append((answer.status_code, raw(answer), own))
    assert sent[0] == sent[1]


def test_the_vendors_request_id_is_that_of_the_answer(proxied: Proxied):
    proxied.vendor.replies.append(says("Fine.", headers={"X-Request-Id": "req_of_the_vendor"}))
    assert proxied.ask("Hello").headers.get_list("x-request-id") == ["req_of_the_vendor"]


def test_the_vendor_receives_the_request_as_it_was_sent_where_there_is_no_context(proxied: Proxied):
    """Also its unknown fields, the form of its numbers, and headers of the SDK."""
    sent = b'{"model":"m","temperature":1.0,"big":1e400,"messages":[{"role":"user","content":"\\u00e9"}],"x":{"y":[]}}'
    answer = proxied.post(
        "/v1/chat/completions?api-version=7", sent, openai_beta="assistants=v2", content_type="application/json"
    )
    assert answer.headers["x-souvenir-context"] == "none"
    [request] = proxied.vendor.requests
    assert request.path == "/v1/chat/completions?api-version=7"
    assert request.headers["openai-beta"] == "assistants=v2"
    assert int(request.headers["content-length"]) == len(sent)
    assert request.body == json.loads(sent)


def test_only_the_context_is_added_to_a_request(proxied: Proxied):
    proxied.memory.teach(proxied.agent, "The weather is always fine in Lisbon.")
    body = {
        "temperature": 0.5,
        **CHAT,
        "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}],
        "metadata": {"half": "\ud83d"},
    }
    sent = json.dumps(body).encode()
    assert proxied.post("/v1/chat/completions", sent).headers["x-souvenir-context"] == "added"
    received = proxied.vendor.requests[-1].body
    assert {**received, "messages": received["messages"][1:]} == body
    assert "Lisbon" in received["messages"][0]["content"]


@pytest.mark.parametrize(
    ("path", "messages"),
    [("/v1/chat/completions", "messages"), ("/v1/responses", "input"), ("/v1/messages", "messages")],
)
def test_a_request_with_context_keeps_its_form(proxied: Proxied, path: str, messages: str):
    proxied.memory.teach(proxied.agent, "The weather is always fine in Lisbon.")
    first = b'{ "role":"user", "content":"Caf\\u00e9?", "n":1E2 }'
    own = [b'{"model" : "m", "temperature":1.0, "big":1e400,', b'"tools":[], "twice":{"a":1,"a":2}}', first]
    last = b'{"role":"assistant","content":"Yes."},{"role":"user","content":"And the weather?"}'
    sent = own[0] + f'"max_tokens":9,"{messages}":['.encode() + first + b"," + last + b"]," + own[1]
    assert proxied.post(path, sent).headers["x-souvenir-context"] == "added"
    content = proxied.vendor.requests[-1].content
    assert b"always fine" in content
    assert [part for part in own if part not in content] == []


@pytest.mark.parametrize(
    "body", [b"", b"no JSON", b"[]", b'{"model": 7}', b'{"messages": 7, "model": "m"}', b"[" * 5000, b'{"model":NaN}']
)
def test_what_cannot_be_read_is_the_vendors_to_refuse(proxied: Proxied, body: bytes):
    received: list[Any] = []

    def refuse(request: Any) -> Any:
        received.append(request)
        return fails(400, "Unreadable")

    proxied.vendor.script(refuse)
    answer = proxied.post("/v1/chat/completions", body, content_type="text/plain")
    if received:
        assert answer.status_code == 400
        assert answer.json()["error"]["message"] == "Unreadable"
    else:
        # The scripted vendor reads JSON only.
        assert answer.status_code == 502
        assert answer.json()["code"] == "model_unreachable"
    assert proxied.agent not in proxied.agents()


def test_lists_and_descriptions_of_models_are_the_vendors(proxied: Proxied):
    models = {"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "x"}]}
    proxied.vendor.script(lambda request: Reply(body=models if request.path.endswith("/models") else models["data"][0]))
    client = proxied.openai()
    assert [model.id for model in client.models.list()] == ["m"]
    assert client.models.retrieve("ft:m").id == "m"
    assert proxied.vendor.requests[-1].path == "/v1/models/ft%3Am"
    assert client.models.retrieve("meta-llama/m").id == "m"
    refused = httpx.get(f"{proxied.service.url}/v1/models/%2e%2e")
    assert refused.status_code in (404, 422)
    counted = {"input_tokens": 9}
    proxied.vendor.script(lambda _: Reply(body=counted))
    assert proxied.anthropic().messages.count_tokens(model=MODEL, messages=[QUESTION]).input_tokens == 9
    assert proxied.agent not in proxied.agents()


@pytest.mark.parametrize("encoding", ["br", "zstd", "br, gzip", "", "*"])
def test_answers_are_asked_for_in_what_the_service_can_read(proxied: Proxied, encoding: str):
    proxied.ask("Hello", accept_encoding=encoding)
    assert proxied.vendor.requests[-1].headers["accept-encoding"] == ("gzip" if "gzip" in encoding else "identity")
    assert proxied.said() == [("user", "Hello"), ("assistant", "Noted.")]


def test_a_compressed_answer_is_unpacked_within_limits(proxied: Proxied, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(answers, "MAX_TEXT_BYTES", 100_000)
    proxied.vendor.replies.append(says("x" * 5_000_000, gzip=True))
    assert proxied.ask("Hello", accept_encoding="gzip").status_code == 200
    assert proxied.said() == [("user", "Hello")]
    assert proxied.ask("Hello again", accept_encoding="gzip").status_code == 200


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_a_body_has_no_length(proxied: Proxied, status: int):
    proxied.vendor.replies.append(Reply(status=status, body=b""))
    assert proxied.ask("Hello").status_code == status
    assert proxied.ask("Hello").status_code == 200


def test_headers_of_the_vendor_do_not_pose_as_the_services(proxied: Proxied):
    proxied.vendor.replies.append(says("Fine.", headers={"X-Souvenir-Session": "forged", "Set-Cookie": "a=b"}))
    answer = proxied.ask("Hello", x_souvenir_session="mine")
    assert answer.headers.get_list("x-souvenir-session") == ["mine"]
    assert "set-cookie" not in answer.headers


def test_cookies_of_one_caller_are_not_sent_for_others(proxied: Proxied):
    proxied.vendor.replies.append(says("Fine.", headers={"Set-Cookie": "gateway=ann; Path=/"}))
    proxied.ask("Hello")
    proxied.ask("Hello", cookie="own=1")
    assert "cookie" not in proxied.vendor.requests[-1].headers


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_the_path_names_the_vendor_of_a_call(proxied: Proxied, path: str):
    proxied.post(path, CHAT if path.endswith("completions") else RESPONSES, anthropic_version="2023-06-01")
    assert proxied.vendor.requests[-1].path == path


def test_a_body_that_is_too_large_is_refused_in_the_form_of_the_vendors(start: Start):
    service = start(max_body_bytes=100_000)
    answer = httpx.post(f"{service.url}/v1/chat/completions", content=b" " * 100_001)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "payload_too_large")


def test_calls_in_progress_are_limited_and_other_routes_go_on(start: Start, vendor: LLMVendor):
    vendor.requests.clear()
    vendor.go_on.clear()
    vendor.script(lambda _: says("Late.", waits=True))
    service = start(**settings_for(vendor), max_proxied_calls=4)
    url = f"{service.url}/v1/chat/completions"
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(httpx.post, url, json=CHAT, timeout=30) for _ in range(3)]
        end = time.monotonic() + 20
        while len(vendor.requests) < len(waiting) and time.monotonic() < end:
            time.sleep(0.01)
        refused = httpx.post(url, json=CHAT)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "overloaded")
        assert refused.headers["retry-after"] == "1"
        assert httpx.get(f"{service.url}/agents").status_code == 200
        # What was sent counts no longer as a body that is held.
        assert service.app.state.service.bodies.held_bytes == 0
        vendor.go_on.set()
        assert [one.result().status_code for one in waiting] == [200] * 3
    assert httpx.post(url, json=CHAT).status_code == 200


# --- credentials -----------------------------------------------------------------------------------------------------

Start = Callable[..., RunningService]


@pytest.fixture
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    started: list[RunningService] = []

    def start(**settings: Any) -> RunningService:
        service = RunningService(tmp_path_factory.mktemp("own") / "data", **settings)
        started.append(service)
        service.start()
        return service

    yield start
    for service in started:
        service.stop()


def test_an_open_service_passes_the_callers_key_on(proxied: Proxied):
    with proxied.openai() as client:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hello"}])
    assert proxied.vendor.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    with proxied.anthropic() as client:
        client.messages.create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "Hello"}])
    assert proxied.vendor.requests[-1].key == KEY


def test_a_service_with_keys_takes_its_own_beside_the_vendors(start: Start, vendor: LLMVendor):
    vendor.script(lambda _: "Noted.")
    service = start(**settings_for(vendor), api_key="key-of-the-service")
    asked: dict[str, Any] = {"url": f"{service.url}/v1/chat/completions", "json": CHAT}
    both = {"authorization": "Bearer sk-vendor", "x-souvenir-key": "key-of-the-service"}
    assert httpx.post(**asked, headers=both).status_code == 200
    twice = {"authorization": "Bearer key-of-the-service", "x-souvenir-key": "key-of-the-service"}
    assert httpx.post(**asked, headers=twice).status_code == 200
    assert vendor.requests[-1].key is None
    # A server that is not the vendor's own may need no key.
    assert httpx.post(**asked, headers={"authorization": "Bearer key-of-the-service"}).status_code == 200
    assert [request.key for request in vendor.requests[-2:]] == [None, None]
    assert vendor.requests[-3].key == "sk-vendor"
    assert httpx.post(**asked, headers={"authorization": "Bearer sk-vendor"}).status_code == 401
    assert httpx.post(**asked, headers={**both, "x-souvenir-key": "wrong"}).status_code == 401


@pytest.mark.parametrize(("path", "name"), [("/v1/messages", "ANTHROPIC"), ("/v1/responses", "OPENAI")])
def test_a_vendor_that_needs_a_key_is_not_asked_without_one(start: Start, path: str, name: str):
    service = start(api_key="key-of-the-service")
    answer = httpx.post(f"{service.url}{path}", json=CHAT, headers={"x-api-key": "key-of-the-service"})
    assert (answer.status_code, answer.json()["code"]) == (400, "vendor_key_missing")
    assert f"PROXY_{name}_API_KEY" in answer.json()["detail"]


def test_a_service_that_would_call_itself_says_so(start: Start):
    port = free_port()
    service = start(openai_base_url=f"http://127.0.0.1:{port}/v1")
    forward = start(openai_base_url=f"{service.url}/v1")
    answer = httpx.post(f"{forward.url}/v1/chat/completions", json=CHAT)
    assert answer.status_code == 422
    assert "OPENAI_BASE_URL" in answer.json()["error"]["message"]


def test_a_vendor_that_does_not_answer_is_a_bad_gateway(start: Start):
    service = start(openai_base_url=f"http://127.0.0.1:{free_port()}/v1")
    with (
        openai.OpenAI(base_url=f"{service.url}/v1", api_key="sk", max_retries=0) as client,
        pytest.raises(openai.InternalServerError) as refused,
    ):
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hello"}])
    assert refused.value.status_code == 502
    assert "OPENAI_BASE_URL" in str(refused.value)
