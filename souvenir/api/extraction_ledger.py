"""Follow-ups of a finished extraction: commit a dry run, approve, undo, rerun and compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self

from fastapi import Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from souvenir.api.extraction import JOB_ID, QUEUE_FULL, ExtractAccepted, ExtractResult
from souvenir.api.extraction_jobs import ExtractJob
from souvenir.api.fields import MAX_ID, MAX_TEXT_CHARS, Clean, Source, StoredText
from souvenir.api.jobs import AllActors, JobId
from souvenir.core.ledger import Category, FactRow, Verdict
from souvenir.learning.application import FALLBACK_ADD
from souvenir.learning.choices import ChosenAction
from souvenir.learning.ledger import Difference, Pair
from souvenir.learning.results import action_of
from souvenir.learning.undo import Undone
from souvenir.server.job_responses import ACCEPTED, DEFAULT_WAIT_S, WaitS, result_of
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import REMEMBERED, Reader, RunningService, Writer
from souvenir.server.routing import Routes

routes = Routes("extraction")

MAX_ACTIONS = 1_000
"""In one commit."""

OTHER_JOB_ID = "7b1e0c9d4f2a4e3b8c6d5a7f9e8b1c20"
_TEXT = "Billing moves to Postgres 17 in May."
_ACTION: dict[str, Any] = {"action": "add", "text": _TEXT, "job_id": JOB_ID, "ordinal": 0}

_VERDICTS = {FALLBACK_ADD: Verdict.ADD, **{verdict.value.lower(): verdict for verdict in Verdict}}
_TARGETS = {Verdict.UPDATE: "old_id", Verdict.DELETE: "old_id", Verdict.NOOP: "existing_id"}

LedgerAction = dict[str, Any]
AnyCase = Annotated[
    str,
    StringConstraints(pattern="^(decision|learning|detail|DECISION|LEARNING|DETAIL)$"),
]
ModelName = Annotated[str, StringConstraints(min_length=1, max_length=200), Clean]
_Id = Annotated[int, Field(ge=0, le=MAX_ID)]


class CommitFact(BaseModel):
    """The fact of an action."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": _TEXT, "category": "decision"}]})

    text: Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS), Clean] = ""
    category: AnyCase | None = Field(default=None, examples=["decision"])


