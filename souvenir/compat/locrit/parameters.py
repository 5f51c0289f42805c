"""The agent of a Locrit path, whose access levels apply to every caller."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from souvenir.api.parameters import AgentName
from souvenir.core.types import Scope
from souvenir.server.request_guards import Reader, Writer, locrit_scope

# These look up the levels in the database, so they run on a thread.


def _locrit_reader(agent_name: AgentName, _: Reader, request: Request) -> Scope:
    return locrit_scope(request, agent_name)


def _locrit_writer(agent_name: AgentName, _: Writer, request: Request) -> Scope:
    return locrit_scope(request, agent_name)


LocritReader = Annotated[Scope, Depends(_locrit_reader)]
LocritWriter = Annotated[Scope, Depends(_locrit_writer)]
