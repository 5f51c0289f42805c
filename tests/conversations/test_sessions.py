"""Sessions: started, ended, found by name, or derived from the times of messages without a session."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from souvenir.conversations.messages import Conversations
from souvenir.conversations.sessions import Sessions
from souvenir.core.errors import AgentNotFound, NothingToDo, SessionEnded, SessionNotFound
from souvenir.memories.engine import MemoryEngine
from souvenir.store.messages.sessions import SessionFilter
from tests.conversations.talk import ANN, BEN, at, draft, say


def names(sessions: Sessions, **fields: object) -> list[str]:
    found, total = sessions.page(ANN, SessionFilter(**fields))  # type: ignore[arg-type]  # fields of one filter
    assert total == len(found)
    return [one.name for one in found]


def test_a_session_is_started_found_named_and_ended(sessions: Sessions):
    started = sessions.start(ANN, "s1", user="ann", title="Colours", metadata={"n": 1})
    assert (started.name, started.user, started.title, started.metadata) == ("s1", "ann", "Colours", {"n": 1})
    assert (started.implicit, started.ended_at, started.last_message_at, started.messages) == (False, None, None, 0)
    assert sessions.get(ANN, "s1") == started
    changed = sessions.change(ANN, "s1", title="Blues")
    assert (changed.title, changed.metadata) == ("Blues", {"n": 1})
    assert sessions.change(ANN, "s1", metadata={}).metadata == {}
    ended = sessions.end(ANN, "s1")
    assert ended.ended_at is not None
    assert sessions.end(ANN, "s1") == ended
    with pytest.raises(NothingToDo):
        sessions.change(ANN, "s1")


def test_a_session_without_a_name_gets_a_uuid(sessions: Sessions):
    assert uuid.UUID(sessions.start(ANN).name).version == 4


def test_starting_an_active_session_is_idempotent_and_an_ended_one_is_refused(sessions: Sessions):
    started = sessions.start(ANN, "s1", title="First")
    assert sessions.start(ANN, "s1", title="Second") == started
    sessions.end(ANN, "s1")
    with pytest.raises(SessionEnded):
        sessions.start(ANN, "s1")


def test_a_session_that_has_ended_takes_no_more_messages(conversations: Conversations, sessions: Sessions):
    say(conversations, "blue", session_id="s1")
    sessions.end(ANN, "s1")
    for store in (
        lambda: say(conversations, "red", session_id="s1"),
        lambda: conversations.append(ANN, "s1", [draft("red")]),
    ):
        with pytest.raises(SessionEnded):
            store()
    assert sessions.get(ANN, "s1").messages == 1


def test_a_missing_session_is_reported_and_not_created(sessions: Sessions):
    with pytest.raises(AgentNotFound):
        sessions.get(ANN, "s1")
    sessions.start(ANN, "s1")
    sessions.start(BEN, "of_ben")
    for ask in (sessions.get, sessions.end, lambda scope, name: sessions.change(scope, name, title="t")):
        with pytest.raises(SessionNotFound):
            ask(ANN, "of_ben")
    assert names(sessions) == ["s1"]


def test_messages_that_name_no_session_share_one_until_it_is_idle(conversations: Conversations, sessions: Sessions):
    stored = [say(conversations, f"m{n}", created_at=at(minutes)) for n, minutes in enumerate((0, 30, 60, 90.01))]
    of_each = [one.session_id for one in stored]
    assert of_each[0] == of_each[1] == of_each[2] != of_each[3]
    first = sessions.get(ANN, of_each[0])
    assert (first.implicit, first.started_at, first.last_message_at, first.messages) == (True, at(0), at(60), 3)


def test_imported_messages_are_grouped_into_sessions_by_date(conversations: Conversations, sessions: Sessions):
    say(conversations, "of today")
    minutes = (0, 1, 2, 600, 601, 5000)
    stored = conversations.add(ANN, [draft(f"m{n}", created_at=at(minute)) for n, minute in enumerate(minutes)])
    of_each = [one.session_id for one in stored]
    assert [of_each.index(session) for session in of_each] == [0, 0, 0, 3, 3, 5]
    assert names(sessions)[1:] == [of_each[5], of_each[3], of_each[0]]


def test_each_user_has_a_separate_active_session(conversations: Conversations):
    mine, theirs = say(conversations, "a", user="ann"), say(conversations, "b", user="ben")
    nobodys = say(conversations, "c")
    assert len({mine.session_id, theirs.session_id, nobodys.session_id}) == 3
    assert say(conversations, "d", user="ann").session_id == mine.session_id


def test_messages_without_a_session_do_not_join_a_started_one(conversations: Conversations, sessions: Sessions):
    sessions.start(ANN, "s1")
    say(conversations, "a", session_id="s1")
    assert say(conversations, "b").session_id != "s1"


def test_an_implicit_session_that_was_ended_is_followed_by_another(conversations: Conversations, sessions: Sessions):
    first = say(conversations, "a")
    sessions.end(ANN, first.session_id)
    assert say(conversations, "b").session_id != first.session_id


def test_the_idle_time_of_sessions_is_configurable(engine: MemoryEngine):
    conversations = Conversations(engine, idle=timedelta(minutes=1))
    assert (
        say(conversations, "a", created_at=at(0)).session_id != say(conversations, "b", created_at=at(1.1)).session_id
    )


def test_a_message_creates_its_named_session_at_its_own_time(conversations: Conversations, sessions: Sessions):
    say(conversations, "a", session_id="old", user="ann", created_at=at(5))
    made = sessions.get(ANN, "old")
    assert (made.implicit, made.started_at, made.user) == (False, at(5), "ann")
    say(conversations, "b", session_id="old", created_at=at(1))
    again = sessions.get(ANN, "old")
    assert (again.started_at, again.last_message_at) == (at(1), at(5))


def test_sessions_are_listed_newest_first_by_user_and_by_whether_they_have_ended(
    conversations: Conversations, sessions: Sessions
):
    for number, user in enumerate(("ann", "ben", "ann")):
        say(conversations, "m", session_id=f"s{number}", user=user, created_at=at(number))
    sessions.end(ANN, "s0")
    assert names(sessions) == ["s2", "s1", "s0"]
    assert names(sessions, user="ann") == ["s2", "s0"]
    assert names(sessions, user="ann", open=True) == ["s2"]
    assert names(sessions, open=False) == ["s0"]
    page, total = sessions.page(ANN, SessionFilter(), offset=1, limit=1)
    assert ([one.name for one in page], total) == (["s1"], 3)
