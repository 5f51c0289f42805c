"""The privacy rules on the way into the store: whatever is written goes through here before it is embedded or kept.

Texts, the texts inside of metadata, and the names of those who say messages are screened; sources, keys, labels, names
of users and ids are not, since others refer to them. What was found is noted in the metadata: kinds of data in
`sensitive_data`, topics in `sensitive_topics`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from souvenir.core.labels import SENSITIVE_DATA, SENSITIVE_TOPICS, clean_tags, names
from souvenir.core.types import HistoryEntry, JsonObject, MemoryDraft, MemoryPatch, Scope
from souvenir.privacy.policy import Action, PrivacyPolicy
from souvenir.privacy.rules import PrivacyRules
from souvenir.store.database import Database
from souvenir.store.messages import agents


@dataclass(frozen=True, slots=True)
class AppliedPolicy:
    """A policy that was read once, for many texts of one write."""

    rules: PrivacyRules
    policy: PrivacyPolicy

    def text(self, text: str) -> str:
        """A text that has no metadata to note anything in."""
        return self.rules.screen(text, self.policy).text

    def value(self, name: str, text: str) -> str:
        """A text that is read behind its name; without one as it is."""
        screened: str = self.rules.screen_json({name: text}, self.policy).value[name] if name else self.text(text)
        return screened

    def content(self, text: str, metadata: JsonObject | None) -> tuple[str, JsonObject | None]:
        """A text and its metadata, with notes of what was found in either."""
        screened = self.rules.screen(text, self.policy)
        beside = self.rules.screen_json(metadata, self.policy)
        return screened.text, _noted(beside.value, screened.topics, {*screened.found, *beside.found})

    def facts(self, facts: Iterable[str], metadata: JsonObject | None) -> tuple[tuple[str, ...], JsonObject | None]:
        """The facts, each once, and the metadata with notes of what was found in them."""
        found: dict[str, None] = {}
        for fact in facts:
            text, metadata = self.content(fact, metadata)
            found.setdefault(text)
        return tuple(found), metadata


class Screening:
    """Safe for many threads. A verb raises `PersonalDataRejected` where the namespace's policy says so.

    :param refuse: Of a verb: False redacts what the policy rejects.
    """

    def __init__(self, rules: PrivacyRules, database: Database) -> None:
        self.rules = rules
        self._database = database

    def policy(self, scope: Scope) -> PrivacyPolicy:
        """Of the agent whose namespace it is, or else that of the rules."""
        with self._database.read() as connection:
            agent = agents.find(connection, scope.namespace)
        if agent is None or not agent.policy:
            return self.rules.default_policy
        return PrivacyPolicy.of_json({**self.rules.default_policy.to_json(), **agent.policy})

    def applied(self, scope: Scope, *, refuse: bool = True) -> AppliedPolicy:
        """What a write to the scope's namespace goes by."""
        return AppliedPolicy(self.rules, self._applied(scope, refuse))

    def text(self, scope: Scope, text: str, *, refuse: bool = True) -> str:
        """A text that has no metadata to note anything in."""
        return self.applied(scope, refuse=refuse).text(text)

    def query(self, scope: Scope, text: str) -> str:
        """What is searched for: as it would have been stored, but never refused."""
        return self.text(scope, text, refuse=False)

    def content(
        self, scope: Scope, text: str, metadata: JsonObject | None, *, refuse: bool = True
    ) -> tuple[str, JsonObject | None]:
        """A text and its metadata, with notes of what was found in either."""
        return self.applied(scope, refuse=refuse).content(text, metadata)

    def metadata(self, scope: Scope, metadata: JsonObject, *, refuse: bool = True) -> JsonObject:
        """Metadata whose text stays as it is."""
        safe: JsonObject = self.rules.screen_json(metadata, self._applied(scope, refuse)).value
        return safe

    def draft(self, scope: Scope, draft: MemoryDraft) -> MemoryDraft:
        applied = self.applied(scope)
        text, metadata = applied.content(draft.text, draft.metadata)
        facts, metadata = applied.facts(draft.facts, metadata)
        return replace(draft, text=text, metadata=metadata or {}, facts=facts, tags=clean_tags(draft.tags))

    def draft_with_facts(self, scope: Scope, draft: MemoryDraft, facts: Iterable[str]) -> MemoryDraft:
        """A screened draft with facts that its text was split into."""
        kept, metadata = self.applied(scope).facts(facts, draft.metadata)
        return replace(draft, facts=kept, metadata=metadata or {})

    def patch_with_facts(self, scope: Scope, patch: MemoryPatch, facts: Iterable[str]) -> MemoryPatch:
        """A screened patch with facts that its text was split into."""
        kept, metadata = self.applied(scope).facts(facts, patch.metadata)
        return replace(patch, facts=kept, metadata=metadata)

    def _applied(self, scope: Scope, refuse: bool) -> PrivacyPolicy:
        policy = self.policy(scope)
        if refuse:
            return policy
        return replace(policy, secrets=_at_most_redacted(policy.secrets), pii=_at_most_redacted(policy.pii))

    def past(self, scope: Scope, entry: HistoryEntry) -> HistoryEntry:
        """An entry of a history, which holds texts and metadata of former times."""
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
    """The metadata with the findings added to what its caller gave."""
    notes = {SENSITIVE_TOPICS: topics, SENSITIVE_DATA: found}
    noted = {key: sorted({*names(metadata, key), *values}) for key, values in notes.items()}
    kept = {key: held for key, held in noted.items() if held}
    return {**(metadata or {}), **kept} if kept else metadata
