"""Apply the privacy rules to everything that is written, before it is embedded or stored.

Texts, strings in metadata, and the speakers of messages are screened; sources, keys, labels, user names and ids are
not, because other records refer to them, nor are those in metadata (`ENTITIES`). Findings are noted in the metadata:
kinds of data in `sensitive_data`, topics in `sensitive_topics`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from souvenir.core.labels import SENSITIVE_DATA, SENSITIVE_TOPICS, clean_tags, entities_of, names
from souvenir.core.types import HistoryEntry, JsonObject, MemoryDraft, MemoryPatch, PassageKind, Scope
from souvenir.privacy.policy import Action, PrivacyPolicy
from souvenir.privacy.rules import PrivacyRules, ScreenedJson
from souvenir.store import namespaces
from souvenir.store.database import Database
from souvenir.store.messages import agents
from souvenir.store.messages.agents import Agent
from souvenir.store.privacy import HiddenTexts, HiddenTopics, flagged, hidden_texts
from souvenir.store.sql import Connection


@dataclass(frozen=True, slots=True)
class AppliedPolicy:
    """A policy that was read once, for all texts of one write."""

    rules: PrivacyRules
    policy: PrivacyPolicy

    def text(self, text: str) -> str:
        """Screen a text that has no metadata for notes."""
        return self.rules.screened(text, self.policy)

    def value(self, name: str, text: str) -> str:
        """Screen a text with its name as context, if it has one."""
        screened: str = self.rules.screen_json({name: text}, self.policy).value[name] if name else self.text(text)
        return screened

    def metadata(self, metadata: JsonObject) -> ScreenedJson:
        """Screen metadata except for names of users, applications and runs."""
        kept = entities_of(metadata)
        rest = {name: held for name, held in metadata.items() if name not in kept}
        screened = self.rules.screen_json(rest, self.policy)
        safe = {**screened.value, **kept}
        return replace(screened, value={name: safe[name] for name in metadata})

    def content(self, text: str, metadata: JsonObject | None) -> tuple[str, JsonObject | None]:
        """Screen a text and its metadata; findings in either are noted."""
        screened = self.rules.screen(text, self.policy)
        if metadata is None:
            return screened.text, _noted(None, screened.topics, screened.found)
        of_metadata = self.metadata(metadata)
        return screened.text, _noted(of_metadata.value, screened.topics, {*screened.found, *of_metadata.found})

    def facts(self, facts: Iterable[str], metadata: JsonObject | None) -> tuple[tuple[str, ...], JsonObject | None]:
        """Screen facts, drop repetitions, and note their findings in the metadata."""
        found: dict[str, None] = {}
        for fact in facts:
            text, metadata = self.content(fact, metadata)
            found.setdefault(text)
        return tuple(found), metadata


class Screening:
    """Thread-safe. Every method raises `PersonalDataRejected` if the namespace's policy rejects its input.

    :param refuse: In methods: False redacts what the policy rejects.
    """

    def __init__(self, rules: PrivacyRules, database: Database) -> None:
        self.rules = rules
        self._database = database

    def policy(self, scope: Scope) -> PrivacyPolicy:
        """Return the policy of the scope's agent, or else that of the rules."""
        with self._database.read_once() as connection:
            agent = agents.find(connection, scope.namespace)
        return self.rules.default_policy if agent is None else self._policy_of(agent)

    def hidden_texts(self, connection: Connection, agent: Agent) -> HiddenTexts:
        """Return all texts that the policy of an agent hides: nothing that is shown may quote them.

        The cost is proportional to their number; `hidden_topics` is cheaper where few rows are read.
        """
        return hidden_texts(connection, agent.namespace_id, self.hidden_topics(agent))

    def hidden_topics(self, agent: Agent) -> HiddenTopics:
        return HiddenTopics(self._policy_of(agent).hidden_topics)

    def flagged_memories(self, scope: Scope, topics: Collection[str]) -> tuple[int, ...]:
        """Return the memories of the scope's namespace that are flagged with one of these topics."""
        with self._database.read_once() as connection:
            namespace = namespaces.named(connection, scope.namespace)
            if namespace is None:
                return ()
            return tuple(flagged(connection, PassageKind.MEMORY, namespace.id, topics))

    def _policy_of(self, agent: Agent) -> PrivacyPolicy:
        if not agent.policy:
            return self.rules.default_policy
        return PrivacyPolicy.of_json({**self.rules.default_policy.to_json(), **agent.policy})

    def applied(self, scope: Scope, *, refuse: bool = True) -> AppliedPolicy:
        """Return the policy for a write to the scope's namespace."""
        return AppliedPolicy(self.rules, self._applied(scope, refuse))

    def text(self, scope: Scope, text: str, *, refuse: bool = True) -> str:
        """Screen a text that has no metadata for notes."""
        return self.applied(scope, refuse=refuse).text(text)

    def query(self, scope: Scope, text: str) -> str:
        """Screen a query like a stored text, but never reject it."""
        return text if self.rules.finds_nothing(text) else self.text(scope, text, refuse=False)

    def content(
        self, scope: Scope, text: str, metadata: JsonObject | None, *, refuse: bool = True
    ) -> tuple[str, JsonObject | None]:
        """Screen a text and its metadata; findings in either are noted."""
        return self.applied(scope, refuse=refuse).content(text, metadata)

    def metadata(self, scope: Scope, metadata: JsonObject, *, refuse: bool = True) -> JsonObject:
        """Screen metadata whose text is unchanged."""
        safe: JsonObject = self.applied(scope, refuse=refuse).metadata(metadata).value
        return safe

    def draft(self, scope: Scope, draft: MemoryDraft) -> MemoryDraft:
        applied = self.applied(scope)
        text, metadata = applied.content(draft.text, draft.metadata)
        facts, metadata = applied.facts(draft.facts, metadata)
        return replace(draft, text=text, metadata=metadata or {}, facts=facts, tags=clean_tags(draft.tags))

    def draft_with_facts(self, scope: Scope, draft: MemoryDraft, facts: Iterable[str]) -> MemoryDraft:
        """Add the facts of its text to a screened draft."""
        kept, metadata = self.applied(scope).facts(facts, draft.metadata)
        return replace(draft, facts=kept, metadata=metadata or {})

    def patch_with_facts(self, scope: Scope, patch: MemoryPatch, facts: Iterable[str]) -> MemoryPatch:
        """Add the facts of its text to a screened patch."""
        kept, metadata = self.applied(scope).facts(facts, patch.metadata)
        return replace(patch, facts=kept, metadata=metadata)

    def _applied(self, scope: Scope, refuse: bool) -> PrivacyPolicy:
        policy = self.policy(scope)
        if refuse:
            return policy
        return replace(policy, secrets=_at_most_redacted(policy.secrets), pii=_at_most_redacted(policy.pii))

    def past(self, scope: Scope, entry: HistoryEntry) -> HistoryEntry:
        """Screen a history entry, which contains texts and metadata of earlier times."""
        policy = self.policy(scope)
        before, after = (self.rules.screen_json(state, policy).value for state in (entry.before, entry.after))
        return replace(entry, before=before, after=after)

    def patch(self, scope: Scope, patch: MemoryPatch) -> MemoryPatch:
        applied = self.applied(scope)
        if patch.text is not None:
            text, metadata = applied.content(patch.text, patch.metadata)
            patch = replace(patch, text=text, metadata=metadata)
        elif patch.metadata is not None:
            patch = replace(patch, metadata=self.metadata(scope, patch.metadata))
        if patch.facts is not None:
            facts, metadata = applied.facts(patch.facts, patch.metadata)
            patch = replace(patch, facts=facts, metadata=metadata)
        tags = None if patch.tags is None else clean_tags(patch.tags)
        return replace(patch, tags=tags, add_tags=clean_tags(patch.add_tags))


def _at_most_redacted(action: Action) -> Action:
    return Action.REDACT if action is Action.REJECT else action


def _noted(metadata: JsonObject | None, topics: Iterable[str], found: Iterable[str]) -> JsonObject | None:
    """Add the findings to the caller's metadata."""
    notes = {SENSITIVE_TOPICS: topics, SENSITIVE_DATA: found}
    noted = {key: sorted({*names(metadata, key), *values}) for key, values in notes.items()}
    kept = {key: held for key, held in noted.items() if held}
    return {**(metadata or {}), **kept} if kept else metadata
