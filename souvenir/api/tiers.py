"""The three tiers over HTTP: what an agent remembers under keys, and its user's preferences."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request

from souvenir.api.agents import AgentName
from souvenir.api.caller import Reader, RunningService, Writer, agent_scope, result_limit
from souvenir.api.errors import error_responses
from souvenir.api.fields import MAX_ID, Clean
from souvenir.api.json_route import router
from souvenir.api.once import MakeOnce
from souvenir.api.tier_models import (
    ForgetRequest,
    ForgetResponse,
    PreferencePage,
    PreferenceRecord,
    RecallRequest,
    RecallResponse,
    RecallSearchResponse,
    RememberRequest,
    RememberResponse,
    SetPreferenceRequest,
)
from souvenir.conversation.keyed_memories import MAX_KEY_CHARS, PREFERENCE

routes = router("tiers")

PreferenceKey = Annotated[
    str, Path(min_length=1, max_length=MAX_KEY_CHARS, description="The preference's name."), Clean
]


@routes.post("/remember", summary="Remember a value under a key", responses=error_responses(409))
def remember(
    body: RememberRequest, _: Writer, service: RunningService, request: Request, once: MakeOnce
) -> RememberResponse:
    """Store a value under a key, in the place of the one that the key had in its category."""
    scope = agent_scope(request, body.agent_name)
    memory, created = service.tiers.long_term.remember(scope, body.key, body.value, body.category, once=once)
    return RememberResponse.of(memory, created=created)


@routes.post("/forget", summary="Forget a key", responses=error_responses(409))
def forget(body: ForgetRequest, _: Writer, service: RunningService, request: Request) -> ForgetResponse:
    """Forget for good what a key means in its category, and what it meant before."""
    scope = agent_scope(request, body.agent_name)
    return ForgetResponse(forgotten=service.tiers.long_term.forget(scope, body.key, body.category))


@routes.post("/recall", summary="Recall what is remembered", responses=error_responses())
def recall(body: RecallRequest, _: Reader, service: RunningService, request: Request) -> RecallResponse:
    """Find what is remembered that answers a query best, as texts."""
    scope, limit = agent_scope(request, body.agent_name), result_limit(request, body.limit)
    return RecallResponse.of(service.tiers.long_term.search(scope, body.query, categories=body.categories, limit=limit))


@routes.post("/recall/search", summary="Search what is remembered", responses=error_responses())
def search_long_term(body: RecallRequest, _: Reader, service: RunningService, request: Request) -> RecallSearchResponse:
    """Find the same as `/recall`, with keys, categories and scores."""
    scope, limit = agent_scope(request, body.agent_name), result_limit(request, body.limit)
    found = service.tiers.long_term.search(scope, body.query, categories=body.categories, limit=limit)
    return RecallSearchResponse.of(found)


@routes.get("/preferences/{agent_name}", summary="List preferences", responses=error_responses())
def list_preferences(
    agent_name: AgentName,
    _: Reader,
    service: RunningService,
    request: Request,
    offset: Annotated[int, Query(ge=0, le=MAX_ID, description="Preferences to leave out first.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000, description="Preferences wanted.")] = 100,
) -> PreferencePage:
    """List the preferences of an agent's user."""
    found, total = service.tiers.long_term.preferences(agent_scope(request, agent_name), offset=offset, limit=limit)
    values = {one.key: one.value for one in found if one.key is not None}
    return PreferencePage(preferences=values, total=total, offset=offset, limit=limit)


@routes.get("/preferences/{agent_name}/{key}", summary="Get a preference", responses=error_responses(404))
def get_preference(
    agent_name: AgentName, key: PreferenceKey, _: Reader, service: RunningService, request: Request
) -> PreferenceRecord:
    """Get one preference by its key."""
    return PreferenceRecord.of(service.tiers.long_term.preference(agent_scope(request, agent_name), key))


@routes.put("/preferences/{agent_name}/{key}", summary="Set a preference", responses=error_responses(409))
def set_preference(
    agent_name: AgentName,
    key: PreferenceKey,
    body: SetPreferenceRequest,
    _: Writer,
    service: RunningService,
    request: Request,
) -> PreferenceRecord:
    """Set a preference, whether there is one of that key or not."""
    scope = agent_scope(request, agent_name)
    memory, _created = service.tiers.long_term.remember(scope, key, body.value, PREFERENCE)
    return PreferenceRecord.of(memory)


@routes.delete("/preferences/{agent_name}/{key}", summary="Forget a preference", responses=error_responses(404, 409))
def forget_preference(
    agent_name: AgentName, key: PreferenceKey, _: Writer, service: RunningService, request: Request
) -> ForgetResponse:
    """Forget a preference for good."""
    service.tiers.long_term.forget_preference(agent_scope(request, agent_name), key)
    return ForgetResponse(forgotten=True)
