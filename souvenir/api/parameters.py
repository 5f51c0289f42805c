"""Parameters that routes share: the agent of the path, a page of a list and If-Match; and the total of a bare array."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request, Response
from pydantic import AfterValidator, Field

from souvenir.api.fields import MAX_ID
from souvenir.core.errors import InvalidRequest
from souvenir.core.types import Scope
from souvenir.server.request_guards import MAX_NAMESPACE_CHARS, Admin, Reader, Writer, agent_scope, namespace_name

AgentName = Annotated[
    str,
    AfterValidator(namespace_name),
    Field(
        min_length=1,
        max_length=MAX_NAMESPACE_CHARS,
        description="The agent's name, which is that of its namespace: printable characters without `/`.",
        examples=["my_agent"],
    ),
]


async def _agent_reader(agent_name: AgentName, _: Reader, request: Request) -> Scope:
    return agent_scope(request, agent_name)


async def _present_agent_reader(agent_name: AgentName, _: Reader, request: Request) -> Scope:
    """:raises InvalidRequest: If the request names a time, whose answer would be that of the present."""
    if "as_of" in request.query_params:
        raise InvalidRequest("as_of is not supported here, where answers are of the present; leave it out")
    return agent_scope(request, agent_name)


async def _agent_writer(agent_name: AgentName, _: Writer, request: Request) -> Scope:
    return agent_scope(request, agent_name)


async def _agent_admin(agent_name: AgentName, _: Admin, request: Request) -> Scope:
    return agent_scope(request, agent_name)


AgentReader = Annotated[Scope, Depends(_agent_reader)]
"""The whole namespace of the agent in the path, for a caller who may read it."""
PresentAgentReader = Annotated[Scope, Depends(_present_agent_reader)]
"""The same, of a route about what an agent knows that takes no `as_of`, although others of them do."""
AgentWriter = Annotated[Scope, Depends(_agent_writer)]
AgentAdmin = Annotated[Scope, Depends(_agent_admin)]

_TAG = r'(?:W/)?"[\x21\x23-\x7e]*"'
_TAGS = re.compile(rf"{_TAG}(?:[ \t]*,[ \t]*{_TAG})*")


async def _expected_tags(
    if_match: Annotated[
        str | None,
        Header(
            alias="If-Match",
            max_length=1000,
            description="ETags, one of which must be that of what is stored, or the update fails with 412; `*` matches "
            "any.",
            examples=['"1"'],
        ),
    ] = None,
) -> frozenset[str] | None:
    """The ETags of which a change needs one; None: any. A weak tag matches none (RFC 9110, section 13.1.1).

    :raises InvalidRequest: If the header cannot be read.
    """
    sent = "*" if if_match is None else if_match.strip()
    if sent == "*":
        return None
    if not _TAGS.fullmatch(sent):
        raise InvalidRequest('If-Match takes the ETag of an answer as it is, with its quotes, such as "1", or *')
    return frozenset(tag[1:-1] for tag in re.findall(_TAG, sent) if not tag.startswith("W/"))


ExpectedTags = Annotated[frozenset[str] | None, Depends(_expected_tags)]

TOTAL_COUNT_HEADER = "X-Total-Count"

Offset = Annotated[int, Query(ge=0, le=MAX_ID, description="Number of items to skip.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="Maximum number of items.")]


def described_headers(*headers: tuple[str, str, str]) -> dict[int | str, dict[str, Any]]:
    """Response headers in the form of OpenAPI."""
    described = {name: {"description": text, "schema": {"type": of_type}} for name, text, of_type in headers}
    return {200: {"headers": described}}


COUNT_HEADER = (TOTAL_COUNT_HEADER, "The total number of items on all pages.", "integer")
COUNTED = described_headers(COUNT_HEADER)
"""Headers of an answer that is a bare array."""


def set_total(response: Response, total: int) -> None:
    response.headers[TOTAL_COUNT_HEADER] = str(total)
