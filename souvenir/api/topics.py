"""Topics: what an agent's sessions are about, and what callers call it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request

from souvenir.api.agents import AgentName
from souvenir.api.caller import Reader, RunningService, Writer, agent_scope, require_access
from souvenir.api.errors import error_responses
from souvenir.api.fields import MAX_ID
from souvenir.api.json_route import router
from souvenir.api.levels import REMEMBERED
from souvenir.api.pages import Limit, Offset
from souvenir.api.topic_models import DescribeTopicRequest, TopicDetailsRecord, TopicPage, TopicRecord

routes = router("agents")

TopicId = Annotated[int, Path(ge=0, le=MAX_ID, description="The id of a topic.")]


@routes.get("/agents/{agent_name}/topics", summary="List topics", responses=error_responses(404))
def list_topics(
    agent_name: AgentName,
    _: Reader,
    service: RunningService,
    request: Request,
    offset: Offset = 0,
    limit: Limit = 100,
) -> TopicPage:
    """List what an agent's sessions are about; what was said in the last half minute may be missing."""
    found, total = service.graph.topics.page(agent_scope(request, agent_name), offset=offset, limit=limit)
    return TopicPage(topics=[TopicRecord.of(one) for one in found], total=total, offset=offset, limit=limit)


@routes.get("/agents/{agent_name}/topics/{topic_id}", summary="Get a topic", responses=error_responses(404))
def get_topic(
    agent_name: AgentName, topic_id: TopicId, _: Reader, service: RunningService, request: Request
) -> TopicDetailsRecord:
    """Get a topic with its sessions and the messages that discuss it most."""
    return TopicDetailsRecord.of_details(service.graph.topics.details(agent_scope(request, agent_name), topic_id))


@routes.patch("/agents/{agent_name}/topics/{topic_id}", summary="Name a topic", responses=error_responses(404))
def describe_topic(
    agent_name: AgentName,
    topic_id: TopicId,
    body: DescribeTopicRequest,
    _: Writer,
    service: RunningService,
    request: Request,
) -> TopicRecord:
    """Say what a topic is called or what it is about; it keeps that while it goes on."""
    scope = agent_scope(request, agent_name)
    require_access(request, REMEMBERED)
    return TopicRecord.of(service.graph.topics.describe(scope, topic_id, body.changes()))
