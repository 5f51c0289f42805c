"""The hooks `stop` and `pre-compact`: they send new messages to the service.

Two cursors record how far the transcript of a session is stored as messages, and how far it was submitted for
extraction. A window is recorded before it is sent, and completed after the service accepted it. After a lost answer it
is sent again unchanged, with the same Idempotency-Key. Without a cursor for this file, the service is asked for the
uuids of the stored messages, which are in their metadata.

Invariants: nothing is stored twice; only one hook of a session sends at a time; messages that do not fit the time limit
are sent by the next hook. Messages that the service refuses permanently are skipped and reported.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from souvenir_client.calls import NOT_SENT
from souvenir_client.errors import ApiError, NotFound, Overloaded
from souvenir_client.hooks.budget import Budget
from souvenir_client.hooks.events import Event, Hook, Report
from souvenir_client.hooks.project import Project
from souvenir_client.hooks.service import UNKNOWN_AGENT, Service
from souvenir_client.hooks.state import locked, read_state, session_file, write_state
from souvenir_client.hooks.transcripts import WINDOW_CHARS, Cursor, Transcript, Window
from souvenir_client.hooks.turns import TranscriptTurn

LEAST_ROUND_S = 0.3
"""Nothing further is sent with less time than this."""

SETTLING_S = 1.0
SETTLING_POLL_S = 0.05
"""Claude Code sometimes runs the hook before it has written the last answer; the hook waits for it briefly."""

EXTRACT_CHARS = 40_000
EXTRACT_TURN_CHARS = 20_000
"""Limit of a request and of a message in it, below the 120,000 characters of the service, also as JSON."""

MAX_EXTRACTIONS: Mapping[Hook, int] = {Hook.STOP: 1, Hook.PRE_COMPACT: 4}
"""Extraction requests of one hook: each is work for a language model. The next hook sends the rest."""

KNOWN_PAGE = 500
MAX_KNOWN = 20_000
"""Maximum number of stored turns to look up if the cursor of a session does not match its transcript."""

CONTEXTS: Mapping[Hook, str] = {Hook.STOP: "stop", Hook.PRE_COMPACT: "pre_compact"}

NOT_IMPLEMENTED = 501
"""No model is configured for extraction."""
FORBIDDEN = 403
"""The key may store messages, but not extract."""
REFUSED_FOR_GOOD = frozenset({400, 409, 413, 422})


def capture(
    hook: Hook, event: Event, place: Project, service: Service, folder: Path, budget: Budget, report: Report
) -> None:
    """Send the new part of the transcript.

    :param folder: Folder of the state.
    :raises SouvenirError: If the service cannot be reached, or refuses.
    :raises OSError: If the transcript cannot be read, or the state cannot be written.
    """
    if not event.transcript_path:
        return
    path = session_file(folder, event.session_id, "sent")
    with locked(path, wait_s=0) as mine:
        if not mine:
            return
        with Transcript(Path(event.transcript_path).expanduser(), event.session_id) as transcript:
            if hook is Hook.STOP:
                _let_settle(transcript, event.last_answer, budget)
            _Sending(hook, event, place, service, transcript, path, budget, report).run()


class _Sending:
    """One hook's work on one transcript, under the lock of its session."""

    def __init__(
        self,
        hook: Hook,
        event: Event,
        place: Project,
        service: Service,
        transcript: Transcript,
        path: Path,
        budget: Budget,
        report: Report,
    ) -> None:
        self._hook, self._event, self._place = hook, event, place
        self._service, self._transcript, self._path = service, transcript, path
        self._budget, self._report = budget, report
        self._doubted_until = 0
        self._known: Mapping[str, None] = {}
        self._stored, self._learned = self._cursors()

    def run(self) -> None:
        while self._may_go_on():
            window = self._window(self._stored)
            if window.is_end:
                break
            self._store(window)
        # The first of possibly many stops after a stop hook made Claude continue; extraction waits for the last one.
        if not self._event.stop_hook_active:
            self._learn_from_the_rest()

    def _learn_from_the_rest(self) -> None:
        asked = 0
        while asked < MAX_EXTRACTIONS[self._hook] and self._may_go_on() and self._learned.offset < self._stored.offset:
            window = self._window(self._learned, up_to=self._stored.offset)
            if window.is_end:
                break
            said = [turn for turn in window.turns if not turn.tool_calls]
            asked += bool(said)
            if not self._learn(window, said):
                break

    def _store(self, window: Window) -> None:
        messages = [message_of(turn) for turn in window.turns if turn.uuid not in self._known]
        if messages:
            self._write(stored=_tried(self._stored, window))
            try:
                self._service.messages.add_batch(
                    agent_name=self._place.agent,
                    session_id=self._place.session_id,
                    messages=messages,
                    idempotency_key=self._key("messages", window, messages),
                )
            except ApiError as error:
                if not _is_final(error):
                    raise
                self._report(f"{len(messages)} turns were skipped: the service refused them: {error}")
        self._write(stored=window.after)

    def _learn(self, window: Window, said: Sequence[TranscriptTurn]) -> bool:
        """:returns: True if the service accepted it, or refuses it permanently."""
        if said:
            self._write(learned=_tried(self._learned, window))
            text = _transcript_of(said)
            try:
                self._service.extraction.start(
                    messages=text,
                    source=self._place.source,
                    context=CONTEXTS[self._hook],
                    session=self._place.session_id,
                    idempotency_key=self._key(CONTEXTS[self._hook], window, text),
                    document_at=said[0].said_at or NOT_SENT,
                )
            except Overloaded:
                return False
            except ApiError as error:
                if not _is_final(error) and error.status not in (FORBIDDEN, NOT_IMPLEMENTED):
                    raise
                if error.status != NOT_IMPLEMENTED:
                    self._report(f"{len(said)} turns were not extracted: the service refused them: {error}")
        self._write(learned=window.after)
        return True

    def _window(self, cursor: Cursor, up_to: int | None = None) -> Window:
        """Return the next window; one that was tried before is read again unchanged, whatever time is left."""
        max_chars = WINDOW_CHARS if up_to is None else EXTRACT_CHARS
        if cursor.until is not None:
            return self._transcript.window(cursor, until=cursor.until, max_chars=max_chars)
        return self._transcript.window(cursor, until=up_to, max_chars=max_chars, may_go_on=self._may_go_on)

    def _may_go_on(self) -> bool:
        return self._budget.wait_s >= LEAST_ROUND_S

    def _cursors(self) -> tuple[Cursor, Cursor]:
        state = read_state(self._path)
        stored, learned = Cursor.of(state.get("stored")), Cursor.of(state.get("learned"))
        doubted_until = state.get("doubted_until")
        self._doubted_until = doubted_until if type(doubted_until) is int else 0
        if stored is None or not self._transcript.holds(stored):
            stored = self._found_again(stored)
        elif stored.offset < self._doubted_until:
            self._known = self._uuids_of_the_service()
        if learned is None or not self._transcript.holds(learned):
            learned = (self._transcript.behind(learned.uuid) if learned else None) or stored
        return stored, learned

    def _found_again(self, stored: Cursor | None) -> Cursor:
        """The start in a file that does not match the cursor.

        Unless everything after it is known to be new, the uuids of the service are read until it is done, since the
        hook may be stopped in between.
        """
        if stored is not None and stored.until is None:
            place = self._transcript.behind(stored.uuid)
            if place is not None:
                return place
        self._doubted_until = self._transcript.size
        self._known = self._uuids_of_the_service()
        newest = next(iter(self._known), "")
        return self._transcript.behind(newest) or self._transcript.before_others(self._known)

    def _uuids_of_the_service(self) -> Mapping[str, None]:
        """The messages of the session, newest first."""
        known: dict[str, None] = {}
        for offset in range(0, MAX_KNOWN, KNOWN_PAGE):
            try:
                page = self._service.messages.list(
                    self._place.agent, session_id=self._place.session_id, offset=offset, limit=KNOWN_PAGE
                )
            except NotFound as error:
                if error.code != UNKNOWN_AGENT:
                    raise
                break
            uuids = ((message.metadata or {}).get("uuid") for message in page)
            known.update((uuid, None) for uuid in uuids if isinstance(uuid, str) and uuid)
            if len(page) < KNOWN_PAGE:
                break
        return known

    def _write(self, *, stored: Cursor | None = None, learned: Cursor | None = None) -> None:
        self._stored, self._learned = stored or self._stored, learned or self._learned
        cursors = {"stored": asdict(self._stored), "learned": asdict(self._learned)}
        write_state(self._path, {**cursors, "doubted_until": self._doubted_until})

    def _key(self, kind: str, window: Window, body: Any) -> str:
        whole = [kind, self._place.agent, self._place.session_id, window.start, window.after.offset, body]
        return hashlib.sha256(json.dumps(whole).encode()).hexdigest()


