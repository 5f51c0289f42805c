"""Which access level of an agent each route needs, and what is said to whoever lacks it.

Levels limit reading. What stores needs none, since an agent may store what it is told, and neither does what forgets:
such routes are not in the table. A reading route that nobody entered needs every level.
"""

from __future__ import annotations

from collections.abc import Mapping

from souvenir.errors import AccessLimited
from souvenir.types import AccessLevel, AccessLevels

Needs = frozenset[AccessLevel]

NOTHING: Needs = frozenset()
SEARCHING: Needs = frozenset({AccessLevel.QUICK})
REMEMBERED: Needs = frozenset({AccessLevel.FULL})
SAID: Needs = frozenset({AccessLevel.LOGS})
EVERYTHING: Needs = REMEMBERED | SAID

QUICK_RESULTS = 5
"""That a search gives at most with quick access."""

LEVELS: Mapping[str, Needs] = {
    "search": SEARCHING,
    "search_batch": SEARCHING,
    "search_agent": SEARCHING,
    "search_locrit": SEARCHING,
    "ai_search_locrit": SEARCHING,
    "search_messages": SEARCHING,
    "build_context": SEARCHING,
    "recall": SEARCHING,
    "search_long_term": SEARCHING,
    "is_novel": SEARCHING,
    "get_memory": REMEMBERED,
    "get_batch": REMEMBERED,
    "memory_history": REMEMBERED,
    "list_memories": REMEMBERED,
    "count_memories": REMEMBERED,
    "export_memories": REMEMBERED,
    "list_facts": REMEMBERED,
    "list_tags": REMEMBERED,
    "list_links": REMEMBERED,
    "list_conflicts": REMEMBERED,
    "read_graph": REMEMBERED,
    "list_relations": REMEMBERED,
    "get_description": REMEMBERED,
    "diff": REMEMBERED,
    "list_blocks": REMEMBERED,
    "get_block": REMEMBERED,
    "block_history": REMEMBERED,
    "list_preferences": REMEMBERED,
    "get_preference": REMEMBERED,
    "agent_stats": REMEMBERED,
    "list_topics": REMEMBERED,
    "get_topic": EVERYTHING,
    "agent_insights": REMEMBERED,
    "concept_history": REMEMBERED,
    "list_messages": SAID,
    "get_message": SAID,
    "list_sessions": SAID,
    "get_session": SAID,
    "list_session_messages": SAID,
    "get_window": SAID,
    "list_users": SAID,
    "session_context": EVERYTHING,
    "export_agent": EVERYTHING,
    "export_graph": EVERYTHING,
    "list_agents": NOTHING,
    "agent_summary": EVERYTHING,
    "list_concepts": REMEMBERED,
    "get_concept": EVERYTHING,
    "find_concept": EVERYTHING,
    "related_concepts": REMEMBERED,
    "related_to_name": REMEMBERED,
    "locrit_summary": EVERYTHING,
    "locrit_sessions": SAID,
    "locrit_session": SAID,
    "locrit_history": SAID,
    "locrit_message": SAID,
    "locrit_concepts": REMEMBERED,
    "locrit_concept": EVERYTHING,
    "locrit_related": REMEMBERED,
    "locrit_memories": REMEMBERED,
    "locrit_stats": SEARCHING,
    "get_agent": NOTHING,
    "get_policy": NOTHING,
    "get_access": NOTHING,
    "get_extraction": NOTHING,
    "extract_status": NOTHING,
    "list_jobs": NOTHING,
    "get_job": NOTHING,
    "own_key": NOTHING,
}
"""What every route that reads needs, by its name."""


def needed_by(route: str) -> Needs:
    """What a reading route needs."""
    return LEVELS.get(route, EVERYTHING)


def require_levels(given: AccessLevels, needed: Needs, agent: str) -> None:
    """:raises AccessLimited: If one that is needed is not given."""
    missing = given.missing(needed)
    if missing:
        raise AccessLimited(agent, missing)


def most_results(given: AccessLevels) -> int | None:
    """How many results a search may give; None: as many as are asked for."""
    return None if given.full_memory else QUICK_RESULTS
