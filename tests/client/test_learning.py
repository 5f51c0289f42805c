"""`learning()` with the real OpenAI SDK, a scripted vendor and the real service: injected context and stored turns."""

from __future__ import annotations

import copy
import inspect
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import anthropic
import openai
import pytest
from openai.types.chat import ChatCompletion

from souvenir_client import learning, session
from souvenir_client.errors import ConnectionFailed, InvalidRequest, Unauthorized
from souvenir_client.wording import PREFACE
from tests.client import models
from tests.client.models import MODEL, Memory, ask, assistant, shown, user
from tests.client.running import RunningService, free_port
from tests.vendors.llm import LLMVendor, call, fails, says

CLIENT = Path(__file__).resolve().parents[2] / "client"


@pytest.fixture
def vendor() -> Iterator[LLMVendor]:
    vendor = LLMVendor()
    vendor.script(lambda _: "Noted.")
    vendor.start()
    yield vendor
    vendor.stop()


@pytest.fixture
def client(vendor: LLMVendor) -> Iterator[openai.OpenAI]:
    with models.openai_client(vendor) as client:
        yield client


@pytest.fixture(scope="module")
def memory(service: RunningService) -> Iterator[Memory]:
    memory = Memory(service)
    yield memory
    memory.close()


@pytest.fixture
def agent(request: pytest.FixtureRequest) -> str:
    """An agent of the test's own."""
    return str(request.node.name)[:150]


def knows_what_it_is_shown(request: Any) -> str:
    """A model that has nothing but its prompt."""
    name = re.search(r"My name is (\w+)", shown(request.body))
    return f"Your name is {name[1]}." if name else "I do not know your name."


def test_a_name_from_one_block_is_recalled_in_the_next(service, vendor, client, agent):
    vendor.script(knows_what_it_is_shown)
    with learning(agent, service.url):
        ask(client, "My name is Alice and I prefer Python.")
    with learning(agent, service.url):
        answer = ask(client, "What is my name?")
    assert answer.choices[0].message.content == "Your name is Alice."
    with learning(f"{agent} of another", service.url):
        answer = ask(client, "What is my name?")
    assert answer.choices[0].message.content == "I do not know your name."


def test_context_is_inserted_after_the_system_message_and_before_the_question(service, vendor, client, memory, agent):
    memory.client.blocks.create(agent_name=agent, label="human", value="Name: Alice")
    memory.teach(agent, "The favourite colour is teal.")
    system = {"role": "system", "content": "Be brief."}
    history = [user("Hello."), assistant("Hi.")]
    with learning(agent, service.url):
        ask(client, system, *history, "Which colour is my favourite?")
    sent = vendor.requests[0].body["messages"]
    stable, tail = sent[1]["content"], sent[4]["content"]
    assert sent == [
        system,
        {"role": "system", "content": stable},
        *history,
        {"role": "system", "content": tail},
        user("Which colour is my favourite?"),
    ]
    assert stable.startswith(f"{PREFACE}\n\n<recalled_memory id=")
    assert "Name: Alice" in stable
    assert tail.startswith(f"{PREFACE}\n\n<recalled_memory id=")
    assert "teal" in tail


def test_request_and_answer_objects_are_not_modified(service, vendor, client, memory, agent):
    memory.teach(agent, "The favourite colour is teal.")
    messages = [user("Which colour is my favourite?")]
    before = copy.deepcopy(messages)
    bare = client.chat.completions.create(model=MODEL, messages=messages)
    with learning(agent, service.url):
        answer = client.chat.completions.create(model=MODEL, messages=messages)
    assert messages == before
    assert type(answer) is type(bare)
    assert answer == bare
    assert "teal" in shown(vendor.requests[1].body)


def test_capture_only_injects_no_context(service, vendor, client, memory, agent):
    memory.teach(agent, "The favourite colour is teal.")
    with learning(agent, service.url, capture_only=True) as block:
        ask(client, "Which colour is my favourite?")
    assert vendor.requests[0].body["messages"] == [user("Which colour is my favourite?")]
    assert memory.said(agent, block.session_id) == [
        ("user", "Which colour is my favourite?"),
        ("assistant", "Noted."),
    ]


def test_a_conversation_is_stored_once_without_recalled_text(service, vendor, client, memory, agent):
    memory.teach(agent, "The favourite colour is teal.")
    history: list[dict[str, str]] = []
    with learning(agent, service.url) as block:
        for said in ("Which colour is my favourite?", "And which one is not?", "And which one is not?"):
            history.append(user(said))
            history.append(assistant(ask(client, *history).choices[0].message.content))
    assert "teal" in shown(vendor.requests[1].body)
    assert memory.said(agent, block.session_id) == [(turn["role"], turn["content"]) for turn in history]


