"""Detection of new turns in a request: a table of cases, and simulated callers whose turns are each stored once."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from souvenir_client.interception.prefixes import KnownPrefixes, RequestState
from souvenir_client.interception.wires import Turn

CONVERSATION = ("agent", "session")


def u(text):
    return Turn("user", text)


def a(text, *calls):
    return Turn("assistant", text, {"tool_calls": [{"id": call, "name": "f", "arguments": ""} for call in calls]})


def t(call, text="42", name=""):
    return Turn("tool", text, {"tool_result": {"tool_call_id": call, "name": name}})


OK, FAILED, BROKEN = RequestState.ANSWERED, RequestState.ASKED, RequestState.ANSWERING

# Each case is the requests of one conversation: what is sent, what came of it, what of it is new.
CASES = {
    "one question": [([u("hi")], OK, ["hi"])],
    "a history at first sight is stored from the last user's turn on": [
        ([u("old"), a("old answer"), u("new")], OK, ["new"])
    ],
    "a tool loop at first sight is stored from its question on": [
        ([u("old"), a("answer"), u("weather?"), a("", "c1"), t("c1", "rain")], OK, ["weather?", "", "rain"])
    ],
    "the next request brings only what is new": [
        ([u("hi")], OK, ["hi"]),
        ([u("hi"), a("hello"), u("how are you?")], OK, ["how are you?"]),
        ([u("hi"), a("hello"), u("how are you?"), a("fine"), u("good")], OK, ["good"]),
    ],
    "a retry of a failed call brings nothing": [
        ([u("hi")], FAILED, ["hi"]),
        ([u("hi")], FAILED, []),
        ([u("hi")], OK, []),
        ([u("hi"), a("hello"), u("bye")], OK, ["bye"]),
    ],
    "a retry of a stream that broke brings nothing": [([u("hi")], BROKEN, ["hi"]), ([u("hi")], OK, [])],
    "the same said again is stored again": [
        ([u("yes")], OK, ["yes"]),
        ([u("yes"), a("sure?"), u("yes")], OK, ["yes"]),
        ([u("yes"), a("sure?"), u("yes"), a("really?"), u("yes")], OK, ["yes"]),
    ],
    "the same said again without a history is stored again, and its retry is not": [
        ([u("yes")], OK, ["yes"]),
        ([u("yes")], FAILED, ["yes"]),
        ([u("yes")], OK, []),
        ([u("yes")], OK, ["yes"]),
    ],
    "a failed call's question stays in the history": [
        ([u("one")], FAILED, ["one"]),
        ([u("one"), u("two")], OK, ["two"]),
    ],
    "what the caller answers in the place of a model that failed is stored": [
        ([u("one")], FAILED, ["one"]),
        ([u("one"), a("Sorry, try later."), u("two")], OK, ["Sorry, try later.", "two"]),
    ],
    "an answer that the caller changed is not stored again": [
        ([u("one")], OK, ["one"]),
        ([u("one"), a("(shortened)"), u("two")], OK, ["two"]),
    ],
    "the part of a broken answer that the caller keeps is not stored again": [
        ([u("one")], BROKEN, ["one"]),
        ([u("one"), a("the beginn"), u("two")], OK, ["two"]),
    ],
    "a tool loop brings each result once": [
        ([u("weather?")], OK, ["weather?"]),
        ([u("weather?"), a("", "c1"), t("c1", "rain")], OK, ["rain"]),
        ([u("weather?"), a("", "c1"), t("c1", "rain"), a("", "c2"), t("c2", "wind")], FAILED, ["wind"]),
        ([u("weather?"), a("", "c1"), t("c1", "rain"), a("", "c2"), t("c2", "wind")], OK, []),
    ],
    "results of tools that ran at once": [
        ([u("weather?")], OK, ["weather?"]),
        ([u("weather?"), a("", "c1", "c2"), t("c1", "rain"), t("c2", "wind")], OK, ["rain", "wind"]),
    ],
    "a tool's name that is seen only with the call makes no other turn of its result": [
        ([u("weather?")], OK, ["weather?"]),
        ([u("weather?"), a("", "c1"), t("c1", "rain", "get_weather")], FAILED, ["rain"]),
        ([u("weather?"), t("c1", "rain")], OK, []),
    ],
    "a history that was cut brings the last user's turn": [
        ([u("one")], OK, ["one"]),
        ([u("one"), a("1"), u("two")], OK, ["two"]),
        ([u("two"), a("2"), u("three")], OK, ["three"]),
    ],
    "a history that was put together anew brings the last user's turn": [
        ([u("one")], OK, ["one"]),
        ([u("Summary: one."), u("two")], OK, ["two"]),
    ],
    "a tool loop whose history is cut does not bring its question again": [
        ([u("one")], OK, ["one"]),
        ([u("one"), a("1"), u("weather?")], OK, ["weather?"]),
        ([u("weather?"), a("", "c1"), t("c1", "rain")], OK, ["rain"]),
        ([u("Summary"), u("weather?"), a("", "c1"), t("c1", "rain"), a("", "c2"), t("c2", "wind")], OK, ["wind"]),
    ],
    "calls that were made outside are stored with the next": [
        ([u("one")], OK, ["one"]),
        ([u("one"), a("1"), u("outside"), a("there"), u("two")], OK, ["outside", "there", "two"]),
    ],
    "a question that was edited is stored": [
        ([u("one")], OK, ["one"]),
        ([u("one"), a("1"), u("two")], OK, ["two"]),
        ([u("one"), a("1"), u("two, edited")], OK, ["two, edited"]),
    ],
    "what an assistant is made to begin with is no turn": [
        ([u("as JSON"), a("{")], FAILED, ["as JSON"]),
        ([u("as JSON"), a("{")], OK, []),
        ([u("as JSON"), a('{"a":')], OK, []),
    ],
    "results alone, where the vendor keeps the conversation": [
        ([u("weather?")], OK, ["weather?"]),
        ([t("c1", "rain")], FAILED, ["rain"]),
        ([t("c1", "rain")], OK, []),
        ([u("thanks")], OK, ["thanks"]),
    ],
    "other attachments are another turn": [
        ([Turn("user", "what is this?", {"attachments": ["image"]})], FAILED, ["what is this?"]),
        ([Turn("user", "what is this?", {"attachments": ["image", "image"]})], OK, ["what is this?"]),
    ],
    "nothing": [([], OK, [])],
}


@pytest.mark.parametrize("requests", CASES.values(), ids=CASES)
def test_new_turns_of_a_request_equal_its_case(requests):
    known = KnownPrefixes()
    for sent, outcome, new in requests:
        news = known.take(CONVERSATION, sent)
        assert [turn.content for turn in news.turns] == new
        if outcome is not FAILED:
            news.note(outcome)


def test_a_late_break_of_an_answer_does_not_undo_that_of_its_retry():
    known = KnownPrefixes()
    broken = known.take(CONVERSATION, [u("yes")])
    broken.note_unread(lambda: BROKEN)
    retry = known.take(CONVERSATION, [u("yes")])
    assert retry.turns == ()
    retry.note_unread(lambda: OK)
    broken.note_read()
    assert known.take(CONVERSATION, [u("yes")]).turns == (u("yes"),)
    retry.note_read()
    assert known.take(CONVERSATION, [u("yes")]).turns == ()


def test_conversations_are_isolated():
    known = KnownPrefixes()
    for conversation in (("a", "s"), ("b", "s"), ("a", "t"), ("as", "")):
        assert known.take(conversation, [u("hi")]).turns == (u("hi"),)


def test_the_least_recently_used_digests_are_evicted():
    known = KnownPrefixes(max_known=4)
    known.take(("old",), [u("hi")])
    known.take(("new",), [u("hi")])
    assert known.take(("new",), [u("hi")]).turns == ()
    known.take(("newest",), [u("hi")])
    assert known.take(("newest",), [u("hi")]).turns == ()
    assert known.take(("old",), [u("hi")]).turns == (u("hi"),)


def test_a_question_keeps_its_identity_within_its_tool_loop_only():
    known = KnownPrefixes()
    asked = known.take(CONVERSATION, [u("weather?")])
    first = known.take(CONVERSATION, [u("weather?"), a("", "c1"), t("c1")])
    cut = known.take(CONVERSATION, [u("x"), u("weather?"), a("", "c1"), t("c1"), a("", "c2"), t("c2")])
    assert asked.question == first.question == cut.question
    assert [news.in_loop for news in (asked, first, cut)] == [False, True, True]
    other = known.take(CONVERSATION, [u("weather?"), a("rain"), u("and now?")])
    assert other.question != asked.question
    assert not other.in_loop
    assert known.take(CONVERSATION, [t("c3")]).question is None


@dataclass
class Caller:
    """Sends its whole history with each call, as `chat` loops do, and knows what it said."""

    random: random.Random
    changes_answers: bool
    history: list[Turn] = field(default_factory=list)
    said: list[Turn] = field(default_factory=list)
    calls: int = 0

    def say(self):
        turn = u(self.random.choice(("yes", "no", "go on", "why?")))
        self.history.append(turn)
        self.said.append(turn)

    def hear(self):
        """An answer; at times it calls tools, whose results are then sent."""
        if self.random.random() < 0.4:
            ids = [f"c{self.calls + number}" for number in range(self.random.randint(1, 2))]
            self.calls += len(ids)
            results = [t(call, self.random.choice(("1", "2"))) for call in ids]
            self.history += [a("", *ids), *results]
            self.said += results
        else:
            self.history.append(a("ok" if not self.changes_answers else f"ok {self.random.random()}"))
            self.say()


@pytest.mark.parametrize("seed", range(60))
def test_each_turn_of_a_resent_history_is_stored_once(seed):
    chance = random.Random(seed)
    caller, known, told = Caller(chance, changes_answers=bool(seed % 2)), KnownPrefixes(), list[Turn]()
    caller.say()
    for _ in range(40):
        while True:
            news = known.take(CONVERSATION, list(caller.history))
            told += news.turns
            outcome = chance.choice((OK, OK, OK, FAILED, BROKEN))
            news.note(outcome)
            if outcome is OK:
                break
        assert told == caller.said
        caller.hear()
