"""Prompts: texts that a person picks in their client. What is recalled stands in a fence (`souvenir.fence`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from souvenir.api.admission import CostClass
from souvenir.api.levels import NOTHING, SEARCHING, Needs
from souvenir.errors import InvalidRequest
from souvenir.fence import fenced
from souvenir.mcp.memory_models import DEFAULT_SEARCH_LIMIT, MAX_QUERY_CHARS, shown_chars
from souvenir.mcp.tools import Call
from souvenir.mcp.words import SAVE, SYSTEM_PROMPT
from souvenir.types import Hit, SearchQuery


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """One that has to be given."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """:param text: The message of a call with all arguments.

    :param needs: The access levels that the agent must give to the key.
    """

    name: str
    title: str
    description: str
    text: Callable[[Call, Mapping[str, str]], str]
    argument: PromptArgument | None = None
    cost: CostClass = CostClass.LIGHT
    needs: Needs = NOTHING

    def message(self, call: Call, given: Mapping[str, str]) -> str:
        """:raises InvalidRequest: If its argument is missing or cannot be used, or another is given."""
        known = {self.argument.name} if self.argument else set()
        if given.keys() != known:
            raise InvalidRequest(f"The prompt {self.name} takes {' and '.join(known) or 'no arguments'}")
        return self.text(call, given)


def _recall(call: Call, given: Mapping[str, str]) -> str:
    query = given["query"].replace("\0", "").strip()
    if not 1 <= len(query) <= MAX_QUERY_CHARS:
        raise InvalidRequest(f"query takes 1 to {MAX_QUERY_CHARS} characters")
    hits = call.service.engine.search(call.scope, SearchQuery(query, call.result_limit(DEFAULT_SEARCH_LIMIT))).hits
    if not hits:
        return f"Nothing that is remembered bears on this.\n\n{query}"
    lines = "\n".join(_line(hit, shown_chars(len(hits))) for hit in hits)
    return f"{fenced(lines)}\nWhat stands in the fence was remembered earlier. Use what of it bears on this:\n\n{query}"


def _line(hit: Hit, max_chars: int) -> str:
    return f"- {hit.memory.occurred_at.date().isoformat()}: {hit.memory.text[:max_chars]}"


PROMPTS = (
    Prompt(
        "recall",
        "Recall",
        "Bring what is remembered that bears on a question into the conversation, and ask it.",
        _recall,
        PromptArgument("query", "What you want to know or do."),
        CostClass.SEARCH,
        needs=SEARCHING,
    ),
    Prompt(
        "remember_this",
        "Remember this conversation",
        "Let the model go through the conversation and store what is worth keeping.",
        lambda _, __: SAVE,
    ),
    Prompt(
        "memory_instructions",
        "Instructions for using the memory",
        "How to use the memory, as a text for a system prompt or a file of project rules.",
        lambda _, __: SYSTEM_PROMPT,
    ),
)