def test_each_prompt_without_its_tail_is_a_prefix_of_the_next(service, vendor, client, memory, agent):
    """So that what a vendor caches of a prompt stays of use."""
    memory.client.blocks.create(agent_name=agent, label="human", value="Name: Alice")
    memory.teach(agent, *(f"Fact {number} is about a colour." for number in range(9)))
    history: list[dict[str, str]] = [{"role": "system", "content": "Be brief."}]
    with learning(agent, service.url):
        for number in range(4):
            history.append(user(f"Tell me fact {number}."))
            history.append(assistant(ask(client, *history).choices[0].message.content))
    prompts = [request.body["messages"] for request in vendor.requests]
    assert len(prompts) == 4
    for prompt, following in pairwise(prompts):
        up_to_tail = prompt[:-2]
        assert prompt[-2]["content"].startswith(PREFACE)
        assert following[: len(up_to_tail)] == up_to_tail


def test_the_running_conversation_is_not_recalled(service, vendor, client, agent):
    with learning(agent, service.url, session_id="one"):
        ask(client, "My favourite colour is teal.")
    with learning(agent, service.url, session_id="one"):
        ask(client, "Which colour is my favourite?")
        with session("two"):
            ask(client, "Which colour is my favourite?")
    assert ["teal" in shown(request.body) for request in vendor.requests] == [True, False, True]


def test_a_failed_call_raises_unchanged_and_stores_the_question(service, vendor, client, memory, agent):
    vendor.replies += [fails(400, "Too hot"), fails(400, "Too hot")]
    with pytest.raises(openai.BadRequestError) as bare:
        ask(client, "Is it warm?")
    with learning(agent, service.url) as block, pytest.raises(openai.BadRequestError) as raised:
        ask(client, "Is it warm?")
    assert str(raised.value) == str(bare.value)
    assert memory.said(agent, block.session_id) == [("user", "Is it warm?")]


def test_a_retry_of_a_failed_call_stores_nothing_twice(service, vendor, memory, agent):
    vendor.replies += [*(fails(status, retry_after_ms="1") for status in (500, 500, 429)), "At last."]
    with models.openai_client(vendor, max_retries=1) as client, learning(agent, service.url) as block:
        with pytest.raises(openai.InternalServerError):
            ask(client, "Is it warm?")
        ask(client, "Is it warm?")
    assert len(vendor.requests) == 4
    assert memory.said(agent, block.session_id) == [("user", "Is it warm?"), ("assistant", "At last.")]


TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}


def test_a_tool_loop_gets_one_context_and_is_stored_as_turns(service, vendor, client, memory, agent):
    memory.teach(agent, "It rains in Lisbon at times.")
    vendor.replies += [says("Let me see.", calls=[call("get_weather", city="Lisbon")]), "It rains."]
    history: list[Any] = [user("How is Lisbon?")]
    with learning(agent, service.url) as block:
        message = ask(client, *history, tools=[TOOL]).choices[0].message
        history += [message, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "Rain."}]
        memory.teach(agent, "Lisbon is dry now, they say.")
        ask(client, *history, tools=[TOOL])
        history += [assistant("It rains."), user("Thanks for Lisbon.")]
        ask(client, *history, tools=[TOOL])
    first, second, third = (request.body["messages"] for request in vendor.requests)
    assert second[: len(first)] == first
    assert "they say" not in shown(second)
    assert "they say" in shown(third)
    assert memory.said(agent, block.session_id) == [
        ("user", "How is Lisbon?"),
        ("assistant", 'Let me see.\n\nCalls get_weather({"city": "Lisbon"})'),
        ("assistant", "get_weather returned: Rain."),
        ("assistant", "It rains."),
        ("user", "Thanks for Lisbon."),
        ("assistant", "Noted."),
    ]
    _, called, returned, answered, *_ = memory.messages(agent, block.session_id)
    assert called.metadata["tool_calls"][0]["name"] == "get_weather"
    assert called.metadata["model"] == MODEL
    assert returned.metadata["tool_result"]["name"] == "get_weather"
    assert answered.metadata == {"model": MODEL}


