"""The memories that a filter selects, and answers of the configured language model about them.

Nothing is stored: each request reads the memories of the moment, so a forgotten memory is in no answer. No place, lock
or connection is held while the model answers. Memories are screened by the privacy policy and fenced.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

from fastapi import Request

from souvenir.compat.mem0.agents import UNARCHIVED, of_each_agent, parts_of, unexpired
from souvenir.compat.mem0.models import Mem0Memory
from souvenir.core.concurrency import leave_place
from souvenir.core.errors import InvalidRequest, NotOffered, Overloaded
from souvenir.core.text import fenced
from souvenir.core.types import Role, Scope
from souvenir.models.llm.prompts import Shape, prompt_of
from souvenir.server.service import Service

MAX_MEMORIES = 10_000
MAX_READ_CHARS = 40_000
"""Maximum length of the memories that a model reads at once, about 10,000 tokens."""

MAX_ASKED = 8
"""Maximum number of questions that wait for the model at a time."""

_PROMPTS = Path(__file__).with_name("prompts")
_MEMORIES = "memories"
_asked = BoundedSemaphore(MAX_ASKED)

Selected = Sequence[tuple[Scope, Mem0Memory]]


def selected(service: Service, request: Request, scope: Scope, filters: dict[str, Any]) -> Selected:
    """Return what a filter selects of what the caller sees, without archived and expired memories, newest first.

    :raises InvalidRequest: If it is too much for one answer.
    """
    parts = parts_of(request, scope, filters, Role.READ_ONLY, UNARCHIVED, unexpired())
    found = [(part.scope, id_) for part in parts for id_ in reversed(part.ids(service.engine))]
    if len(found) > MAX_MEMORIES:
        raise InvalidRequest(f"The filters select more than {MAX_MEMORIES:,} memories; narrow them, or use GET /export")
    memories = {one: service.engine.get(one, ids) for one, ids in of_each_agent(found).items()}
    return [(one, Mem0Memory.of(one.namespace, memories[one][id_])) for one, id_ in found if id_ in memories[one]]


def ask(service: Service, memories: Selected, name: str, shape: type[Shape], instructions: str = "") -> Shape:
    """Return the model's answer.

    :param name: The prompt. :param instructions: The caller's own, which are added to it.
    :raises NotOffered: If no model is configured. :raises InvalidRequest: If the memories are too long.
    :raises Overloaded: If too many questions wait. :raises LLMError: If there is no usable answer.
    """
    if service.provider is None:
        raise NotOffered("This needs a language model, and none is configured; set EXTRACT_PROVIDER")
    lines = _lines(service, memories)
    if len(lines) > MAX_READ_CHARS:
        raise InvalidRequest(
            f"The selected memories have more than {MAX_READ_CHARS:,} characters, which a model does not read at once; "
            "narrow the filters"
        )
    if not _asked.acquire(blocking=False):
        raise Overloaded("Too many questions wait for the language model; try again in a moment", retry_after_s=5)
    try:
        leave_place()
        prompt = prompt_of(_PROMPTS, name, fenced(lines, name=_MEMORIES), further=instructions)
        return service.provider.generate(prompt, shape).value
    finally:
        _asked.release()


def _lines(service: Service, memories: Selected) -> str:
    policies = {scope: service.engine.screening.applied(scope, refuse=False) for scope, _ in memories}
    shown = ((one.created_at[:10], " ".join(policies[scope].text(one.memory).split())) for scope, one in memories)
    return "".join(f"[{day}] {text}\n" for day, text in shown)