class CommitAction(BaseModel):
    """An action from the result of a dry run, or one made by the caller."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**_ACTION, "approved": True}]})

    approved: bool = Field(default=False, description="Only approved actions are applied.")
    action: str = Field(
        default="",
        max_length=20,
        description="`add`, `update`, `delete`, `noop`, `conflict` or `fallback_add`, in any case.",
    )
    text: StoredText | None = Field(default=None, description="The text to store; the text of the dry run by default.")
    new_text: StoredText | None = Field(default=None, description="For `update`: the text that replaces the old text.")
    old_id: _Id | None = Field(default=None, description="The memory that is updated or deleted.")
    existing_id: _Id | None = Field(default=None, description="For `noop`: the memory that already states it.")
    conflicts_with: _Id | None = Field(default=None, description="For `conflict`: the memory that contradicts it.")
    category: AnyCase | None = Field(
        default=None, description="For an action made by the caller.", examples=["decision"]
    )
    fact: CommitFact | None = Field(
        default=None,
        description="For an action made by the caller: its text and category, unless they are given next to it.",
    )
    job_id: Annotated[str, StringConstraints(max_length=100), Clean] | None = Field(
        default=None, description="The dry run that it comes from; unset for an action made by the caller."
    )
    ordinal: Annotated[int, Field(ge=0, le=2**31)] | None = Field(
        default=None, description="Its ordinal in the ledger of that job."
    )

    @model_validator(mode="after")
    def _must_be_known(self) -> Self:
        if self.approved and self.action.lower() not in _VERDICTS:
            raise ValueError(f"action is one of {', '.join(_VERDICTS)}; leave out what is none of them")
        return self

    def chosen(self) -> ChosenAction:
        verdict = _VERDICTS[self.action.lower()]
        made_up = self.fact if self.job_id is None and self.fact is not None else CommitFact()
        text = self.text or made_up.text or None
        if verdict is Verdict.UPDATE:
            # A dry run shows the data that it would have stored in two places.
            text = None if self.job_id is not None and self.new_text == self.text else self.new_text or text
        category = self.category or made_up.category
        target: int | None = getattr(self, _TARGETS.get(verdict, "conflicts_with"))
        return ChosenAction(
            verdict, text, target, Category(category.upper()) if category else None, self.job_id, self.ordinal
        )


class CommitRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"actions": [{"action": "add", "text": _TEXT, "approved": True}], "source": "claude-code/billing"}
            ]
        }
    )

    actions: list[CommitAction] = Field(max_length=MAX_ACTIONS, description="All or some of the actions of a dry run.")
    source: Source = Field(description="The source of the dry run.")

    def chosen(self) -> list[ChosenAction]:
        return [one.chosen() for one in self.actions if one.approved]


NOTHING_DONE = ExtractResult(
    actions=[], extracted_count=0, stored_count=0, updated_count=0, deleted_count=0, conflict_count=0
)
"""The answer if nothing is approved."""


class UndoResponse(BaseModel):
    success: bool
    job_id: str
    removed: list[int] = Field(description="Memories that the extraction had added.")
    restored: list[int] = Field(description="Memories that the extraction had archived.")

    @classmethod
    def of(cls, undone: Undone) -> Self:
        return cls(success=True, job_id=undone.job_id, removed=list(undone.removed), restored=list(undone.restored))


class RerunRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "llama3.1:70b"}]})

    model: ModelName | None = Field(
        default=None, description="The model to use, as the provider names it; EXTRACT_MODEL by default."
    )


class FactPair(BaseModel):
    first: LedgerAction = Field(
        description="The action as in the result of the first job.",
        examples=[
            {
                "action": "add",
                "text": "Billing moves to Postgres 17 in May.",
                "job_id": "0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d",
                "ordinal": 0,
            }
        ],
    )
    second: LedgerAction = Field(
        examples=[
            {
                "action": "add",
                "text": "Billing moves to Postgres 17 in May.",
                "job_id": "0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d",
                "ordinal": 0,
            }
        ]
    )


class DiffResponse(BaseModel):
    """The common and the different facts of two extractions of one transcript."""

    first: str = Field(examples=["0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d"])
    second: str = Field(examples=["7b1e0c9d4f2a4e3b8c6d5a7f9e8b1c20"])
    agreed: list[FactPair] = Field(description="Facts of both extractions with the same verdict.")
    decided_otherwise: list[FactPair] = Field(
        description="Facts of both extractions with a different verdict or memory."
    )
    only_first: list[LedgerAction]
    only_second: list[LedgerAction]

    @classmethod
    def of(cls, first: str, second: str, difference: Difference) -> Self:
        def shown(row: FactRow, job_id: str) -> LedgerAction:
            return dict(action_of(row, job_id))

        def pairs(rows: Sequence[Pair]) -> list[FactPair]:
            return [FactPair(first=shown(one, first), second=shown(other, second)) for one, other in rows]

        return cls(
            first=first,
            second=second,
            agreed=pairs(difference.agreed),
            decided_otherwise=pairs(difference.decided_otherwise),
            only_first=[shown(row, first) for row in difference.only_first],
            only_second=[shown(row, second) for row in difference.only_second],
        )


_PATH = "/memory/extract"
_JOB = f"{_PATH}/{{job_id}}"
_OtherJob = Annotated[
    str,
    Query(
        min_length=1,
        max_length=100,
        description="The job id of the extraction to compare with.",
        examples=["7b1e0c9d4f2a4e3b8c6d5a7f9e8b1c20"],
    ),
]


@routes.post(
    f"{_PATH}/commit",
    summary="Commit the actions of a dry run",
    cost=CostClass.LONG,
    sdk="extraction.commit",
    response_model=ExtractResult,
    errors=[400, 404, 409],
    responses={**QUEUE_FULL, **ACCEPTED},
)
def commit(
    body: CommitRequest,
    scope: Writer,
    service: RunningService,
    all_actors: AllActors,
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> ExtractResult | JSONResponse:
    """Apply the approved actions, all or none, as a new extraction that can be undone."""
    chosen = body.chosen()
    if not chosen:
        return NOTHING_DONE
    job = service.extraction.ledger.commit(scope, chosen, body.source, all_actors=all_actors)
    done = service.extraction_work.waited(job, wait_s)
    result = result_of(done, shown_at=_PATH)
    return result if isinstance(result, JSONResponse) else ExtractResult.of(done, service.extraction)


@routes.post(
    f"{_JOB}/approve",
    summary="Approve an extraction",
    cost=CostClass.LONG,
    sdk="extraction.approve",
    errors=[404, 409],
    responses=QUEUE_FULL,
)
def approve(
    job_id: JobId, scope: Writer, service: RunningService, all_actors: AllActors, wait_s: WaitS = DEFAULT_WAIT_S
) -> ExtractJob:
    """Let an extraction delete more than EXTRACT_MAX_DELETES memories; it continues immediately."""
    job = service.extraction.ledger.approve(scope, job_id, all_actors=all_actors)
    service.extraction_work.waited(job, wait_s)
    return ExtractJob.of(*service.extraction.get(scope, job_id, all_actors=all_actors), service.extraction)


@routes.post(
    f"{_JOB}/undo",
    summary="Undo an extraction",
    cost=CostClass.WRITE,
    sdk="extraction.undo",
    errors=[404, 409],
)
def undo(job_id: JobId, scope: Writer, service: RunningService, all_actors: AllActors) -> UndoResponse:
    """Revert all changes of an extraction exactly; 409 lists what was changed since."""
    return UndoResponse.of(service.extraction.ledger.undo(scope, job_id, all_actors=all_actors))


@routes.post(
    f"{_JOB}/rerun",
    summary="Rerun an extraction",
    cost=CostClass.LIGHT,
    sdk="extraction.rerun",
    status_code=202,
    errors=[404, 409],
    responses=QUEUE_FULL,
)
def rerun(
    job_id: JobId,
    scope: Writer,
    service: RunningService,
    all_actors: AllActors,
    body: RerunRequest | None = None,
) -> ExtractAccepted:
    """Repeat a finished extraction as a dry run, optionally with another model."""
    model = (body or RerunRequest()).model
    job = service.extraction.ledger.rerun(scope, job_id, model=model, all_actors=all_actors)
    return ExtractAccepted.of(job, None, service.extraction)


@routes.get(
    f"{_JOB}/diff",
    summary="Compare two extractions",
    cost=CostClass.SEARCH,
    access=REMEMBERED,
    sdk="extraction.diff",
    errors=[404, 409],
)
def diff(
    job_id: JobId, other: _OtherJob, scope: Reader, service: RunningService, all_actors: AllActors
) -> DiffResponse:
    """List the facts that two extractions of one transcript share, and those that only one of them found."""
    return DiffResponse.of(job_id, other, service.extraction.ledger.diff(scope, job_id, other, all_actors=all_actors))
