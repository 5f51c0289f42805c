"""Operations on messages: stored completely and in order, searchable at once, filtered before ranking."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from souvenir.conversations.agents import Agents
from souvenir.conversations.message_search import MessageQuery
from souvenir.conversations.messages import Conversations
from souvenir.conversations.sessions import Sessions
from souvenir.core.errors import (
    AgentNotFound,
    EmbeddingUnavailable,
    MessageNotFound,
    NothingToDo,
    SessionEnded,
    SessionNotFound,
)
from souvenir.core.settings import Settings
from souvenir.core.types import FloatVector, MemoryDraft, MessageRole, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.store.messages.messages import MessageDraft, MessageFilter
from tests.conversations.talk import ANN, BEN, NOON, BrokenEmbedder, at, draft, found, listed, say
from tests.fake_embedder import FakeEmbedder


def test_a_message_is_stored_with_all_its_fields(conversations: Conversations, engine: MemoryEngine):
    stored = say(
        conversations,
        "I love blue",
        metadata={"n": 1},
        session_id="s1",
        user="ann",
        speaker="Ann",
        created_at=NOON,
    )
    assert uuid.UUID(stored.uid).version == 4
    assert stored.agent_uid == Agents(engine).get(ANN).uid
    assert (stored.role, stored.content, stored.metadata) == (MessageRole.USER, "I love blue", {"n": 1})
    assert (stored.session_id, stored.position, stored.user, stored.speaker) == ("s1", 0, "ann", "Ann")
    assert (stored.created_at, stored.edited_at) == (NOON, None)
    assert conversations.get(ANN, stored.uid) == stored


def test_a_message_is_found_immediately_by_words_and_speaker(conversations: Conversations):
    say(conversations, "the weather is fine")
    say(conversations, "my favourite colour is blue", speaker="Ann")
    assert found(conversations, "favourite colour", limit=1) == ["my favourite colour is blue"]
    assert found(conversations, "Ann", limit=1) == ["my favourite colour is blue"]
    [hit, *_] = conversations.search(ANN, MessageQuery("Ann: my favourite colour is blue")).hits
    assert hit.similarity == pytest.approx(1.0)


def test_searches_of_messages_and_memories_are_separate(conversations: Conversations, engine: MemoryEngine):
    say(conversations, "blue whale")
    engine.add(ANN, MemoryDraft("blue moon", "notes"))
    assert found(conversations, "blue") == ["blue whale"]
    assert [hit.memory.text for hit in engine.search(ANN, SearchQuery("blue")).hits] == ["blue moon"]
    assert engine.count(ANN) == 1


def test_a_batch_keeps_its_order_and_the_times_that_it_names(conversations: Conversations):
    times = [at(5), at(3), None, at(4)]
    drafts = [draft(f"m{number}", session_id="s", created_at=time) for number, time in enumerate(times)]
    stored = conversations.add(ANN, drafts)
    assert [one.content for one in stored] == ["m0", "m1", "m2", "m3"]
    assert [one.position for one in stored] == [0, 1, 2, 3]
    assert [one.created_at for one in stored if one.content != "m2"] == [at(5), at(3), at(4)]
    assert [one.content for one in conversations.of_session(ANN, "s")[0]] == ["m0", "m1", "m2", "m3"]
    assert listed(conversations) == ["m2", "m0", "m3", "m1"]


def test_a_batch_that_cannot_be_stored_whole_is_not_stored_at_all(conversations: Conversations, sessions: Sessions):
    say(conversations, "before", session_id="over")
    sessions.end(ANN, "over")
    drafts = [draft(f"m{number}", session_id="over" if number == 499 else "new") for number in range(1000)]
    with pytest.raises(SessionEnded):
        conversations.add(ANN, drafts)
    assert listed(conversations) == ["before"]
    assert found(conversations, "m3") == ["before"]
    with pytest.raises(SessionNotFound):
        sessions.get(ANN, "new")


def test_nothing_is_stored_while_the_model_cannot_run(conversations: Conversations, engine: MemoryEngine):
    say(conversations, "before")
    assert engine.models.reload(BrokenEmbedder())
    with pytest.raises(EmbeddingUnavailable):
        say(conversations, "lost")
    assert listed(conversations) == ["before"]


class SilentEmbedder(BrokenEmbedder):
    """Cannot embed what is asked either."""

    def embed_query(self, text: str) -> FloatVector:
        raise EmbeddingUnavailable("The model is gone")


def test_without_the_model_only_word_matches_are_found(conversations: Conversations, engine: MemoryEngine):
    user = MessageRole.USER
    drafts = [
        MessageDraft(user, text, session_id=session, speaker="Ann")
        for session, text in [("one", "the harbour was full"), ("two", "bread is in the oven now")]
    ]
    conversations.add(ANN, drafts)
    assert engine.models.reload(SilentEmbedder())
    found = conversations.search(ANN, MessageQuery("which harbour"))
    assert [hit.message.content for hit in found.hits] == ["the harbour was full"]
    assert found.degraded == ("vector",)


def test_a_page_is_newest_first_with_the_filtered_total(conversations: Conversations):
    for number in range(5):
        say(conversations, f"m{number}", created_at=at(number))
    page, total = conversations.page(ANN, MessageFilter(), offset=1, limit=2)
    assert ([one.content for one in page], total) == (["m3", "m2"], 5)


FILTERS = [
    ({"session_id": "s1"}, {"a", "b"}),
    ({"session_id": "nowhere"}, set()),
    ({"user": "ben"}, {"c"}),
    ({"user": "nobody"}, set()),
    ({"role": MessageRole.ASSISTANT}, {"b"}),
    ({"since": at(2)}, {"b", "c"}),
    ({"until": at(2)}, {"a", "b"}),
    ({"since": at(2), "until": at(2), "user": "ann"}, {"b"}),
]


@pytest.mark.parametrize(("fields", "expected"), FILTERS)
def test_filters_apply_to_lists_and_searches(conversations: Conversations, fields, expected):
    say(conversations, "blue a", session_id="s1", user="ann", created_at=at(1))
    say(conversations, "blue b", role=MessageRole.ASSISTANT, session_id="s1", user="ann", created_at=at(2))
    say(conversations, "blue c", session_id="s2", user="ben", created_at=at(3))
    wanted = {f"blue {letter}" for letter in expected}
    assert set(listed(conversations, **fields)) == wanted
    assert set(found(conversations, "blue", **fields)) == wanted


def test_a_hundred_better_hits_elsewhere_do_not_hide_the_one_in_the_session(conversations: Conversations):
    conversations.add(ANN, [draft("blue blue", session_id="loud", user="ben") for _ in range(600)])
    say(conversations, "something blue among other things that are not", session_id="quiet", user="ann")
    quiet = ["something blue among other things that are not"]
    assert found(conversations, "blue", limit=5, session_id="quiet") == quiet
    assert found(conversations, "blue", limit=5, user="ann") == quiet
    assert found(conversations, "blue", limit=5, exclude_session_id="loud") == quiet


def test_an_excluded_session_need_not_exist(conversations: Conversations):
    say(conversations, "blue")
    assert found(conversations, "blue", exclude_session_id="nowhere") == ["blue"]


def test_messages_on_excluded_topics_are_not_found(conversations: Conversations):
    for topics in (["health"], ["legal", "health"], ["legal"], []):
        say(conversations, f"blue {topics}", metadata={"sensitive_topics": topics})
    say(conversations, "blue plain")
    assert set(found(conversations, "blue", without_topics=("health",))) == {"blue ['legal']", "blue []", "blue plain"}
    assert len(found(conversations, "blue")) == 5


def test_an_edited_message_is_found_by_its_new_content_only(conversations: Conversations):
    stored = say(conversations, "I love blue", speaker="Ann", session_id="s", metadata={"n": 1})
    say(conversations, "and I love cats", session_id="s")
    edited = conversations.edit(ANN, stored.uid, content="I love green")
    assert edited.edited_at is not None
    assert (edited.content, edited.metadata, edited.position) == ("I love green", {"n": 1}, 0)
    assert conversations.get(ANN, stored.uid) == edited
    assert found(conversations, "green", limit=1) == ["I love green"]
    assert "I love blue" not in found(conversations, "blue")


def test_new_metadata_replaces_the_old_and_keeps_the_content(conversations: Conversations):
    stored = say(conversations, "I love blue", metadata={"a": 1})
    assert conversations.edit(ANN, stored.uid, metadata={"b": 2}).metadata == {"b": 2}
    assert found(conversations, "blue") == ["I love blue"]


def test_an_empty_change_or_a_missing_message_is_refused(conversations: Conversations):
    stored = say(conversations, "blue")
    with pytest.raises(NothingToDo):
        conversations.edit(ANN, stored.uid)
    with pytest.raises(MessageNotFound):
        conversations.edit(ANN, "nowhere", content="red")
    say(conversations, "red", scope=BEN)
    with pytest.raises(MessageNotFound):
        conversations.edit(BEN, stored.uid, content="red")
    assert listed(conversations) == ["blue"]


def test_reading_an_unknown_agent_does_not_create_it(conversations: Conversations, engine: MemoryEngine):
    with pytest.raises(AgentNotFound):
        conversations.search(ANN, MessageQuery("blue"))
    with pytest.raises(AgentNotFound):
        conversations.page(ANN, MessageFilter())
    with pytest.raises(AgentNotFound):
        conversations.edit(ANN, "m", content="blue")
    assert Agents(engine).page(only=None, prefix="", offset=0, limit=10) == ([], 0)


def test_neighbours_are_adjacent_messages_of_the_session_without_duplicates(conversations: Conversations):
    stored = [say(conversations, f"m{n}", session_id="even" if n % 2 == 0 else "odd") for n in range(12)]
    around = conversations.neighbours(ANN, [stored[4], stored[6], stored[11]], before=1, after=2)
    assert [one.content for one in around] == ["m2", "m4", "m6", "m8", "m10", "m9", "m11"]


def test_a_message_has_the_user_of_its_session_by_default(conversations: Conversations, sessions: Sessions):
    sessions.start(ANN, "s", user="ann")
    say(conversations, "hello", session_id="s", role=MessageRole.ASSISTANT)
    say(conversations, "hi", session_id="s", user="ben")
    assert listed(conversations, user="ann") == ["hello"]
    assert listed(conversations, user="ben") == ["hi"]
    assert [(one.name, one.messages) for one in sessions.users(ANN)[0]] == [("ann", 1), ("ben", 1)]


def test_a_long_message_is_found_by_each_of_its_parts(conversations: Conversations):
    words = " ".join(f"word{number}" for number in range(500))
    say(conversations, words)
    say(conversations, "short")
    assert found(conversations, "word490 word491", limit=1) == [words]


def test_concurrent_writers_lose_nothing_and_positions_have_no_gaps(conversations: Conversations):
    writers, each = 32, 10

    def write(writer: int) -> None:
        for number in range(each):
            say(conversations, f"w{writer} n{number}", session_id=f"s{writer % 4}")

    with ThreadPoolExecutor(writers) as threads:
        list(threads.map(write, range(writers)))
    for session in range(4):
        messages, total = conversations.of_session(ANN, f"s{session}", limit=1000)
        assert total == writers * each // 4
        assert [one.position for one in messages] == list(range(total))
        for writer in range(session, writers, 4):
            own = [one.content for one in messages if one.content.startswith(f"w{writer} ")]
            assert own == [f"w{writer} n{number}" for number in range(each)]


def test_agents_share_session_and_user_names_without_sharing_messages(conversations: Conversations):
    for scope in (ANN, BEN):
        say(conversations, f"of {scope.actor}", scope=scope, session_id="s", user="u")
    assert listed(conversations, session_id="s", user="u") == ["of ann"]
    assert found(conversations, "of ann", scope=BEN, session_id="s", user="u") == ["of ben"]


def test_messages_persist_when_the_store_is_reopened(settings: Settings):
    for expected in ([], ["blue"]):
        engine = MemoryEngine.open(settings, FakeEmbedder())
        conversations = Conversations(engine)
        if not expected:
            conversations.add(Scope("a"), [MessageDraft(MessageRole.USER, "blue")])
        else:
            assert listed(conversations, Scope("a")) == expected
            assert found(conversations, "blue", Scope("a")) == expected
        engine.close()