def test_images_are_named_and_the_text_next_to_them_is_the_query(service, vendor, client, memory, agent):
    memory.teach(agent, "The cat is called Tom.")
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    with learning(agent, service.url) as block:
        ask(client, {"role": "user", "content": [{"type": "text", "text": "Whose cat is this?"}, picture]})
        ask(client, {"role": "user", "content": [picture]})
    assert "Tom" in shown(vendor.requests[0].body)
    assert vendor.requests[1].body["messages"] == [{"role": "user", "content": [picture]}]
    messages = memory.messages(agent, block.session_id)
    assert [message.content for message in messages[::2]] == ["Whose cat is this?", "(image)"]
    assert messages[0].metadata == {"attachments": ["image"]}


def test_messages_from_an_iterator_are_sent_and_stored(service, vendor, client, memory, agent):
    memory.teach(agent, "The favourite colour is teal.")
    with learning(agent, service.url) as block:
        client.chat.completions.create(model=MODEL, messages=iter([user("Which colour is my favourite?")]))
    assert vendor.requests[0].body["messages"][-1] == user("Which colour is my favourite?")
    assert "teal" in shown(vendor.requests[0].body)
    assert len(memory.said(agent, block.session_id)) == 2


def test_messages_in_extra_body_are_read_and_get_context(service, vendor, client, memory, agent):
    memory.teach(agent, "The favourite colour is teal.")
    with learning(agent, service.url) as block:
        ask(client, "Overruled.", extra_body={"messages": [user("Which colour is my favourite?")], "seed": 7})
    assert vendor.requests[0].body["seed"] == 7
    assert vendor.requests[0].body["messages"][-1] == user("Which colour is my favourite?")
    assert "teal" in shown(vendor.requests[0].body)
    assert memory.said(agent, block.session_id)[0] == ("user", "Which colour is my favourite?")


def test_unstorable_characters_are_removed_from_stored_text(service, client, memory, agent):
    with learning(agent, service.url) as block:
        ask(client, "NUL: \0.")
        ask(client, "x" * 60_000)
        ask(client, "   ")
    assert memory.said(agent, block.session_id) == [
        ("user", "NUL: \ufffd."),
        ("assistant", "Noted."),
        ("user", "x" * 49_999 + "…"),
        ("assistant", "Noted."),
        ("assistant", "Noted."),
    ]


class Odd(dict[str, str]):
    """A message that only the SDK can read."""

    def get(self, *_: Any) -> Any:
        raise RuntimeError("odd")


def test_an_unreadable_request_is_sent_unchanged_with_a_warning(service, vendor, client, memory, agent, caplog):
    caplog.set_level(logging.WARNING, logger="souvenir_client")
    with learning(agent, service.url):
        body = {"model": MODEL, "messages": [Odd(user("Hello."))]}
        answer = client.post("/chat/completions", cast_to=ChatCompletion, body=body)
    assert answer.choices[0].message.content == "Noted."
    assert vendor.requests[0].body["messages"] == [user("Hello.")]
    assert [record.name for record in caplog.records] == ["souvenir_client"]
    assert memory.said(agent) == []


def test_a_tool_loop_with_server_side_history_gets_blocks_in_each_request(service, vendor, client, memory, agent):
    memory.client.blocks.create(agent_name=agent, label="human", value="Name: Alice")
    vendor.replies += [says("", calls=[call("get_weather", city="Lisbon")]), "It rains."]
    with learning(agent, service.url) as block:
        asked = client.responses.create(model=MODEL, input="How is Lisbon?", instructions="Be brief.")
        returned = {"type": "function_call_output", "call_id": asked.output[0].call_id, "output": "Rain."}
        client.responses.create(model=MODEL, input=[returned], previous_response_id=asked.id)
    first, second = (request.body for request in vendor.requests)
    assert first["instructions"].startswith("Be brief.")
    assert first["instructions"].endswith(second["instructions"])
    assert "Name: Alice" in second["instructions"]
    assert second["input"] == [returned]
    assert [content for _, content in memory.said(agent, block.session_id)] == [
        "How is Lisbon?",
        'Calls get_weather({"city": "Lisbon"})',
        "A tool returned: Rain.",
        "It rains.",
    ]


def test_calls_that_are_not_to_a_model_pass_unchanged(service, vendor, client, memory, agent):
    vendor.replies.append(fails(404))
    with learning(agent, service.url), pytest.raises(openai.NotFoundError):
        client.embeddings.create(model=MODEL, input="My name is Alice.")
    assert vendor.requests[0].body["input"] == "My name is Alice."
    assert memory.said(agent) == []


