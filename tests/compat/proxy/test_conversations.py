"""What is new in a request: histories, tool loops, retries, conversations that the vendor stores, and other doors."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.models import MODEL, assistant, user
from tests.compat.proxy.conftest import Proxied
from tests.vendors.llm import call, fails, says

WEATHER = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


def test_a_conversation_is_stored_once_although_each_call_sends_all_of_it(proxied: Proxied):
    history: list[Any] = []
    for number in range(4):
        history.append(user(f"Question {number}"))
        proxied.vendor.replies.append(f"Answer {number}")
        proxied.ask(*history, x_souvenir_session="one")
        history.append(assistant(f"Answer {number}"))
    expected = [
        (role, f"{name} {number}")
        for number in range(4)
        for role, name in (("user", "Question"), ("assistant", "Answer"))
    ]
    assert proxied.said("one") == expected


def test_a_retry_is_stored_once_and_a_repeated_message_again(proxied: Proxied):
    proxied.vendor.replies.append(fails(500))
    assert proxied.ask("Hello", x_souvenir_session="one").status_code == 500
    assert proxied.ask("Hello", x_souvenir_session="one").status_code == 200
    assert proxied.said("one") == [("user", "Hello"), ("assistant", "Noted.")]
    assert proxied.ask("Hello", x_souvenir_session="one").status_code == 200
    assert proxied.said("one") == 2 * [("user", "Hello"), ("assistant", "Noted.")]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
def test_a_tool_loop_keeps_its_context_and_stores_calls_and_results(proxied: Proxied, stream: bool):
    proxied.memory.teach(proxied.agent, "I live in Lisbon, and ask about the weather there.")
    proxied.vendor.replies.append(says("", calls=[call("get_weather", city="Lisbon")]))
    question = user("How is the weather where I live?")
    with proxied.openai(default_headers={"X-Souvenir-Session": "loop"}) as client:
        options: dict[str, Any] = {"model": MODEL, "tools": [WEATHER], "stream": stream}
        first = client.chat.completions.create(messages=[question], **options)
        if stream:
            [called] = [part for chunk in first for one in chunk.choices for part in one.delta.tool_calls or ()][:1]
        else:
            [called] = first.choices[0].message.tool_calls
        assert called.function.name == "get_weather"
        asked = {
            "id": "call_1",
            "type": "function",
            "function": {"name": "get_weather", "arguments": '{"city": "Lisbon"}'},
        }
        result = {"role": "tool", "tool_call_id": "call_1", "content": "Sunny, 31 degrees."}
        turns: list[Any] = [question, {"role": "assistant", "content": None, "tool_calls": [asked]}, result]
        proxied.memory.teach(proxied.agent, "What was said meanwhile about the weather where I live.")
        second = client.chat.completions.create(messages=turns, **options)
        if stream:
            list(second)
    contexts = [request.body["messages"][0] for request in proxied.vendor.requests]
    assert contexts[0] == contexts[1]
    assert "Lisbon" in contexts[0]["content"]
    proxied.ask("Anything", x_souvenir_session="later")  # by now the answer of the stream is stored, too
    assert [content for _, content in proxied.said("loop")] == [
        "How is the weather where I live?",
        'Calls get_weather({"city": "Lisbon"})',
        "get_weather returned: Sunny, 31 degrees.",
        "Noted.",
    ]


@pytest.mark.parametrize("change", ["message", "block"])
def test_a_tool_loop_does_not_show_again_what_was_deleted_meanwhile(proxied: Proxied, change: str):
    client = proxied.memory.client
    proxied.memory.teach(proxied.agent, "My dentist is Dr Weber in Linz.")
    client.blocks.create(agent_name=proxied.agent, label="human", value="Has a key under the mat.")
    question = user("Who is my dentist?")
    proxied.ask(question, x_souvenir_session="loop")
    first = str(proxied.vendor.requests[-1].body)
    assert "Weber" in first
    assert "the mat" in first
    if change == "message":
        for message in proxied.memory.messages(proxied.agent, "before"):
            client.messages.delete(proxied.agent, message.id)
    else:
        client.blocks.delete(proxied.agent, "human")
    asked = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "Nothing found."}
    loop: list[Any] = [question, {"role": "assistant", "content": None, "tool_calls": [asked]}, result]
    proxied.ask(*loop, x_souvenir_session="loop")
    second = str(proxied.vendor.requests[-1].body)
    assert ("Weber" in second) is (change == "block")
    assert ("the mat" in second) is (change == "message")


def test_a_conversation_that_the_vendor_stores_is_one_session(proxied: Proxied):
    answers = iter(("resp_first", "resp_second", "resp_third"))

    def decide(request: Any) -> Any:
        return says("Noted.", response_id=next(answers))

    proxied.vendor.script(decide)
    with proxied.openai() as client:
        first = client.responses.with_raw_response.create(model=MODEL, input="My cat is called Otto.")
        previous = first.parse().id
        second = client.responses.with_raw_response.create(
            model=MODEL, input="What is it called?", previous_response_id=previous
        )
        named = client.responses.with_raw_response.create(model=MODEL, input="Hello", conversation="conv_7")
    assert first.headers["x-souvenir-session"] == second.headers["x-souvenir-session"]
    assert named.headers["x-souvenir-session"] == "conv_7"
    session = first.headers["x-souvenir-session"]
    assert [content for _, content in proxied.said(session)] == [
        "My cat is called Otto.",
        "Noted.",
        "What is it called?",
        "Noted.",
    ]


def test_changed_blocks_go_into_the_next_request_of_a_loop_that_the_vendor_stores(proxied: Proxied):
    client = proxied.memory.client
    client.blocks.create(agent_name=proxied.agent, label="human", value="Lives in Linz.")
    with proxied.openai() as openai:
        openai.responses.create(model=MODEL, input="Where do I live?")
        assert "Linz" in proxied.vendor.requests[-1].body["instructions"]
        client.blocks.update(proxied.agent, "human", value="Lives in Graz.")
        result: Any = [{"type": "function_call_output", "call_id": "call_1", "output": "Nothing."}]
        openai.responses.create(model=MODEL, input=result, previous_response_id="resp_1")
    assert "Graz" in proxied.vendor.requests[-1].body["instructions"]
    assert proxied.vendor.requests[-1].body["input"] == result


def test_a_picture_without_a_word_gets_the_blocks(proxied: Proxied):
    proxied.memory.client.blocks.create(agent_name=proxied.agent, label="human", value="Lives in Linz.")
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert proxied.ask({"role": "user", "content": [picture]}).headers["x-souvenir-context"] == "added"
    assert "Linz" in str(proxied.vendor.requests[-1].body)
    assert proxied.said() == [("user", "(image)"), ("assistant", "Noted.")]


def test_what_goes_in_by_the_proxy_comes_out_by_the_other_doors(proxied: Proxied):
    proxied.ask("My dentist is Dr Weber in Linz.", x_souvenir_session="one")
    proxied.indexed()
    found = proxied.memory.client.messages.search(agent_name=proxied.agent, query="Who is my dentist?")
    assert "Dr Weber" in found[0].content
    context = proxied.memory.client.context.build(proxied.agent, query="Who is my dentist?")
    assert "Dr Weber" in context.text


def test_what_another_door_erased_is_not_shown_again(proxied: Proxied):
    proxied.ask("My dentist is Dr Weber in Linz.", x_souvenir_session="one")
    proxied.indexed()
    proxied.ask("Who is my dentist?", x_souvenir_session="two")
    assert "Weber" in str(proxied.vendor.requests[-1].body)
    for message in proxied.memory.messages(proxied.agent, "one"):
        proxied.memory.client.messages.delete(proxied.agent, message.id)
    proxied.ask("Who is my dentist?", x_souvenir_session="three")
    assert "Weber" not in str(proxied.vendor.requests[-1].body)
