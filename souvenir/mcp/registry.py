"""The tools by tier, and the tools that a caller may use. A tier is a module that exports its tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from souvenir.access.authenticator import Caller
from souvenir.core.errors import Forbidden
from souvenir.core.settings import McpTier
from souvenir.core.types import AccessLevels, Scope
from souvenir.mcp import agent_tools, connector_tools, graph_tools, memory_tools
from souvenir.mcp.tools import MAX_SHOWN_CHARS, Tool
from souvenir.server.request_guards import require_levels

TIERS: Mapping[McpTier, tuple[Tool[Any], ...]] = MappingProxyType(
    {
        McpTier.MEMORY: memory_tools.TOOLS,
        McpTier.AGENT: agent_tools.TOOLS,
        McpTier.GRAPH: graph_tools.TOOLS,
        McpTier.CONNECTOR: connector_tools.TOOLS,
    }
)


def tools_of(tiers: Sequence[McpTier]) -> Mapping[str, Tool[Any]]:
    """The tools of some tiers by name, in the order in which models see them."""
    return {tool.name: tool for tier in McpTier if tier in tiers for tool in TIERS[tier]}


def no_such_tool(name: str) -> str:
    """The error sentence for a tool that is not offered."""
    for tier, tools in TIERS.items():
        if any(tool.name == name for tool in tools):
            return f"There is no tool {name!r} here; it is of the group `{tier}`, which the setting MCP_TOOLS turns on"
    return f"There is no tool {name[:MAX_SHOWN_CHARS]!r}; see tools/list"


def scope_for(tool: Tool[Any], caller: Caller, levels: AccessLevels, namespace: str) -> Scope:
    """The scope of a call of a tool.

    :param levels: The caller's access levels in the namespace. :raises Forbidden: If the caller may not call it.
    """
    scope = caller.scope(tool.role, namespace)
    if tool.of_agent and scope.sources is not None:
        raise Forbidden(f"{tool.name} needs a key of the agent's whole namespace, and yours is for some sources only")
    require_levels(levels, tool.needs, namespace)
    return scope


def may_call(tool: Tool[Any], caller: Caller, levels: AccessLevels, namespace: str) -> bool:
    """True if a tool is offered to a caller."""
    try:
        scope_for(tool, caller, levels, namespace)
    except Forbidden:
        return False
    return True
