"""Privacy: an agent's policy, the re-scan of stored texts, and erasure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Self

from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from souvenir.api.agents import RemovedCounts
from souvenir.api.fields import Clean, MemoryId, Source
from souvenir.api.parameters import AgentAdmin, AgentName, AgentReader
from souvenir.conversations.privacy_rescan import PrivacyRescan
from souvenir.core.concurrency import frees_space
from souvenir.core.errors import NothingToDo
from souvenir.core.types import JsonObject
from souvenir.memories.erasure import TARGETS_AT_ONCE, Erasure, ErasurePreview
from souvenir.privacy.policy import Action, PrivacyPolicy
from souvenir.server.job_responses import ACCEPTED, DEFAULT_WAIT_S, WaitS
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import NOTHING, Admin, RunningService
from souvenir.server.routing import Routes
from souvenir.store.selection import Chooses, Selection

routes = Routes("privacy")

_Topic = Annotated[str, StringConstraints(min_length=1, max_length=100)]

_POLICY_EXAMPLE: dict[str, Any] = {"secrets": "redact", "pii": "flag", "hidden_topics": ["health"]}


class PolicyRequest(BaseModel):
    """Omitted or null fields take the value of the rules file."""

    model_config = ConfigDict(json_schema_extra={"examples": [_POLICY_EXAMPLE]})

    secrets: Action | None = Field(
        default=None, description="The action for API keys, tokens, passwords and similar secrets."
    )
    pii: Action | None = Field(
        default=None, description="The action for personal data: e-mail addresses, phone numbers, cards."
    )
    hidden_topics: Annotated[list[_Topic], Field(max_length=100)] | None = Field(
        default=None, description="Sensitive topics that are excluded from the agent's context."
    )

    def changes(self) -> JsonObject:
        return self.model_dump(mode="json", exclude_none=True)


class PolicyRecord(BaseModel):
    secrets: Action
    pii: Action
    hidden_topics: list[str] = Field(examples=[["health"]])

    @classmethod
    def of(cls, policy: PrivacyPolicy) -> PolicyRecord:
        return cls(secrets=policy.secrets, pii=policy.pii, hidden_topics=list(policy.hidden_topics))


class RescanResponse(BaseModel):
    looked_at: int = Field(description="Memories, messages and other texts.")
    changed: int = Field(description="The number of texts with findings.")


@routes.get(
    "/agents/{agent_name}/policy",
    summary="Get an agent's privacy policy",
    cost=CostClass.LIGHT,
    access=NOTHING,
    sdk="agents.policy",
    errors=[404],
)
def get_policy(scope: AgentReader, service: RunningService) -> PolicyRecord:
    """Get the effective privacy policy of an agent: its own settings, with the rules file as default."""
    service.agents.get(scope)
    return PolicyRecord.of(service.engine.screening.policy(scope))


@routes.put(
    "/agents/{agent_name}/policy",
    summary="Set an agent's privacy policy",
    cost=CostClass.LIGHT,
    sdk="agents.set_policy",
    errors=[404],
)
def set_policy(body: PolicyRequest, scope: AgentAdmin, service: RunningService) -> PolicyRecord:
    """Set how an agent handles secrets, personal data and sensitive topics from now on."""
    service.agents.set_policy(scope, body.changes())
    service.audit.act(scope, "policy.set", scope.namespace)
    return PolicyRecord.of(service.engine.screening.policy(scope))


@routes.post(
    "/privacy/rescan",
    summary="Apply the privacy rules to stored data",
    cost=CostClass.LONG,
    sdk="privacy.rescan",
    response_model=RescanResponse,
    errors=[409],
    responses=ACCEPTED,
)
def rescan(scope: Admin, service: RunningService, wait_s: WaitS = DEFAULT_WAIT_S) -> RescanResponse | JSONResponse:
    """Redact and flag everything stored in the namespace by the current rules and the agent's policy."""
    result = service.long_work.run(PrivacyRescan.kind, scope, {}, wait_s=wait_s)
    return result if isinstance(result, JSONResponse) else RescanResponse.model_validate(result)


MAX_IDS = TARGETS_AT_ONCE
"""So many are selected in one transaction: all of them, or none."""

_Name = Annotated[str, StringConstraints(min_length=1, max_length=500), Clean]


