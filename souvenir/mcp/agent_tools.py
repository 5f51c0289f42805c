"""The tier `agent`: context for a query, conversations, and the blocks of text that are always in the context."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Annotated, Self

from pydantic import Field, StringConstraints

from souvenir.api.blocks import MAX_DESCRIPTION_CHARS, Label
from souvenir.api.context import MIN_MAX_TOKENS
from souvenir.api.extraction import ExtractRequest, take
from souvenir.api.fields import DECIMALS, Clean, Moment, SessionId, SpeakerName, Text, UserName, wire_time
from souvenir.api.verification import verdict_fields
from souvenir.conversations.blocks import DEFAULT_MAX_CHARS, MOST_MAX_CHARS, BlockChange
from souvenir.conversations.context import DEFAULT_MAX_TOKENS, Context, ContextQuery
from souvenir.conversations.context_shape import ContextShape
from souvenir.conversations.verification import Verdict
from souvenir.core.errors import AgentNotFound, BlockChanged, BlockExists, BlockNotFound, BlockReadOnly, InvalidRequest
from souvenir.core.types import EvidenceLevel, MessageRole, Role
from souvenir.mcp.memory_models import OptionalAnswered, Verify
from souvenir.mcp.tools import Arguments, Call, Result, Tool
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import NOTHING, OF_MEMORY, REMEMBERED, SEARCHING
from souvenir.store.messages.blocks import Block, BlockDraft
from souvenir.store.messages.messages import MessageDraft

MAX_MESSAGES = 1_000
MAX_CONTEXT_TOKENS = 20_000
BLOCK_SHOWN_CHARS = 500
"""Maximum length of a block's value in a list; `get_block` returns all of it."""

_Value = Annotated[str, StringConstraints(max_length=MOST_MAX_CHARS), Clean]
_SomeText = Annotated[str, StringConstraints(min_length=1, max_length=MOST_MAX_CHARS), Clean]


class GetContextArguments(Arguments):
    query: Text = Field(description="What you are about to answer or do, in plain words.")
    session_id: SessionId | None = Field(
        default=None, description="The active conversation, which is left out of the context."
    )
    user: UserName | None = Field(default=None, description="Only messages exchanged with this user.")
    max_tokens: int = Field(
        default=DEFAULT_MAX_TOKENS, ge=MIN_MAX_TOKENS, le=MAX_CONTEXT_TOKENS, description="Maximum length of the text."
    )
    shape: ContextShape = Field(
        default=ContextShape.AUTO,
        description="`outline` lists more messages with one short line each, in the order of time; `auto` does so if "
        "the query asks for an order, a timeline or a summary.",
    )
    verify: Verify = False


class ContextResult(Result):
    text: str = Field(description="Memory blocks, memories and excerpts of conversations, to be read before answering.")
    tokens: int
    shape: ContextShape = Field(description="`excerpts` or `outline`.")
    evidence: EvidenceLevel = Field(
        description="`strong`: the subject of the query is mentioned, which does not mean that it is answered; `weak`: "
        "it may be mentioned; `none`: nothing found seems to be about it."
    )
    relevance: float = Field(
        description="The same as a number: the share of similar questions that were answered in labelled data sets."
    )
    degraded: list[str] = Field(description="Parts that could not be searched in time; empty if all were.")
    answered: OptionalAnswered = None
    answer_quote: str | None = None
    answer_reason: str | None = None

    @classmethod
    def of(cls, context: Context, verdict: Verdict | None) -> Self:
        return cls(
            text=context.text,
            tokens=context.tokens,
            shape=context.form.shape,
            evidence=context.evidence,
            relevance=round(context.relevance, DECIMALS),
            degraded=list(context.degraded),
            **(verdict_fields(verdict) if verdict else {}),
        )


class Turn(Arguments):
    """A message of the conversation."""

    role: MessageRole = Field(description="The role of the speaker.")
    content: Text = Field(description="The text of the message.")
    name: SpeakerName | None = None
    created_at: Moment | None = Field(default=None, description="The time of the message; default now.")


class RememberConversationArguments(Arguments):
    messages: list[Turn] = Field(min_length=1, max_length=MAX_MESSAGES, description="In the order of the conversation.")
    session_id: SessionId | None = Field(default=None, description="Their conversation; the same id appends to it.")
    user: UserName | None = Field(default=None, description="The user in the conversation.")


class RememberedConversation(Result):
    session_id: str
    stored: int = Field(description="Number of stored messages.")
    learning: bool = Field(description="True if lasting facts are learned from them in the background.")
    job_id: str | None = Field(default=None, description="The id of the learning job.")


class OfBlock(Arguments):
    label: Label


