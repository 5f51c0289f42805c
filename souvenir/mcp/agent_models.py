"""What the tools of the tier `agent` take and answer."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints

from souvenir.api.block_models import MAX_DESCRIPTION_CHARS, Label
from souvenir.api.context_models import MIN_MAX_TOKENS
from souvenir.api.conversation_fields import SessionId, SpeakerName, UserName
from souvenir.api.fields import Clean, Moment, Text, wire_time
from souvenir.conversation.blocks import MOST_MAX_CHARS
from souvenir.conversation.context import DEFAULT_MAX_TOKENS, Context
from souvenir.mcp.tools import Arguments, Result
from souvenir.store.blocks import Block
from souvenir.types import EvidenceLevel, MessageRole

MAX_MESSAGES = 1_000
MAX_CONTEXT_TOKENS = 20_000
BLOCK_SHOWN_CHARS = 500
"""Of a block's value in a list; `get_block` gives all of it."""

_Value = Annotated[str, StringConstraints(max_length=MOST_MAX_CHARS), Clean]
_SomeText = Annotated[str, StringConstraints(min_length=1, max_length=MOST_MAX_CHARS), Clean]


class GetContextArguments(Arguments):
    query: Text = Field(description="What you are about to answer or do, in plain words.")
    session_id: SessionId | None = Field(
        default=None, description="The running conversation, which is left out of what is recalled."
    )
    user: UserName | None = Field(default=None, description="Only what was said with this user.")
    max_tokens: int = Field(
        default=DEFAULT_MAX_TOKENS, ge=MIN_MAX_TOKENS, le=MAX_CONTEXT_TOKENS, description="Length of the text, at most."
    )


class ContextResult(Result):
    text: str = Field(description="Memory blocks, memories and excerpts of conversations, to be read before answering.")
    tokens: int
    evidence: EvidenceLevel = Field(description="Whether what was recalled bears on the query.")
    degraded: list[str] = Field(description="What could not be searched in time; empty if all was.")

    @classmethod
    def of(cls, context: Context) -> Self:
        return cls(text=context.text, tokens=context.tokens, evidence=context.evidence, degraded=list(context.degraded))


class Turn(Arguments):
    """What somebody said."""

    role: MessageRole = Field(description="Who says it.")
    content: Text = Field(description="What is said.")
    name: SpeakerName | None = None
    created_at: Moment | None = Field(default=None, description="When it was said; now if not given.")


class RememberConversationArguments(Arguments):
    messages: list[Turn] = Field(min_length=1, max_length=MAX_MESSAGES, description="In the order of the conversation.")
    session_id: SessionId | None = Field(
        default=None, description="The conversation that they belong to; the same id adds to it."
    )
    user: UserName | None = Field(default=None, description="Whom the conversation is with.")


class RememberedConversation(Result):
    session_id: str
    stored: int = Field(description="Messages that can be found from now on.")
    learning: bool = Field(description="Whether lasting facts are drawn from them in the background.")
    job_id: str | None = Field(default=None, description="Of that work.")


class OfBlock(Arguments):
    label: Label


class WriteBlockArguments(OfBlock):
    value: _Value = Field(description="The whole text of the block, in the place of what it holds.")
    description: Annotated[str, StringConstraints(max_length=MAX_DESCRIPTION_CHARS), Clean] | None = Field(
        default=None, description="What the block is for; it does not stand in the context."
    )
    expected_version: int | None = Field(
        default=None, ge=0, description="Change it only if it is at this version; 0: only if there is none."
    )


class AppendToBlockArguments(OfBlock):
    text: _SomeText = Field(description="Put behind what the block holds, on a line of its own.")


class ReplaceInBlockArguments(OfBlock):
    old_text: _SomeText = Field(description="What is replaced, exactly as it stands there; it has to be there once.")
    new_text: _Value = Field(description="What takes its place; empty removes it.")


class ListBlocksArguments(Arguments):
    """Nothing."""


class BlockShown(Result):
    label: str
    value: str
    truncated: bool | None = Field(default=None, description="True if the value is cut; get_block gives all of it.")
    description: str | None = None
    chars: int = Field(description="Characters that the value has.")
    limit: int = Field(description="Characters that it may have.")
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
