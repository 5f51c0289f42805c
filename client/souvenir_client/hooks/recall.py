"""The hooks `session-start` and `prompt`: they return context from the service.

A session starts with the agent's blocks and the memories that are relevant to the project. Each prompt gets the
memories that are relevant to it, and the blocks only if they have changed since they were last given, because given
context stays in the conversation.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from souvenir_client.calls import NOT_SENT
from souvenir_client.errors import NotFound
from souvenir_client.hooks.budget import Budget
from souvenir_client.hooks.events import Event, Hook, Report, fitted
from souvenir_client.hooks.project import Project
from souvenir_client.hooks.service import UNKNOWN_AGENT, Service
from souvenir_client.hooks.state import forget_old_sessions, read_state, session_file, write_state
from souvenir_client.hooks.transcripts import Transcript
from souvenir_client.hooks.turns import typed_text
from souvenir_client.wording import prefaced

MAX_TOKENS = 2_000
MAX_QUERY_CHARS = 1_000
LEAST_WAIT_S = 0.1
ON_THE_WAY_S = 0.1
"""Network time, subtracted from the service's own deadline."""


def recall(
    hook: Hook, event: Event, place: Project, service: Service, folder: Path, budget: Budget, report: Report
) -> str:
    """Return the context for Claude; empty if there is none. A failure to write the state is only reported.

    :param folder: Folder of the state.
    :raises SouvenirError: If the service cannot be reached, or refuses.
    """
    starts = hook is Hook.SESSION_START
    query = _query_of_start(event, place) if starts else _query_of_prompt(event.prompt)
    wait_s = budget.wait_s
    if not query or wait_s < LEAST_WAIT_S:
        return ""
    try:
        # A compaction drops the messages of this session from Claude's context, so they may be returned.
        found = service.context.build(
            place.agent,
            query=query,
            session_id=NOT_SENT if event.source == "compact" else place.session_id,
            max_tokens=MAX_TOKENS,
            deadline_ms=max(1, int((wait_s - ON_THE_WAY_S) * 1000)),
        )
    except NotFound as error:
        if error.code != UNKNOWN_AGENT:
            raise
        return ""
    shown = session_file(folder, event.session_id, "shown")
    known = "" if starts else read_state(shown).get("stable_etag")
    blocks = found.stable_prefix if found.stable_etag != known else ""
    if blocks or starts:
        try:
            write_state(shown, {"stable_etag": found.stable_etag})
            if starts:
                forget_old_sessions(folder, time.time())
        except OSError as error:
            report(f"the state cannot be written, so memories may be repeated: {error}")
    has_finds = bool(found.relevant_messages or found.relevant_memories)
    tail = found.volatile_tail if has_finds and (starts or found.evidence != "none") else ""
    context = fitted([part for part in (blocks, tail) if part])
    return prefaced(context)


def _query_of_start(event: Event, place: Project) -> str:
    """Return the last prompt if the session continues, otherwise a query about the project."""
    last = ""
    if event.source in ("resume", "compact") and event.transcript_path:
        last = _last_prompt(event)
    words = " ".join(re.split(r"[\W_]+", place.project)).strip()
    return _cut(last) or f"The latest about {words or place.project}"


def _last_prompt(event: Event) -> str:
    try:
        with Transcript(Path(event.transcript_path).expanduser(), event.session_id) as transcript:
            return transcript.last("user")
    except (OSError, ValueError):  # a session that has no transcript yet is one without a last prompt
        return ""


def _query_of_prompt(prompt: str) -> str:
    """Return the query of a prompt; of a command its arguments. Empty for prompts that the program itself submits."""
    text = typed_text(prompt)
    if text.startswith("/"):
        text = text.partition(" ")[2].strip()
    return _cut(text)


def _cut(text: str) -> str:
    """Both ends of a long text: the question is usually before or after pasted text."""
    clean = text.encode(errors="replace").decode().replace("\0", "")
    half = MAX_QUERY_CHARS // 2
    return clean if len(clean) <= MAX_QUERY_CHARS else f"{clean[:half]}\n{clean[-half:]}"
