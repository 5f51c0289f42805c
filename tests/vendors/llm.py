"""A language model's vendor on loopback: the real SDKs ask it on Anthropic's, OpenAI's and Ollama's wire.

    vendor = LLMVendor()
    vendor.start()                                       # stop() at the end
    settings = Settings(**vendor.settings("openai"))     # or "anthropic", "ollama"

    vendor.replies.append({"facts": []})                 # a good answer with this JSON
    vendor.replies.append("Sure! {...}")                 # a text, as the model wrote it
    vendor.replies.append(says(text, ending="length"))   # cut; "refusal": declined; tokens, waits, drips, hangs_up too
    vendor.replies.append(fails(429, retry_after="2"))   # an error in the words of the wire; 500, 529 and so on
    vendor.replies.append(Reply(body=b"<html>"))         # any bytes
    vendor.replies.append(says("", calls=[call("get_weather", city="Lisbon")]))    # the model calls a tool

    vendor.script(lambda request: ... request.prompt == "facts" ...)    # decides when nothing is queued (any more)
    vendor.requests[0].user                              # and .system, .turns, .prompt, .schema, .max_tokens, .key
    vendor.arrived.acquire(timeout=30); vendor.go_on.set()    # a reply with waits=True is held in between

A script may return everything that can be queued. Without a script, what is not queued is answered with 418.
Who asks for a stream gets one (but from Ollama): `pauses` holds it in its midst, `hangs_up="midst"` cuts it,
`stream_error` ends it with an error, `gzip=True` packs it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.vendors.server import Reply, Request, Server
from tests.vendors.streams import STREAM, packed, streamed

KEY = "sk-scripted-1f2e3d4c5b6a"

_ENDINGS = {
    "anthropic": {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal"},
    "openai": {"stop": "stop", "length": "length", "refusal": "content_filter"},
    "ollama": {"stop": "stop", "length": "length"},
}


@dataclass(frozen=True)
class LLMRequest(Request):
    """What the model was asked, the same on every wire."""

    @property
    def wire(self) -> str:
        path = self.path.partition("?")[0]
        wires = {"/v1/messages": "anthropic", "/v1/responses": "responses", "/api/chat": "ollama"}
        return wires.get(path, "openai")

    @property
    def system(self) -> str:
        if self.wire == "anthropic":
            return str(self.body.get("system", ""))
        return "\n".join(message["content"] for message in self.body["messages"] if message["role"] == "system")

    @property
    def turns(self) -> list[dict[str, str]]:
        return [message for message in self.body["messages"] if message["role"] != "system"]

    @property
    def user(self) -> str:
        """What the prompt says; a repair follows as a turn of its own."""
        return self.turns[0]["content"]

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema that the answer is held to, where the wire has one."""
        body = self.body
        for path in (
            ("output_config", "format", "schema"),
            ("response_format", "json_schema", "schema"),
            ("format",),
            ("tools", 0, "input_schema"),
        ):
            found: Any = body
            for step in path:
                found = found[step] if isinstance(step, int) else found.get(step) if isinstance(found, dict) else None
                if not found:
                    break
            if isinstance(found, dict):
                return found
        return None

    @property
    def prompt(self) -> str | None:
        """The prompt's name."""
        return self.schema["title"] if self.schema else None

    @property
    def max_tokens(self) -> int:
        options = self.body.get("options", self.body)
        names = ("max_tokens", "max_completion_tokens", "num_predict")
        return next(int(options[name]) for name in names if name in options)

    @property
    def key(self) -> str | None:
        return self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ") or None


@dataclass(frozen=True)
class Says:
    """:param text: What the model writes.

    :param calls: The tools that it calls, each with `id`, `name` and `arguments`.
    :param thinking: What it thinks to itself, on the wires that show it.
    :param stream_error: What a stream breaks off with.
    :param response_id: Of an answer in OpenAI's Responses.
    :param transport: How it comes.
    """

    text: str
    ending: str = "stop"
    input_tokens: int = 100
    output_tokens: int = 20
    calls: Sequence[Mapping[str, Any]] = ()
    thinking: str = ""
    stream_error: str | None = None
    gzip: bool = False
    response_id: str = "resp_1"
    transport: Reply = field(default_factory=Reply)


@dataclass(frozen=True)
class Fails:
    status: int
    message: str
    code: str | None
    headers: Mapping[str, str]


def says(
    value: Any,
    *,
    ending: str = "stop",
    input_tokens: int = 100,
    output_tokens: int = 20,
    calls: Sequence[Mapping[str, Any]] = (),
    thinking: str = "",
    stream_error: str | None = None,
    gzip: bool = False,
    response_id: str = "resp_1",
    **transport: Any,
) -> Says:
    """:param value: A string is what the model writes, anything else its JSON.

    :param ending: `stop`, `length` or `refusal`.
    :param transport: `waits`, `pauses`, `drips` or `hangs_up` of a `Reply`.
    """
    text = value if isinstance(value, str) else json.dumps(value)
    reply = Reply(**transport)
    return Says(text, ending, input_tokens, output_tokens, calls, thinking, stream_error, gzip, response_id, reply)


def call(name: str, call_id: str = "call_1", **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments}


def fails(status: int, message: str = "It does not work", *, code: str | None = None, **headers: str) -> Fails:
    return Fails(status, message, code, {name.replace("_", "-"): value for name, value in headers.items()})


