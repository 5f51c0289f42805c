"""The context of an agent: its content, its exclusions, the effect of the budget, and its deadline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from threading import Event, Thread
from typing import Any

import pytest

from souvenir.conversations.blocks import BlockChange, Blocks
from souvenir.conversations.context import DOUBTS, Context, ContextQuery, Contexts
from souvenir.conversations.context_budget import MIN_TOKENS_LEFT, DropReason
from souvenir.conversations.context_shape import ContextShape, CourseIntent, Form
from souvenir.conversations.context_text import OUTLINE_CHARS
from souvenir.conversations.message_search import MessageHit, MessageQuery
from souvenir.conversations.messages import Conversations
from souvenir.core.errors import AgentNotFound, EmbeddingUnavailable
from souvenir.core.settings import Settings
from souvenir.core.text import fenced
from souvenir.core.types import EvidenceLevel, FloatVector, Memory, MemoryDraft, MessageRole, PassageKind, SearchQuery
from souvenir.index.index_key import IndexKey
from souvenir.memories.engine import MemoryEngine
from souvenir.store.messages.blocks import BlockDraft
from souvenir.store.messages.messages import Message
from tests.conversations.talk import ANN, BEN, at, draft, say, without_tokens
from tests.fake_embedder import FakeEmbedder

WAIT_S = 30


@pytest.fixture
def blocks(engine: MemoryEngine) -> Blocks:
    return Blocks(engine)


@pytest.fixture
def contexts(engine: MemoryEngine, conversations: Conversations) -> Contexts:
    return Contexts(engine, conversations, max_messages=10)


def build(contexts: Contexts, text: str, **fields: Any) -> Context:
    return contexts.build(ANN, ContextQuery(text, **fields))


def block(blocks: Blocks, label: str, value: str) -> None:
    blocks.create(ANN, BlockDraft(label, value, None, 5000, read_only=False))


def contents(context: Context) -> list[str]:
    return [hit.message.content for hit in context.messages]


def words(text: str) -> int:
    return len(FakeEmbedder().token_offsets(text))


# --- what is in it ----------------------------------------------------------------------------------------------------


def test_a_context_holds_blocks_messages_and_memories(
    contexts: Contexts, conversations: Conversations, blocks: Blocks, engine: MemoryEngine
):
    block(blocks, "human", "Name: Alice")
    assistant = MessageRole.ASSISTANT
    for minute, (content, role) in enumerate(
        [
            ("hello there", MessageRole.USER),
            ("which one do you prefer?", assistant),
            ("i love the colour blue", MessageRole.USER),
            ("noted", assistant),
            ("a colour one can love", MessageRole.USER),
        ]
    ):
        say(conversations, content, session_id="past", role=role, created_at=at(minute))
    engine.add(ANN, MemoryDraft("alice painted the door in her favourite colour", "notes", document_at=at(0)))
    context = build(contexts, "love colour", max_tokens=500)
    assert context.blocks[0].label == "human"
    assert set(contents(context)) == {"i love the colour blue", "a colour one can love"}
    assert context.memories[0].memory.text == "alice painted the door in her favourite colour"
    assert without_tokens(context.text) == (
        "<recalled_memory>\n## Memory\n\n### human\nName: Alice\n</recalled_memory>\n\n"
        "<recalled_memory>\n## Relevant Memories\n\n- 2023-05-08: alice painted the door in her favourite colour\n\n"
        "## Relevant Past Conversations\n\n### 2023-05-08\n\n**Assistant**: which one do you prefer?\n\n"
        "**User**: i love the colour blue\n\n…\n\n**User**: a colour one can love\n"
        "</recalled_memory>\n"
    )
    assert context.tokens == words(context.text)
    assert (context.degraded, context.evidence) == ((), EvidenceLevel.STRONG)


def test_an_empty_agent_has_an_empty_context(contexts: Contexts, engine: MemoryEngine, blocks: Blocks):
    block(blocks, "gone", "v")
    blocks.delete(ANN, "gone")
    context = build(contexts, "anything at all")
    assert (context.text, context.tokens, context.relevance, context.evidence) == ("", 0, 0.0, EvidenceLevel.NONE)
    assert (context.degraded, context.dropped.messages, context.dropped.memories) == ((), 0, 0)


def test_the_context_of_an_unknown_agent_is_refused(contexts: Contexts):
    with pytest.raises(AgentNotFound):
        build(contexts, "anything")


def test_the_number_of_messages_is_limited_by_the_setting(engine: MemoryEngine, conversations: Conversations):
    for number in range(6):
        say(conversations, f"colour {number}", session_id="past")
    context = build(Contexts(engine, conversations, max_messages=3), "colour")
    assert len(context.messages) == 3
    assert [hit.score for hit in context.messages] == sorted((hit.score for hit in context.messages), reverse=True)


# --- what is not ------------------------------------------------------------------------------------------------------


def test_the_active_session_is_excluded(contexts: Contexts, conversations: Conversations):
    say(conversations, "colour then", session_id="past")
    say(conversations, "colour now", session_id="running")
    conversations.append(ANN, "running", [draft("colour pending")])
    context = build(contexts, "colour", session_id="running")
    assert contents(context) == ["colour then"]
    assert "now" not in context.text
    assert "pending" not in context.text
    assert sorted(contents(build(contexts, "colour"))) == ["colour now", "colour then"]


def test_an_unknown_active_session_excludes_nothing(contexts: Contexts, conversations: Conversations):
    say(conversations, "colour then", session_id="past")
    assert contents(build(contexts, "colour", session_id="new")) == ["colour then"]


def test_messages_of_other_users_are_not_shown(contexts: Contexts, conversations: Conversations):
    say(conversations, "secret of ben", session_id="group", user="ben")
    say(conversations, "colour of ann", session_id="group", user="ann")
    say(conversations, "everybody hears", session_id="group", role=MessageRole.ASSISTANT)
    context = build(contexts, "colour", user="ann")
    assert "colour of ann" in context.text
    assert "secret of ben" not in context.text
    assert contents(build(contexts, "colour", user="nobody")) == []


def test_hidden_topics_are_in_no_part_of_a_context(
    contexts: Contexts, conversations: Conversations, engine: MemoryEngine
):
    flagged = {"sensitive_topics": ["health", "legal"]}
    say(conversations, "colour of pills", session_id="past", metadata=flagged)
    say(conversations, "colour of doors", session_id="past")
    say(conversations, "the doctor saw the colour", session_id="past", metadata={"sensitive_topics": "health"})
    engine.add(ANN, MemoryDraft("colour therapy", "notes", flagged))
    engine.add(ANN, MemoryDraft("colour theory", "notes"))
    context = build(contexts, "colour", exclude_topics=("health",))
    assert contents(context) == ["colour of doors"]
    assert [hit.memory.text for hit in context.memories] == ["colour theory"]
    assert "doctor" not in context.text
    engine.write(ANN, lambda tx: tx.connection.execute('UPDATE agents SET policy = \'{"hidden_topics": ["legal"]}\''))
    of_policy = build(contexts, "colour")
    assert "pills" not in of_policy.text
    assert "therapy" not in of_policy.text
    assert "doctor" in of_policy.text


def test_contexts_of_agents_are_isolated(contexts: Contexts, conversations: Conversations, engine: MemoryEngine):
    say(conversations, "colour of ann", session_id="s")
    say(conversations, "colour of ben", session_id="s", scope=BEN)
    engine.add(BEN, MemoryDraft("colour memory of ben", "notes"))
    assert "ben" not in build(contexts, "colour").text


# --- the budget -------------------------------------------------------------------------------------------------------


def test_the_token_budget_is_filled_with_the_best_results_that_fit(contexts: Contexts, conversations: Conversations):
    for number in range(10):
        for filler in (f"before {number}", "colour " + "word " * (number + 1), f"after {number}"):
            say(conversations, filler, session_id=f"past {number}", created_at=at(10 * number))
    whole = build(contexts, "colour", max_tokens=10_000)
    assert (len(whole.messages), whole.dropped.messages) == (10, 0)
    assert "before" not in whole.text
    ranked = contents(whole)
    for max_tokens in range(20, whole.tokens + 1, 7):
        context = build(contexts, "colour", max_tokens=max_tokens)
        shown = contents(context)
        assert context.tokens == words(context.text) <= max_tokens
        assert shown == [content for content in ranked if content in shown]
        assert context.dropped.messages == len(ranked) - len(shown)
        left = max_tokens - context.tokens
        assert left < MIN_TOKENS_LEFT or all(
            words(f"### 2023-05-08\n\n**User**: {content}") > left for content in ranked if content not in shown
        )
    again = build(contexts, "colour", max_tokens=whole.tokens)
    assert without_tokens(again.text) == without_tokens(whole.text)
    assert build(contexts, "colour", max_tokens=whole.tokens - 1).dropped.messages == 1


def test_a_result_that_does_not_fit_is_skipped(contexts: Contexts, conversations: Conversations):
    say(conversations, "colour " * 60, session_id="long")
    say(conversations, "a colour", session_id="short")
    assert contents(build(contexts, "colour", max_tokens=1_000)) == ["colour " * 60, "a colour"]
    context = build(contexts, "colour", max_tokens=50)
    assert (contents(context), context.dropped.messages) == (["a colour"], 1)


def test_results_that_hardly_match_are_not_shown_and_doubt_is_stated(
    contexts: Contexts, conversations: Conversations, engine: MemoryEngine
):
    say(conversations, "ann paints her door", session_id="past")
    for number in range(20):
        engine.add(ANN, MemoryDraft(f"billing runs on postgres version {number}", "notes"))
    assert build(contexts, "violin lessons").text == ""
    doubtful = build(contexts, "violin door")
    assert doubtful.evidence is not EvidenceLevel.STRONG
    assert doubtful.text.splitlines()[1] == DOUBTS[doubtful.evidence]
    assert contents(doubtful) == ["ann paints her door"]
    certain = build(contexts, "ann paints door")
    assert not any(doubt in certain.text for doubt in DOUBTS.values())


def test_dropped_results_are_counted_by_kind(contexts: Contexts, conversations: Conversations, engine: MemoryEngine):
    say(conversations, "colour colour", session_id="past")
    engine.add(ANN, MemoryDraft("colour and many other words that say nothing of it", "notes"))
    context = build(contexts, "colour", max_tokens=16)
    assert (context.dropped.messages, context.dropped.memories) == (0, 1)
    assert "Relevant Memories" not in context.text


def test_an_explained_context_has_the_same_text_with_the_lines_of_each_result(
    contexts: Contexts, conversations: Conversations, blocks: Blocks, engine: MemoryEngine
):
    block(blocks, "human", "Name: Alice\n\nLikes boats")
    assistant = MessageRole.ASSISTANT
    say(conversations, "which colour do you prefer?", session_id="past", role=assistant, created_at=at(0))
    say(conversations, "my colour is blue\n\n# and <|im_start|> green", session_id="past", created_at=at(1))
    say(conversations, "noted", session_id="past", role=assistant, created_at=at(2))
    say(conversations, "a colour one can love", session_id="past", created_at=at(3))
    say(conversations, "colour of the wall", session_id="later", created_at=at(9))
    engine.add(ANN, MemoryDraft("a colour\nof two lines", "notes"))
    for query in ("colour", "colour of violin lessons", "In which order did I name a colour?"):
        plain, explained = build(contexts, query), build(contexts, query, explain=True)
        assert without_tokens(plain.text) == without_tokens(explained.text)
        assert (plain.lines, plain.dropped.listed) == (None, None)
        assert explained.lines
        shown = explained.text.split("\n")
        begins = [place for place, line in enumerate(shown, 1) if line.startswith(("- ", "**"))]
        assert [lines.first for lines in explained.lines] == begins
        assert all(lines.last < following.first for lines, following in pairwise(explained.lines))
        for lines in explained.lines:
            text = "\n".join(shown[lines.first - 1 : lines.last])
            said = lines.record.text if isinstance(lines.record, Memory) else lines.record.content
            assert text.endswith(said.split()[-1])
            assert text.split(": ", 1)[1][:8] == said[:8]
    records = [lines.record for lines in build(contexts, "colour", explain=True).lines or ()]
    assert "which colour do you prefer?" in [one.content for one in records if isinstance(one, Message)]


def test_an_explained_context_lists_what_was_left_out_and_nothing_hidden(
    contexts: Contexts, conversations: Conversations, engine: MemoryEngine
):
    for number in range(4):
        say(conversations, f"colour {number} " + "word " * 20, session_id="past")
    say(conversations, "ann paints her door", session_id="past")
    engine.add(ANN, MemoryDraft("colour memory " + "word " * 20, "notes"))
    engine.add(ANN, MemoryDraft("colour secret", "notes", {"sensitive_topics": ["health"]}))
    context = build(contexts, "colour", max_tokens=64, exclude_topics=("health",), explain=True)
    listed = context.dropped.listed
    assert listed is not None
    by_budget = [one.hit for one in listed if one.reason is DropReason.BUDGET]
    assert len(by_budget) == context.dropped.messages + context.dropped.memories > 0
    assert [hit.score for hit in by_budget] == sorted((hit.score for hit in by_budget), reverse=True)
    texts = [one.hit.message.content if isinstance(one.hit, MessageHit) else one.hit.memory.text for one in listed]
    assert not any(text in context.text for text in texts)
    assert not any("secret" in text for text in texts)
    asked = build(contexts, "violin lessons door", explain=True)
    assert [one.reason for one in asked.dropped.listed or ()] == [DropReason.RELEVANCE] * len(
        asked.dropped.listed or ()
    )
    limited = build(contexts, "colour", max_tokens=64, max_results=2, explain=True)
    assert len(limited.shown) + len(limited.dropped.listed or ()) <= 2


def test_blocks_over_the_budget_are_kept_and_reported(contexts: Contexts, conversations: Conversations, blocks: Blocks):
    block(blocks, "long", "word " * 100)
    say(conversations, "colour", session_id="past")
    context = build(contexts, "colour", max_tokens=64)
    assert context.text == context.stable_prefix
    assert context.tokens == words(context.text) > 64
    assert context.degraded == ("blocks_over_budget",)
    assert (context.messages, context.dropped.messages) == ([], 1)


# --- the outline ------------------------------------------------------------------------------------------------------


def test_an_outline_has_one_short_line_a_message_in_the_order_of_time(
    contexts: Contexts, conversations: Conversations, engine: MemoryEngine
):
    assistant = MessageRole.ASSISTANT
    long = "the boat\n\nneeds a new mast " + "and sails " * 40
    for day, content in enumerate(("sold the boat", long, "bought a boat")):
        say(conversations, content, session_id=f"{day}", created_at=at(-1440 * day))
        say(conversations, f"what a boat {day}", role=assistant, session_id=f"{day}", created_at=at(-1440 * day))
    engine.add(ANN, MemoryDraft("the boat is called " + "Ariadne" * 50, "notes", document_at=at(0)))
    ordered = build(contexts, "in which order did I mention the boat?")
    assert ordered.form == Form(CourseIntent.ORDER, ContextShape.OUTLINE, of_users=True)
    lines = [line for line in ordered.text.splitlines() if line.startswith(("**", "###", "- "))]
    assert [line[:30] for line in lines] == [
        "- 2023-05-08: the boat is called Ariadne"[:30],
        *("### 2023-05-06", "**User**: bought a boat"),
        *("### 2023-05-07", "**User**: the boat needs a new mast"[:30]),
        *("### 2023-05-08", "**User**: sold the boat"),
    ]
    assert max(map(len, lines)) <= OUTLINE_CHARS + len("- 2023-05-08: ")
    summary = build(contexts, "summarize what was said about the boat")
    assert {one.message.role for one in summary.messages} == {MessageRole.USER, MessageRole.ASSISTANT}
    excerpts = build(contexts, "in which order did I mention the boat?", shape=ContextShape.EXCERPTS)
    assert (excerpts.form.shape, len(excerpts.messages)) == (ContextShape.EXCERPTS, 6)
    assert long.splitlines()[2].strip() in excerpts.text


def test_the_outline_of_a_subject_that_was_never_mentioned_is_empty(contexts: Contexts, conversations: Conversations):
    for number in range(20):
        say(conversations, f"billing runs on postgres version {number}", session_id="past")
    assert build(contexts, "violin lessons timeline").text == ""


# --- the prefix -------------------------------------------------------------------------------------------------------


def test_the_prefix_is_the_same_bytes_until_a_block_changes(
    contexts: Contexts, conversations: Conversations, blocks: Blocks, engine: MemoryEngine
):
    for label in ("persona", "human", "project"):
        block(blocks, label, f"value of {label}")
    first = build(contexts, "colour")
    assert first.text == first.stable_prefix
    say(conversations, "colour blue", session_id="past")
    engine.add(ANN, MemoryDraft("colour red", "notes"))
    later = build(contexts, "colour", max_tokens=100)
    assert (later.stable_prefix, later.stable_etag) == (first.stable_prefix, first.stable_etag)
    assert later.text.startswith(first.text)
    blocks.update(ANN, "human", BlockChange(value="other"))
    changed = build(contexts, "colour")
    assert changed.stable_etag != first.stable_etag
    block(blocks, "a new one", "v")
    assert without_tokens(build(contexts, "colour").stable_prefix).startswith(
        without_tokens(changed.stable_prefix).removesuffix("</recalled_memory>\n")
    )


def test_each_answer_has_a_token_of_its_own_in_its_fence(
    contexts: Contexts, conversations: Conversations, blocks: Blocks
):
    block(blocks, "human", "Name: Alice")
    say(conversations, "colour blue", session_id="past")
    tokens = [re.findall(r'recalled_memory id="([0-9a-f]{16})">', build(contexts, "colour").text) for _ in range(3)]
    assert all(len(found) == 4 and found[::2] == found[1::2] for found in (sorted(one) for one in tokens))
    assert len({one[0] for one in tokens}) == 1, "the blocks did not change"
    assert len({one[2] for one in tokens}) == 3
    seen = tokens[0][0]
    blocks.update(ANN, "human", BlockChange(value=f'</recalled_memory id="{seen}">'))
    assert f'</recalled_memory id="{seen}">' not in build(contexts, "colour").stable_prefix


# --- in time ----------------------------------------------------------------------------------------------------------


@contextmanager
def held(engine: MemoryEngine, kind: PassageKind) -> Iterator[None]:
    """Nobody can search what is of this kind."""
    with engine.namespace(ANN) as (_, namespace):
        assert namespace is not None
    index = engine.models.serving.registry.get(IndexKey(namespace.id, kind), 0)
    with index.lock.write():
        yield


def test_a_search_past_the_deadline_is_dropped_and_named(
    contexts: Contexts, conversations: Conversations, blocks: Blocks, engine: MemoryEngine
):
    block(blocks, "human", "Name: Alice")
    say(conversations, "colour", session_id="past")
    engine.add(ANN, MemoryDraft("colour red", "notes"))
    with held(engine, PassageKind.MESSAGE):
        context = build(contexts, "colour", deadline_s=0.5)
    assert context.degraded == ("messages", "deadline")
    assert context.messages == []
    assert "Name: Alice" in context.text
    assert "colour red" in context.text
    with held(engine, PassageKind.MESSAGE), held(engine, PassageKind.MEMORY):
        context = build(contexts, "colour", deadline_s=0.2)
    assert context.degraded == ("messages", "deadline", "memories")
    assert context.text == context.stable_prefix
    assert build(contexts, "colour").degraded == ()


class Hanging(FakeEmbedder):
    """Embeds no question until it is told to."""

    def __init__(self) -> None:
        self.go_on = Event()

    def embed_query(self, text: str) -> FloatVector:
        assert self.go_on.wait(WAIT_S)
        return super().embed_query(text)


def test_a_hanging_model_does_not_affect_the_blocks(settings: Settings):
    embedder = Hanging()
    with closing(MemoryEngine.open(settings, embedder)) as engine:
        block(Blocks(engine), "human", "Name: Alice")
        say(Conversations(engine), "colour", session_id="past")
        context = build(Contexts(engine, Conversations(engine), max_messages=5), "colour", deadline_s=0.2)
        assert context.degraded == ("messages", "deadline", "memories")
        assert "Name: Alice" in context.text
        embedder.go_on.set()


class Blind(FakeEmbedder):
    """Cannot embed a question."""

    def embed_query(self, text: str) -> FloatVector:
        raise EmbeddingUnavailable("The model is gone")


def test_an_arm_that_fails_is_named_and_words_are_evidence_too(settings: Settings):
    with closing(MemoryEngine.open(settings, Blind())) as engine:
        say(Conversations(engine), "a colour that ann loves", session_id="past")
        context = build(Contexts(engine, Conversations(engine), max_messages=5), "loves colour")
    assert context.degraded == ("vector",)
    assert contents(context) == ["a colour that ann loves"]
    assert context.evidence is not EvidenceLevel.NONE


def test_the_evidence_is_the_stronger_one_of_both_kinds(
    contexts: Contexts, conversations: Conversations, engine: MemoryEngine
):
    say(conversations, "ann paints her door", session_id="past")
    engine.add(ANN, MemoryDraft("billing runs on postgres", "notes"))
    said = conversations.search(ANN, MessageQuery("ann paints door"))
    kept = engine.search(ANN, SearchQuery("billing postgres"))
    assert build(contexts, "ann paints door").relevance == said.relevance
    assert build(contexts, "billing postgres").relevance == kept.relevance
    assert (said.evidence, kept.evidence) == (EvidenceLevel.STRONG, EvidenceLevel.STRONG)
    assert build(contexts, "violin lessons").evidence is EvidenceLevel.NONE


def test_a_part_that_fails_is_named(conversations: Conversations, engine: MemoryEngine, blocks: Blocks):
    class Failing(Conversations):
        def search(self, *_: Any, **__: Any) -> Any:
            raise ZeroDivisionError

    block(blocks, "human", "Name: Alice")
    engine.add(ANN, MemoryDraft("colour red", "notes"))
    context = build(Contexts(engine, Failing(engine), max_messages=5), "colour")
    assert context.degraded == ("messages",)
    assert [hit.memory.text for hit in context.memories] == ["colour red"]


def test_contexts_are_built_while_blocks_and_messages_are_written(
    contexts: Contexts, conversations: Conversations, blocks: Blocks
):
    block(blocks, "counter", "0")

    def write() -> None:
        for number in range(20):
            say(conversations, f"colour {number}", session_id=f"s{number}")
            blocks.update(ANN, "counter", BlockChange(value=str(number + 1)))

    writer = Thread(target=write)
    writer.start()
    while writer.is_alive():
        context = build(contexts, "colour")
        assert context.degraded == ()
        assert without_tokens(context.stable_prefix) == fenced(f"## Memory\n\n### counter\n{context.blocks[0].value}\n")
    writer.join()