def methods() -> list[Any]:
    classes = (openai.OpenAI, openai.AsyncOpenAI, anthropic.Anthropic, anthropic.AsyncAnthropic)
    return [inspect.getattr_static(one, "request") for one in classes]


def test_the_original_methods_are_restored_after_the_last_block(service, agent):
    before = methods()
    with learning(agent, service.url):
        within = methods()
        assert all(one is not other for one, other in zip(within, before, strict=True))
        with pytest.raises(ZeroDivisionError), learning(agent, service.url):
            _ = 1 / 0
        assert methods() == within
    assert all(one is other for one, other in zip(methods(), before, strict=True))


def test_a_block_that_cannot_be_entered_changes_nothing(service):
    before = methods()
    with pytest.raises(ConnectionFailed, match="start it"), learning("nobody", f"http://127.0.0.1:{free_port()}"):
        raise AssertionError("was entered")
    with pytest.raises(InvalidRequest), learning("no/name", service.url):
        raise AssertionError("was entered")
    assert methods() == before


def test_a_method_replaced_after_ours_is_not_restored(service, client, memory, agent, monkeypatch):
    before = methods()[0]
    owner = next(one for one in openai.OpenAI.__mro__ if "request" in vars(one))
    seen = []
    with learning(agent, service.url):
        ours = methods()[0]

        def theirs(self: Any, *args: Any, **kwargs: Any) -> Any:
            seen.append(1)
            return ours(self, *args, **kwargs)

        monkeypatch.setattr(owner, "request", theirs)
    assert methods()[0] is theirs
    ask(client, "Outside.")
    with learning(agent, service.url):
        ask(client, "Inside.")
    assert len(seen) == 2
    assert memory.said(agent) == [("user", "Inside."), ("assistant", "Noted.")]
    monkeypatch.undo()
    with learning(agent, service.url):
        assert methods()[0] is ours
    assert methods()[0] is before


def test_calls_are_captured_after_a_foreign_patch_is_removed_inside_a_block(service, client, memory, agent):
    before = methods()[0]
    owner = next(one for one in openai.OpenAI.__mro__ if "request" in vars(one))
    block = learning(agent, service.url, session_id="one")

    def theirs(self: Any, *args: Any, **kwargs: Any) -> Any:
        return before(self, *args, **kwargs)

    with mock.patch.object(owner, "request", theirs):
        block.__enter__()
        ask(client, "First.")
    block.__exit__(None, None, None)
    assert methods()[0] is before
    with block:
        ask(client, "Second.")
    assert methods()[0] is before
    assert [content for _, content in memory.said(agent, "one")] == ["First.", "Noted.", "Second.", "Noted."]


def test_an_sdk_imported_inside_a_block_is_patched_and_none_is_imported_by_us(service, vendor, memory, agent):
    code = f"""
import sys
from souvenir_client import learning
with learning({agent!r}, {service.url!r}):
    assert "openai" not in sys.modules and "anthropic" not in sys.modules
    import openai
    client = openai.OpenAI(base_url="{vendor.url}/v1", api_key="x")
    client.chat.completions.create(model="m", messages=[{{"role": "user", "content": "Late."}}])
    assert "anthropic" not in sys.modules
    client.close()
assert not hasattr(openai.OpenAI.request, "__wrapped__")
assert all(type(finder).__module__ != "souvenir_client.interception.patches" for finder in sys.meta_path)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, env={"PYTHONPATH": str(CLIENT)})
    assert memory.said(agent) == [("user", "Late."), ("assistant", "Noted.")]


def test_the_key_is_sent_to_a_service_that_requires_one(tmp_path, client):
    service = RunningService(tmp_path / "data", api_key="secret-of-the-test")
    service.start()
    try:
        with pytest.raises(Unauthorized), learning("keyed", service.url):
            raise AssertionError("was entered")
        with learning("keyed", service.url, api_key="secret-of-the-test") as block:
            ask(client, "Hello.")
        assert block.agent == "keyed"
    finally:
        service.stop()


@pytest.mark.parametrize(
    "wrong",
    [
        {"session_id": "a/b"},
        {"session_id": ""},
        {"user": "a\nb"},
        {"timeout_s": 0},
        {"flush_timeout_s": -1},
        {"max_tokens": 63},
    ],
)
def test_invalid_arguments_are_refused_at_once(wrong):
    with pytest.raises(ValueError, match=r"must have|must be"):
        learning("agent", **wrong)
