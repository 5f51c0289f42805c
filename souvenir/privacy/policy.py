"""Privacy policies: the action on secrets, the action on personal data, and hidden topics."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from souvenir.core.errors import InvalidRequest
from souvenir.core.stored_json import StoredJson
from souvenir.core.types import JsonObject


class Action(StrEnum):
    """The action on a finding, mildest first."""

    ALLOW = "allow"
    FLAG = "flag"
    """Counted; the text is unchanged."""
    REDACT = "redact"
    """Replaced by the pattern's redaction text, and counted."""
    REJECT = "reject"
    """The whole text is rejected."""


@dataclass(frozen=True, slots=True)
class PrivacyPolicy:
    """The privacy policy of an agent. `hidden_topics` are excluded from its context."""

    secrets: Action = Action.REDACT
    pii: Action = Action.ALLOW
    hidden_topics: tuple[str, ...] = ()

    @classmethod
    def of_json(cls, value: JsonObject) -> PrivacyPolicy:
        """Parse a policy; missing fields are those of `PrivacyPolicy()`.

        :raises InvalidRequest: If a key is unknown or a value is invalid.
        """
        known = [field.name for field in fields(cls)]
        for key in value:
            if key not in known:
                raise InvalidRequest(f"A privacy policy has no field {key!r}; it has {', '.join(known)}")
        topics = value.get("hidden_topics", ())
        if not (isinstance(topics, list | tuple) and all(isinstance(topic, str) for topic in topics)):
            raise InvalidRequest("hidden_topics of a privacy policy must be a list of names of topics")
        default = cls()
        return cls(
            _action("secrets", value.get("secrets", default.secrets)),
            _action("pii", value.get("pii", default.pii)),
            tuple(dict.fromkeys(topics)),
        )

    def to_json(self) -> dict[str, Any]:
        return _POLICY_JSON.dump(self)

    def action(self, *, is_secret: bool) -> Action:
        return self.secrets if is_secret else self.pii


_POLICY_JSON = StoredJson(PrivacyPolicy)


def _action(name: str, value: Any) -> Action:
    try:
        return Action(value)
    except ValueError as error:
        raise InvalidRequest(f"{name} of a privacy policy must be one of {', '.join(Action)}") from error
