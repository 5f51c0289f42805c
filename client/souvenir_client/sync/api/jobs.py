"""Operations of the section `jobs`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segment
from souvenir_client.records.enums import JobStatus
from souvenir_client.records.jobs import JobRecord, JobsResponse
from souvenir_client.sync.transport import Transport


class Jobs:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self,
        *,
        status: JobStatus | NotSent | None = NOT_SENT,
        kind: str | NotSent | None = NOT_SENT,
        limit: int | NotSent = NOT_SENT,
        offset: int | NotSent = NOT_SENT,
    ) -> JobsResponse:
        """List the jobs of this namespace, newest first; who is no admin sees only their own. `GET /jobs`."""
        return self._transport.send(
            Call(
                "GET",
                "/jobs",
                {200: JobsResponse},
                query={"status": status, "kind": kind, "limit": limit, "offset": offset},
                repeat=Repeat.SAFE,
            )
        )

    def get(self, job_id: str) -> JobRecord:
        """Say how far a job is, and what came of it. `GET /jobs/{job_id}`."""
        return self._transport.send(Call("GET", f"/jobs/{segment(job_id)}", {200: JobRecord}, repeat=Repeat.SAFE))

    def cancel(self, job_id: str) -> JobRecord:
        """End a job that waits at once, and one that runs at its next checkpoint; what it did until then stays.

        `POST /jobs/{job_id}/cancel`.
        """
        return self._transport.send(Call("POST", f"/jobs/{segment(job_id)}/cancel", {200: JobRecord}))