class WriteBlockArguments(OfBlock):
    value: _Value = Field(description="The whole new value of the block.")
    description: Annotated[str, StringConstraints(max_length=MAX_DESCRIPTION_CHARS), Clean] | None = Field(
        default=None, description="The purpose of the block; it is not part of the context."
    )
    expected_version: int | None = Field(
        default=None, ge=0, description="Change it only if it is at this version; 0: only if there is none."
    )


class AppendToBlockArguments(OfBlock):
    text: _SomeText = Field(description="Appended to the block, on a line of its own.")


class ReplaceInBlockArguments(OfBlock):
    old_text: _SomeText = Field(description="The text to replace, exactly as it is in the block; it must occur once.")
    new_text: _Value = Field(description="The replacement; empty removes the text.")


class ListBlocksArguments(Arguments):
    """Nothing."""


class BlockShown(Result):
    label: str
    value: Annotated[str, OF_MEMORY]
    truncated: bool | None = Field(default=None, description="True if the value is cut; get_block returns all of it.")
    description: Annotated[str | None, OF_MEMORY] = None
    chars: int = Field(description="Length of the value in characters.")
    limit: int = Field(description="Maximum length in characters.")
    read_only: bool
    version: int
    updated_at: str = Field(description="ISO-8601 in UTC.")

    @classmethod
    def of(cls, block: Block, max_chars: int = MOST_MAX_CHARS) -> Self:
        return cls(
            label=block.label,
            value=block.value[:max_chars],
            truncated=len(block.value) > max_chars or None,
            description=block.description,
            chars=len(block.value),
            limit=block.max_chars,
            read_only=block.read_only,
            version=block.version,
            updated_at=wire_time(block.updated_at),
        )


class BlockList(Result):
    blocks: list[BlockShown] = Field(description="In the order of the context.")
    total: int


MAX_BLOCKS = 100
"""Maximum number of blocks in a list; far more than fit into a context."""


def _context(call: Call, asked: GetContextArguments) -> ContextResult:
    query = ContextQuery(
        asked.query,
        session_id=asked.session_id,
        user=asked.user,
        max_tokens=asked.max_tokens,
        max_results=call.most_results,
        agent_may_be_new=True,
        shape=asked.shape,
    )
    began, service = monotonic(), call.service
    context = service.contexts.build(call.scope, query)
    verdict = service.verification.of_context(call.scope, query, context, began=began) if asked.verify else None
    return ContextResult.of(context, verdict)


def _remember(call: Call, asked: RememberConversationArguments) -> RememberedConversation:
    if call.service.extraction.enabled:
        return _remember_and_learn(call, asked)
    drafts = [
        MessageDraft(
            one.role,
            one.content,
            session_id=asked.session_id,
            user=asked.user,
            speaker=one.name,
            created_at=one.created_at,
        )
        for one in asked.messages
    ]
    stored = call.service.conversations.add(call.scope, drafts)
    return RememberedConversation(session_id=stored[0].session_id, stored=len(stored), learning=False)


def _remember_and_learn(call: Call, asked: RememberConversationArguments) -> RememberedConversation:
    """Store messages and queue the job that extracts from them in one write, as `POST /memory/extract` does."""
    session_id = asked.session_id or str(uuid.uuid4())
    turns = [one.model_dump(mode="json", exclude_none=True) for one in asked.messages]
    request = ExtractRequest(
        messages=json.dumps(turns, ensure_ascii=False), store_messages=True, session=session_id, user=asked.user
    )
    taken = take(call.service, call.scope, request, None)
    return RememberedConversation(
        session_id=session_id, stored=len(taken.messages or ()), learning=True, job_id=taken.job.id
    )


def _list_blocks(call: Call, _: ListBlocksArguments) -> BlockList:
    try:
        blocks, total = call.service.blocks.page(call.scope, offset=0, limit=MAX_BLOCKS)
    except AgentNotFound:
        blocks, total = (), 0
    return BlockList(blocks=[BlockShown.of(block, BLOCK_SHOWN_CHARS) for block in blocks], total=total)


def _get_block(call: Call, asked: OfBlock) -> BlockShown:
    with _of_block(asked.label):
        return BlockShown.of(call.service.blocks.get(call.scope, asked.label))


def _write_block(call: Call, asked: WriteBlockArguments) -> BlockShown:
    with _of_block(asked.label):
        if asked.expected_version == 0:
            return BlockShown.of(_made(call, asked))
        expected = None if asked.expected_version is None else frozenset({asked.expected_version})
        change = BlockChange(asked.value, asked.description)
        try:
            return BlockShown.of(call.service.blocks.update(call.scope, asked.label, change, expected=expected))
        except (BlockNotFound, AgentNotFound):
            if expected is not None:
                raise
            return BlockShown.of(_made(call, asked))