class EraseSelector(BaseModel):
    """An agent, or a part of its data given by one more field."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"agent_name": "my_agent", "user": "ann"}]})

    agent_name: AgentName
    user: _Name | None = Field(
        default=None,
        description="A user, with their messages, the sessions that only they took part in, and the memories "
        "learned from them.",
    )
    session_id: _Name | None = Field(
        default=None, description="A session, with its messages and the memories learned from it."
    )
    message_id: _Name | None = None
    memory_id: MemoryId | None = None
    message_ids: Annotated[list[_Name], Field(min_length=1, max_length=MAX_IDS)] | None = Field(
        default=None, description=f"Several messages; at most {MAX_IDS:,} ids together with `memory_ids`."
    )
    memory_ids: Annotated[list[MemoryId], Field(min_length=1, max_length=MAX_IDS)] | None = Field(
        default=None,
        description="Several memories, also together with `message_ids`. Ids that are stored nowhere are ignored.",
        examples=[[12, 99]],
    )
    source: Source | None = Field(default=None, description="Memories of this source and of sources below it.")
    block: _Name | None = Field(default=None, description="The label of a block, which is erased with its history.")

    @model_validator(mode="after")
    def _one_at_most(self) -> Self:
        chosen = [chooses for chooses, _ in self._parts()]
        if len(chosen) > 1 and chosen != [Chooses.MESSAGES, Chooses.MEMORIES]:
            raise ValueError("takes at most one field in addition to agent_name, or message_ids and memory_ids")
        if len(self.message_ids or ()) + len(self.memory_ids or ()) > MAX_IDS:
            raise ValueError(f"takes at most {MAX_IDS:,} ids")
        return self

    def _parts(self) -> list[tuple[Chooses, str | int | list[str] | list[int]]]:
        fields = [(chooses, getattr(self, chooses)) for chooses in Chooses if chooses is not Chooses.AGENT]
        return [(chooses, value) for chooses, value in fields if value is not None]

    def selections(self) -> list[Selection]:
        return [
            Selection(self.agent_name, chooses, tuple(value) if isinstance(value, list) else value)
            for chooses, value in self._parts() or [(Chooses.AGENT, self.agent_name)]
        ]


class ErasePreviewRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"selector": {"agent_name": "my_agent", "user": "ann"}}]})

    selector: EraseSelector = Field(description="The data to count, as `POST /erase` takes it.")


class SelectedCounts(BaseModel):
    """The number of rows by kind, as in `removed` of the receipt. Derived rows, such as vectors, are not counted."""

    agents: int
    users: int
    sessions: int
    messages: int
    memories: int = Field(description="Including archived ones, and those learned from a user or session.")
    facts: int = Field(description="Facts of memories.")
    tags: int = Field(description="Tags of memories, counted per memory.")
    blocks: int
    block_versions: int = Field(description="Versions of the blocks.")
    links: int = Field(description="Links between memories.")


class ErasePreviewResponse(BaseModel):
    would_remove: SelectedCounts
    only_in_backups: int = Field(description="The number of objects that only backups contain.", examples=[0])
    backups_holding: list[str] = Field(
        description="Backups that contain any of it, or that cannot be read.", examples=[["scheduled_20250402_093000"]]
    )

    @classmethod
    def of(cls, preview: ErasurePreview) -> Self:
        return cls(
            would_remove=SelectedCounts(**asdict(preview.rows)),
            only_in_backups=preview.only_in_backups,
            backups_holding=list(preview.holding),
        )


class EraseRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"selector": {"agent_name": "my_agent", "user": "ann"}, "confirm": True, "backups": True},
            ]
        }
    )

    selector: EraseSelector = Field(description="The data to erase.")
    confirm: bool = Field(default=False, description="Must be true: an erasure cannot be undone.")
    backups: bool = Field(
        default=False, description="Also erase it from backups: rewrite or delete the backups that contain it."
    )

    def selections(self) -> list[Selection]:
        """:raises NothingToDo: If it is not confirmed."""
        if not self.confirm:
            raise NothingToDo("Nothing was erased; send confirm true to erase for good what the selector names")
        return self.selector.selections()


class EraseResponse(BaseModel):
    """The receipt of an erasure."""

    job_id: str = Field(
        description="The job of the erasure, which `GET /jobs` and the audit name and which keeps the receipt.",
        examples=["0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d"],
    )
    removed: RemovedCounts
    postings: int = Field(description="Removed entries of the full-text indexes.")
    tombstones: int = Field(
        description="Tombstones that prevent a restore from bringing the data back, including those in backups."
    )
    files_cleared: bool = Field(
        description="True if the database files no longer contain the data; retried while a long read still needs them."
    )
    backups_rewritten: list[str] = Field(
        description="Backups from which the data was erased.", examples=[["scheduled_20250402_093000"]]
    )
    backups_dropped: list[str] = Field(
        description="Backups and files of old restores that had to be deleted.", examples=[[]]
    )
    backups_holding: list[str] = Field(
        description="Files that still contain erased data, from this or an earlier erasure.", examples=[[]]
    )


@routes.post(
    "/erase/preview",
    summary="Count what an erasure would remove",
    cost=CostClass.LONG,
    sdk="privacy.preview_erasure",
    idempotent=True,
    errors=[404],
)
def preview_erasure(body: ErasePreviewRequest, scope: Admin, service: RunningService) -> ErasePreviewResponse:
    """Count the rows that an erasure would remove now, and name the backups that contain them; changes nothing."""
    return ErasePreviewResponse.of(service.erasure.preview(body.selector.selections()))


@routes.post(
    "/erase",
    summary="Erase data permanently",
    cost=CostClass.LONG,
    sdk="privacy.erase",
    response_model=EraseResponse,
    errors=[400, 404],
    responses=ACCEPTED,
)
def erase(
    body: EraseRequest, scope: Admin, service: RunningService, wait_s: WaitS = DEFAULT_WAIT_S
) -> EraseResponse | JSONResponse:
    """Erase an agent, or part of its data, so that no restore brings it back, and return counts of the erased rows."""
    selections = body.selections()
    with frees_space(), service.removals.working() as work:
        parameters = service.erasure.begin(selections, work, backups=body.backups)
        for selection in selections:
            if selection.chooses in (Chooses.AGENT, Chooses.SOURCE):
                is_source = selection.chooses is Chooses.SOURCE
                service.usage.forget(selection.namespace, str(selection.value) if is_source else None)
        service.audit.act(scope, "erase", work, detail=", ".join(selection.chooses for selection in selections))
        result = service.erasure_work.run(Erasure.kind, scope, parameters, wait_s=wait_s, job_id=work)
    return result if isinstance(result, JSONResponse) else EraseResponse.model_validate(result)
