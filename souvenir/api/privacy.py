"""What an agent does about secrets and personal data, and the job that applies it to what is stored already."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.agents import AgentName
from souvenir.api.caller import Admin, Reader, RunningService, agent_scope
from souvenir.api.errors import error_responses
from souvenir.api.json_route import router
from souvenir.api.long_work import ACCEPTED, DEFAULT_WAIT_S, WaitS
from souvenir.conversation.rescan import Rescan
from souvenir.privacy.policy import Action, PrivacyPolicy
from souvenir.types import JsonObject

routes = router("privacy")

_Topic = Annotated[str, StringConstraints(min_length=1, max_length=100)]

_POLICY_EXAMPLE: dict[str, Any] = {"secrets": "redact", "pii": "flag", "hidden_topics": ["health"]}


class PolicyRequest(BaseModel):
    """What is left out, or null, is as the rules file says."""

    model_config = ConfigDict(json_schema_extra={"examples": [_POLICY_EXAMPLE]})

    secrets: Action | None = Field(default=None, description="For API keys, tokens, passwords and the like.")
    pii: Action | None = Field(default=None, description="For personal data: e-mail addresses, phone numbers, cards.")
    hidden_topics: Annotated[list[_Topic], Field(max_length=100)] | None = Field(
        default=None, description="Sensitive topics that are kept out of the agent's context."
    )

    def changes(self) -> JsonObject:
        return self.model_dump(mode="json", exclude_none=True)


class PolicyRecord(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_POLICY_EXAMPLE]})

    secrets: Action
    pii: Action
    hidden_topics: list[str]

    @classmethod
    def of(cls, policy: PrivacyPolicy) -> PolicyRecord:
        return cls(secrets=policy.secrets, pii=policy.pii, hidden_topics=list(policy.hidden_topics))


class RescanResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"looked_at": 1204, "changed": 3}]})

    looked_at: int = Field(description="Memories, messages and other texts.")
    changed: int = Field(description="Those in which something was found.")


@routes.get("/agents/{agent_name}/policy", summary="Get an agent's privacy policy", responses=error_responses(404))
def get_policy(agent_name: AgentName, _: Reader, service: RunningService, request: Request) -> PolicyRecord:
    """Get what holds for an agent: its own policy, and the rules file for what that leaves out."""
    scope = agent_scope(request, agent_name)
    service.agents.get(scope)
    return PolicyRecord.of(service.engine.screening.policy(scope))


@routes.put("/agents/{agent_name}/policy", summary="Set an agent's privacy policy", responses=error_responses(404))
def set_policy(
    agent_name: AgentName, body: PolicyRequest, _: Admin, service: RunningService, request: Request
) -> PolicyRecord:
    """Set what an agent does from now on about secrets, personal data and sensitive topics."""
    scope = agent_scope(request, agent_name)
    service.agents.set_policy(scope, body.changes())
    service.audit.act(scope, "policy.set", agent_name)
    return PolicyRecord.of(service.engine.screening.policy(scope))


@routes.post(
    "/privacy/rescan",
    summary="Apply the privacy rules to what is stored",
    response_model=RescanResponse,
    responses={**error_responses(409), **ACCEPTED},
)
def rescan(scope: Admin, service: RunningService, wait_s: WaitS = DEFAULT_WAIT_S) -> RescanResponse | JSONResponse:
    """Redact and flag, by today's rules and the agent's policy, everything that the namespace stored before."""
    result = service.long_work.run(Rescan.kind, scope, {}, wait_s=wait_s)
    return result if isinstance(result, JSONResponse) else RescanResponse.model_validate(result)
