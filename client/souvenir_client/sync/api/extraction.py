"""Operations of the section `extraction`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segment
from souvenir_client.records.common import JobAccepted
from souvenir_client.records.extraction import (
    DiffResponse,
    ExtractAccepted,
    ExtractJob,
    ExtractResult,
    ExtractStatus,
    UndoResponse,
)
from souvenir_client.sync.transport import Transport


class Extraction:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def start(
        self,
        *,
        messages: str,
        idempotency_key: str | NotSent = NOT_SENT,
        source: str | NotSent = NOT_SENT,
        context: str | NotSent = NOT_SENT,
        debug: bool | NotSent = NOT_SENT,
        dry_run: bool | NotSent = NOT_SENT,
        document_at: str | datetime | NotSent | None = NOT_SENT,
        store_messages: bool | NotSent = NOT_SENT,
        session: str | NotSent | None = NOT_SENT,
        user: str | NotSent | None = NOT_SENT,
    ) -> ExtractAccepted:
        """Take a transcript to find in it what is worth keeping and what it corrects; the work goes on as a job.

        `POST /memory/extract`.
        """
        return self._transport.send(
            Call(
                "POST",
                "/memory/extract",
                {202: ExtractAccepted},
                headers={"Idempotency-Key": idempotency_key},
                body={
                    "messages": messages,
                    "source": source,
                    "context": context,
                    "debug": debug,
                    "dry_run": dry_run,
                    "document_at": document_at,
                    "store_messages": store_messages,
                    "session": session,
                    "user": user,
                },
                repeat=Repeat.KEYED,
            )
        )

    def get(self, job_id: str) -> ExtractJob:
        """Say how far an extraction is, and what came of it; who is no admin sees only their own.

        `GET /memory/extract/{job_id}`.
        """
        return self._transport.send(
            Call("GET", f"/memory/extract/{segment(job_id)}", {200: ExtractJob}, repeat=Repeat.SAFE)
        )

    def cancel(self, job_id: str) -> ExtractJob:
        """End an extraction that waits at once, and one that runs before its next step; nothing of it is applied.

        `DELETE /memory/extract/{job_id}`.
        """
        return self._transport.send(Call("DELETE", f"/memory/extract/{segment(job_id)}", {200: ExtractJob}))

    def status(self) -> ExtractStatus:
        """Say which model learns, whether it answered of late, and how many extractions wait; no model is asked.

        `GET /extract/status`.
        """
        return self._transport.send(Call("GET", "/extract/status", {200: ExtractStatus}, repeat=Repeat.SAFE))

    def commit(
        self, *, actions: Sequence[Mapping[str, Any]], source: str, wait_s: float | NotSent = NOT_SENT
    ) -> ExtractResult | JobAccepted:
        """Apply the approved ones of these actions, all or none, as an extraction of its own that can be undone.

        `POST /memory/extract/commit`.
        """
        return self._transport.send(
            Call(
                "POST",
                "/memory/extract/commit",
                {200: ExtractResult, 202: JobAccepted},
                query={"wait_s": wait_s},
                body={"actions": actions, "source": source},
            )
        )

    def approve(self, job_id: str, *, wait_s: float | NotSent = NOT_SENT) -> ExtractJob:
        """Approve an extraction.

        Let an extraction delete what it decided to, though that is more than EXTRACT_MAX_DELETES; it goes on at
        once.

        `POST /memory/extract/{job_id}/approve`.
        """
        return self._transport.send(
            Call("POST", f"/memory/extract/{segment(job_id)}/approve", {200: ExtractJob}, query={"wait_s": wait_s})
        )

    def undo(self, job_id: str) -> UndoResponse:
        """Take back all that an extraction changed, to the byte; 409 names what was changed since.

        `POST /memory/extract/{job_id}/undo`.
        """
        return self._transport.send(Call("POST", f"/memory/extract/{segment(job_id)}/undo", {200: UndoResponse}))

    def rerun(self, job_id: str, *, model: str | NotSent | None = NOT_SENT) -> ExtractAccepted:
        """Read the transcript of a finished extraction again as a dry run, with another model if one is named.

        `POST /memory/extract/{job_id}/rerun`.
        """
        return self._transport.send(
            Call("POST", f"/memory/extract/{segment(job_id)}/rerun", {202: ExtractAccepted}, body={"model": model})
        )

    def diff(self, job_id: str, *, other: str) -> DiffResponse:
        """Say which facts two extractions of one transcript share, and which only one of them found.

        `GET /memory/extract/{job_id}/diff`.
        """
        return self._transport.send(
            Call(
                "GET",
                f"/memory/extract/{segment(job_id)}/diff",
                {200: DiffResponse},
                query={"other": other},
                repeat=Repeat.SAFE,
            )
        )
