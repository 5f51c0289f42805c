"""Privacy: an agent's policy, the re-scan of stored texts, and erasure."""

from __future__ import annotations

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
from souvenir.memories.erasure import Erasure
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
    source: Source | None = Field(default=None, description="Memories of this source and of sources below it.")
    block: _Name | None = Field(default=None, description="The label of a block, which is erased with its history.")

    @model_validator(mode="after")
    def _one_at_most(self) -> Self:
        if len(self._parts()) > 1:
            raise ValueError("takes at most one field beside agent_name")
        return self

    def _parts(self) -> list[tuple[Chooses, str | int]]:
        fields = [(chooses, getattr(self, chooses)) for chooses in Chooses if chooses is not Chooses.AGENT]
        return [(chooses, value) for chooses, value in fields if value is not None]

    def selection(self) -> Selection:
        chooses, value = next(iter(self._parts()), (Chooses.AGENT, self.agent_name))
        return Selection(self.agent_name, chooses, value)


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

    def selection(self) -> Selection:
        """:raises NothingToDo: If it is not confirmed."""
        if not self.confirm:
            raise NothingToDo("Nothing was erased; send confirm true to erase for good what the selector names")
        return self.selector.selection()


class EraseResponse(BaseModel):
    """The receipt of an erasure."""

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
    selection = body.selection()
    with frees_space(), service.removals.working() as work:
        parameters = service.erasure.begin(selection, work, backups=body.backups)
        if selection.chooses in (Chooses.AGENT, Chooses.SOURCE):
            is_source = selection.chooses is Chooses.SOURCE
            service.usage.forget(selection.namespace, str(selection.value) if is_source else None)
        service.audit.act(scope, "erase", work, detail=selection.chooses.value)
        result = service.erasure_work.run(Erasure.kind, scope, parameters, wait_s=wait_s, job_id=work)
    return result if isinstance(result, JSONResponse) else EraseResponse.model_validate(result)
