"""What the routes take and answer that go on with a finished extraction: commit, approve, undo, run again, compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from souvenir.api.extraction_models import JOB_ID, ExtractResult
from souvenir.api.fields import MAX_ID, MAX_TEXT_CHARS, Clean, Source, Text
from souvenir.decisions import Category, FactRow, Verdict
from souvenir.extraction.choosing import ChosenAction
from souvenir.extraction.comparing import Difference, Pair
from souvenir.extraction.effects import FALLBACK_ADD
from souvenir.extraction.results import action_of
from souvenir.extraction.undoing import Undone

MAX_ACTIONS = 1_000
"""In one commit."""

OTHER_JOB_ID = "7b1e0c9d4f2a4e3b8c6d5a7f9e8b1c20"
_TEXT = "Billing moves to Postgres 17 in May."
_ACTION: dict[str, Any] = {"action": "add", "text": _TEXT, "job_id": JOB_ID, "ordinal": 0}

_VERDICTS = {FALLBACK_ADD: Verdict.ADD, **{verdict.value.lower(): verdict for verdict in Verdict}}
_TARGETS = {Verdict.UPDATE: "old_id", Verdict.DELETE: "old_id", Verdict.NOOP: "existing_id"}

Action = dict[str, Any]
ModelName = Annotated[str, StringConstraints(min_length=1, max_length=200), Clean]
_Id = Annotated[int, Field(ge=0, le=MAX_ID)]


class CommitFact(BaseModel):
    """What an action is about."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": _TEXT, "category": "DECISION"}]})

    text: Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS), Clean] = ""
    category: Category | None = None


class CommitAction(BaseModel):
    """An action as the result of a dry run has it, or one that somebody made up."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**_ACTION, "approved": True}]})

    approved: bool = Field(default=False, description="Only what is approved is done.")
    action: str = Field(
        default="", max_length=20, description="`add`, `update`, `delete`, `noop`, `conflict` or `fallback_add`."
    )
    text: Text | None = Field(default=None, description="What is stored; unset takes that of the dry run.")
    new_text: Text | None = Field(default=None, description="Of an `update`: what takes the old text's place.")
    old_id: _Id | None = Field(default=None, description="The memory that is updated or deleted.")
    existing_id: _Id | None = Field(default=None, description="Of a `noop`: the memory that says it already.")
    conflicts_with: _Id | None = Field(default=None, description="Of a `conflict`: the memory that contradicts it.")
    category: Category | None = Field(default=None, description="Of one that somebody made up.")
    fact: CommitFact | None = Field(
        default=None, description="Of one that somebody made up: its text and category, unless they stand beside it."
    )
    job_id: Annotated[str, StringConstraints(max_length=100), Clean] | None = Field(
        default=None, description="The dry run that it comes from; unset, somebody made it up."
    )
    ordinal: Annotated[int, Field(ge=0, le=2**31)] | None = Field(
        default=None, description="Its place in the ledger of that."
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
            # What a dry run would have stored, it shows twice.
            text = None if self.job_id is not None and self.new_text == self.text else self.new_text or text
        target: int | None = getattr(self, _TARGETS.get(verdict, "conflicts_with"))
        return ChosenAction(verdict, text, target, self.category or made_up.category, self.job_id, self.ordinal)


class CommitRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"actions": [{"action": "add", "text": _TEXT, "approved": True}], "source": "claude-code/billing"}
            ]
        }
    )

    actions: list[CommitAction] = Field(max_length=MAX_ACTIONS, description="Those of a dry run's result, or some.")
    source: Source = Field(description="That of the dry run.")

    def chosen(self) -> list[ChosenAction]:
        return [one.chosen() for one in self.actions if one.approved]


NOTHING_DONE = ExtractResult(actions=[], extracted_count=0, stored_count=0, updated_count=0, deleted_count=0)
"""The answer if nothing is approved."""


class UndoResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"success": True, "job_id": JOB_ID, "removed": [12], "restored": [7]}]}
    )

    success: bool
    job_id: str
    removed: list[int] = Field(description="Memories that it had stored.")
    restored: list[int] = Field(description="Memories that it had archived.")

    @classmethod
    def of(cls, undone: Undone) -> Self:
        return cls(success=True, job_id=undone.job_id, removed=list(undone.removed), restored=list(undone.restored))


class RerunRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "llama3.1:70b"}]})

    model: ModelName | None = Field(
        default=None, description="The provider's name of the model to ask; unset takes EXTRACT_MODEL."
    )


class FactPair(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"first": _ACTION, "second": _ACTION}]})

    first: Action = Field(description="As the result of the first job has it.")
    second: Action


class DiffResponse(BaseModel):
    """What two extractions of one transcript have in common, and where they differ."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "first": JOB_ID,
                    "second": OTHER_JOB_ID,
                    "agreed": [],
                    "decided_otherwise": [],
                    "only_first": [_ACTION],
                    "only_second": [],
                }
            ]
        }
    )

    first: str
    second: str
    agreed: list[FactPair] = Field(description="Facts of both, decided alike.")
    decided_otherwise: list[FactPair] = Field(description="Facts of both, with another verdict or memory.")
    only_first: list[Action]
    only_second: list[Action]

    @classmethod
    def of(cls, first: str, second: str, difference: Difference) -> Self:
        def shown(row: FactRow, job_id: str) -> Action:
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
