"""The tier `agent`: context for a query, conversations, and the blocks of text that are always in the context."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from souvenir.api.admission import CostClass
from souvenir.api.extraction_models import ExtractRequest
from souvenir.api.extraction_requests import take
from souvenir.api.levels import REMEMBERED, SEARCHING
from souvenir.conversation.blocks import DEFAULT_MAX_CHARS, BlockChange
from souvenir.conversation.context import ContextQuery
from souvenir.errors import AgentNotFound, BlockChanged, BlockExists, BlockNotFound, BlockReadOnly, InvalidRequest
from souvenir.mcp.agent_models import (
    BLOCK_SHOWN_CHARS,
    AppendToBlockArguments,
    BlockList,
    BlockShown,
    ContextResult,
    GetContextArguments,
    ListBlocksArguments,
    OfBlock,
    RememberConversationArguments,
    RememberedConversation,
    ReplaceInBlockArguments,
    WriteBlockArguments,
)
from souvenir.mcp.tools import Call, Tool
from souvenir.store.blocks import Block, BlockDraft
from souvenir.store.messages import MessageDraft
from souvenir.types import Role

MAX_BLOCKS = 100
"""In a list; far more than fit into a context."""


def _context(call: Call, asked: GetContextArguments) -> ContextResult:
    query = ContextQuery(
        asked.query,
        session_id=asked.session_id,
        user=asked.user,
        max_tokens=asked.max_tokens,
        max_results=call.most_results,
        agent_may_be_new=True,
    )
    return ContextResult.of(call.service.contexts.build(call.scope, query))


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
    """Messages and the job that learns from them are one write, as `POST /memory/extract` makes it."""
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
    """What can go wrong with a block, in words for a model.

    :raises InvalidRequest: In the place of the errors whose sentences are about HTTP.
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
        "Get, as one text, what bears on a question: the memory blocks, memories and excerpts of earlier "
        "conversations. Use it once at the beginning of a task or a turn; to look for one thing, search_memory is "
        "cheaper.",
        GetContextArguments,
        ContextResult,
        _context,
        CostClass.SEARCH,
        of_agent=True,
        needs=SEARCHING,
    ),
    Tool(
        "remember_conversation",
        "Remember a conversation",
        "Store messages of a conversation as they were said, so that get_context finds them later; where a language "
        "model is set up, lasting facts are learned from them too. Use it at the end of a conversation, or for the "
        "part since the last call, and not for single facts: those are for add_memory.",
        RememberConversationArguments,
        RememberedConversation,
        _remember,
        CostClass.WRITE,
        role=Role.READ_WRITE,
        of_agent=True,
    ),
    Tool(
        "list_blocks",
        "List memory blocks",
        "List the memory blocks: short texts with a label, such as `human` or `project`, that stand in every context.",
        ListBlocksArguments,
        BlockList,
        _list_blocks,
        CostClass.LIGHT,
        of_agent=True,
        needs=REMEMBERED,
    ),
    Tool(
        "get_block",
        "Get a memory block",
        "Get one memory block whole by its label. Use it before you change one.",
        OfBlock,
        BlockShown,
        _get_block,
        CostClass.LIGHT,
        of_agent=True,
        needs=REMEMBERED,
    ),
    Tool(
        "write_block",
        "Write a memory block",
        "Make a memory block, or put a new text in the place of its whole value. Use it for what should always be in "
        "the context; for a small change, append_to_block and replace_in_block are safer.",
        WriteBlockArguments,
        BlockShown,
        _write_block,
        CostClass.LIGHT,
        role=Role.READ_WRITE,
        of_agent=True,
        destructive=True,
        idempotent=True,
    ),
    Tool(
        "append_to_block",
        "Append to a memory block",
        "Add a line to a memory block that is there.",
        AppendToBlockArguments,
        BlockShown,
        _append,
        CostClass.LIGHT,
        role=Role.READ_WRITE,
        of_agent=True,
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
        destructive=True,
    ),
)