def _made(call: Call, asked: WriteBlockArguments) -> Block:
    max_chars = max(DEFAULT_MAX_CHARS, len(asked.value))
    draft = BlockDraft(asked.label, asked.value, asked.description, max_chars, read_only=False)
    return call.service.blocks.create(call.scope, draft)


def _append(call: Call, asked: AppendToBlockArguments) -> BlockShown:
    with _of_block(asked.label):
        return BlockShown.of(call.service.blocks.edit(call.scope, asked.label, asked.text, _with_line))


def _with_line(value: str, line: str) -> str:
    return f"{value}\n{line}" if value else line


def _replace(call: Call, asked: ReplaceInBlockArguments) -> BlockShown:
    def replaced(value: str, new_text: str) -> str:
        count = value.count(asked.old_text)
        if count != 1:
            raise InvalidRequest(
                f"Block {asked.label!r} holds old_text {count} times and not once; read it with get_block and send "
                "exactly the part that is to be replaced, long enough to be there once"
            )
        return value.replace(asked.old_text, new_text)

    with _of_block(asked.label):
        return BlockShown.of(call.service.blocks.edit(call.scope, asked.label, asked.new_text, replaced))


@contextmanager
def _of_block(label: str) -> Iterator[None]:
    """Translate the errors of blocks into sentences for a model.

    :raises InvalidRequest: Instead of errors whose messages refer to HTTP.
    """
    try:
        yield
    except (BlockNotFound, AgentNotFound) as error:
        raise InvalidRequest(
            f"There is no block {label!r}; list_blocks names them, and write_block makes one"
        ) from error
    except BlockExists as error:
        raise InvalidRequest(
            f"There is a block {label!r} already; read it with get_block before you change it"
        ) from error
    except BlockReadOnly as error:
        raise InvalidRequest(f"Block {label!r} is read-only; leave it as it is, only its owner can allow it") from error
    except BlockChanged as error:
        raise InvalidRequest(
            f"Block {label!r} is at version {error.version} by now; read it with get_block and change that"
        ) from error


TOOLS = (
    Tool(
        "get_context",
        "Get context",
        "Get the context of a question as one text: the memory blocks, relevant memories and excerpts of earlier "
        "conversations. Use it once at the beginning of a task or a turn; to look for one thing, search_memory is "
        "cheaper.",
        GetContextArguments,
        ContextResult,
        _context,
        CostClass.SEARCH,
        role=Role.READ_ONLY,
        of_agent=True,
        needs=SEARCHING,
    ),
    Tool(
        "remember_conversation",
        "Remember a conversation",
        "Store messages of a conversation verbatim, so that get_context finds them later; if a language model is "
        "configured, lasting facts are learned from them too. Use it at the end of a conversation, or for the "
        "part since the last call, and not for single facts: those are for add_memory.",
        RememberConversationArguments,
        RememberedConversation,
        _remember,
        CostClass.WRITE,
        role=Role.READ_WRITE,
        of_agent=True,
        needs=NOTHING,
    ),
    Tool(
        "list_blocks",
        "List memory blocks",
        "List the memory blocks: short labelled texts, such as `human` or `project`, that are part of every context.",
        ListBlocksArguments,
        BlockList,
        _list_blocks,
        CostClass.LIGHT,
        role=Role.READ_ONLY,
        of_agent=True,
        needs=REMEMBERED,
    ),
    Tool(
        "get_block",
        "Get a memory block",
        "Get one full memory block by its label. Use it before you change one.",
        OfBlock,
        BlockShown,
        _get_block,
        CostClass.LIGHT,
        role=Role.READ_ONLY,
        of_agent=True,
        needs=REMEMBERED,
    ),
    Tool(
        "write_block",
        "Write a memory block",
        "Create a memory block, or replace its whole value. Use it for information that should always be in "
        "the context; for a small change, append_to_block and replace_in_block are safer.",
        WriteBlockArguments,
        BlockShown,
        _write_block,
        CostClass.LIGHT,
        role=Role.READ_WRITE,
        of_agent=True,
        needs=NOTHING,
        destructive=True,
        idempotent=True,
    ),
    Tool(
        "append_to_block",
        "Append to a memory block",
        "Add a line to an existing memory block.",
        AppendToBlockArguments,
        BlockShown,
        _append,
        CostClass.LIGHT,
        role=Role.READ_WRITE,
        of_agent=True,
        needs=NOTHING,
    ),
    Tool(
        "replace_in_block",
        "Replace in a memory block",
        "Replace one passage of a memory block by another text, or remove it.",
        ReplaceInBlockArguments,
        BlockShown,
        _replace,
        CostClass.LIGHT,
        role=Role.READ_WRITE,
        of_agent=True,
        needs=REMEMBERED,
        destructive=True,
    ),
)