class LLMVendor(Server[LLMRequest]):
    def __init__(self) -> None:
        super().__init__(LLMRequest)
        self._decide: Callable[[LLMRequest], Any] | None = None

    def script(self, decide: Callable[[LLMRequest], Any]) -> None:
        """Let a function of the request decide; it is called on many threads."""
        self._decide = decide

    def settings(self, provider: str, **more: Any) -> dict[str, Any]:
        """What leads `Settings` here."""
        base_url = f"{self.url}/v1" if provider == "openai" else self.url
        own = {"extract_provider": provider, "extract_base_url": base_url, "extract_api_key": KEY}
        return {**own, "extract_model": "scripted-1", **more}

    def reply(self, request: LLMRequest, queued: Any) -> Reply:
        wanted = queued
        if wanted is None:
            wanted = self._decide(request) if self._decide else fails(418, "Nothing was scripted")
        match wanted:
            case Reply():
                return wanted
            case Fails():
                return Reply(wanted.status, _error(request.wire, wanted), wanted.headers)
            case Says():
                return _sent(request, wanted)
        return _sent(request, says(wanted))


def _sent(request: LLMRequest, said: Says) -> Reply:
    body: Any = _answer(request, said)
    headers: dict[str, str] = {}
    if request.body.get("stream") and request.wire != "ollama":
        body, headers = streamed(request.wire, body, error=said.stream_error), dict(STREAM)
    if said.gzip:
        body = packed(body if isinstance(body, bytes) else json.dumps(body).encode())
        headers["Content-Encoding"] = "gzip"
    return replace(said.transport, body=body, headers={**headers, **said.transport.headers})


def _error(wire: str, wanted: Fails) -> dict[str, Any]:
    match wire:
        case "anthropic":
            kind = wanted.code or "invalid_request_error"
            return {"type": "error", "error": {"type": kind, "message": wanted.message}, "request_id": "req_1"}
        case "ollama":
            return {"error": wanted.message}
    detail = {"message": wanted.message, "type": "invalid_request_error", "param": None, "code": wanted.code}
    return {"error": detail}


def _answer(request: LLMRequest, said: Says) -> dict[str, Any]:
    match request.wire:
        case "anthropic":
            return _anthropic(request, said)
        case "ollama":
            return _ollama(request, said)
        case "responses":
            return _responses(request, said)
    return _openai(request, said)


def _anthropic(request: LLMRequest, said: Says) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": said.text}] if said.text else []
    ending = _ENDINGS["anthropic"][said.ending]
    if said.thinking:
        content.insert(0, {"type": "thinking", "thinking": said.thinking, "signature": "c2lnbmVk"})
    if said.calls:
        content += [
            {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["arguments"]}
            for call in said.calls
        ]
        ending = "tool_use"
    elif "tool_choice" in request.body and said.ending == "stop":
        name = request.body["tool_choice"]["name"]
        content = [{"type": "tool_use", "id": "toolu_1", "name": name, "input": json.loads(said.text)}]
        ending = "tool_use"
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request.body["model"],
        "content": content,
        "stop_reason": ending,
        "stop_sequence": None,
        "usage": {"input_tokens": said.input_tokens, "output_tokens": said.output_tokens},
    }


def _openai(request: LLMRequest, said: Says) -> dict[str, Any]:
    """Of several choices the later ones say their number."""
    refused = said.ending == "refusal"
    texts = [said.text, *(f"{said.text} ({number})" for number in range(2, (request.body.get("n") or 1) + 1))]
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
        }
        for call in said.calls
    ]
    messages = [
        {
            "role": "assistant",
            "content": None if refused or (calls and not text) else text,
            "refusal": text if refused else None,
            **({"tool_calls": calls} if calls else {}),
        }
        for text in texts
    ]
    ending = "tool_calls" if calls else _ENDINGS["openai"][said.ending]
    total = said.input_tokens + said.output_tokens
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1767225600,
        "model": request.body["model"],
        "choices": [
            {"index": index, "message": message, "finish_reason": ending, "logprobs": None}
            for index, message in enumerate(messages)
        ],
        "usage": {
            "prompt_tokens": said.input_tokens,
            "completion_tokens": said.output_tokens,
            "total_tokens": total,
        },
    }


def _responses(request: LLMRequest, said: Says) -> dict[str, Any]:
    part = {"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}
    if said.ending == "refusal":
        part = {"type": "refusal", "refusal": said.text}
    output: list[dict[str, Any]] = []
    if said.thinking:
        summary = [{"type": "summary_text", "text": said.thinking}]
        output.append({"type": "reasoning", "id": "rs_1", "summary": summary})
    if said.text:
        message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
        output.append(message)
    for number, call in enumerate(said.calls):
        arguments = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
        opened = {"type": "function_call", "id": f"fc_{number}", "call_id": call["id"], "status": "completed"}
        output.append({**opened, **arguments})
    cut = said.ending == "length"
    return {
        "id": said.response_id,
        "object": "response",
        "created_at": 1767225600,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "instructions": None,
        "metadata": {},
        "model": request.body["model"],
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": said.input_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": said.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": said.input_tokens + said.output_tokens,
        },
    }


def _ollama(request: LLMRequest, said: Says) -> dict[str, Any]:
    return {
        "model": request.body["model"],
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": said.text},
        "done": True,
        "done_reason": _ENDINGS["ollama"][said.ending],
        "prompt_eval_count": said.input_tokens,
        "eval_count": said.output_tokens,
    }