def _is_final(error: ApiError) -> bool:
    """Return True if the service itself, not a proxy, refuses this permanently."""
    return bool(error.code) and error.status in REFUSED_FOR_GOOD


def _tried(cursor: Cursor, window: Window) -> Cursor:
    return Cursor(cursor.offset, cursor.tail, cursor.uuid, window.after.offset)


def message_of(turn: TranscriptTurn) -> dict[str, Any]:
    """The message in the form of the HTTP API."""
    metadata: dict[str, Any] = {"client": "claude-code", "uuid": turn.uuid}
    if turn.tool_calls:
        metadata["tool_calls"] = list(turn.tool_calls)
    message = {"role": turn.role, "content": turn.text, "metadata": metadata}
    return {**message, "created_at": turn.said_at} if turn.said_at else message


def _transcript_of(said: Sequence[TranscriptTurn]) -> str:
    turns = [{"role": turn.role, "content": turn.text[:EXTRACT_TURN_CHARS]} for turn in said]
    return json.dumps(turns, ensure_ascii=False)


def _let_settle(transcript: Transcript, last_answer: str, budget: Budget) -> None:
    """Wait until the transcript ends with the last answer."""
    wanted = " ".join(last_answer.split())
    end = time.monotonic() + min(SETTLING_S, budget.wait_s / 4)
    while wanted and wanted not in (found := " ".join(transcript.last("assistant").split())):
        if (found and found in wanted) or time.monotonic() >= end:
            return
        time.sleep(SETTLING_POLL_S)
