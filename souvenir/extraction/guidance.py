"""How much is taken from a transcript, and what else the model is told: the settings, and a source's profile over them.

Fixed when an extraction is submitted, so that a change of either does not reach into one that runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from souvenir.settings import Settings
from souvenir.store.profiles import ExtractionMode, ExtractionProfile
from souvenir.types import JsonObject

PRE_COMPACT = "pre_compact"
"""The context of a request that comes before a conversation is cut: everything is wanted."""


@dataclass(frozen=True, slots=True)
class Guidance:
    """:param keep_all: Whether the model is told to keep what it doubts about.

    :param max_facts: Of one window of a transcript.
    """

    max_facts: int
    max_fact_chars: int
    similar_text_chars: int
    fallback_max_facts: int
    keep_all: bool = False
    always_remember: tuple[str, ...] = ()
    never_remember: tuple[str, ...] = ()
    custom_instructions: str = ""

    @classmethod
    def of(cls, settings: Settings, profile: ExtractionProfile, context: str) -> Guidance:
        return cls(
            profile.max_facts or settings.extract_max_facts,
            profile.max_fact_chars or settings.extract_max_fact_chars,
            settings.extract_similar_text_chars,
            settings.extract_fallback_max_facts,
            keep_all=context == PRE_COMPACT or profile.mode is ExtractionMode.AGGRESSIVE,
            always_remember=profile.rules.always_remember,
            never_remember=profile.rules.never_remember,
            custom_instructions=profile.rules.custom_instructions,
        )

    @classmethod
    def of_json(cls, value: JsonObject) -> Guidance:
        lists = {name: tuple(value[name]) for name in ("always_remember", "never_remember")}
        return cls(**{**value, **lists})

    def to_json(self) -> JsonObject:
        return asdict(self)

    def for_facts(self) -> str:
        """What the model is told beside the prompt."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"Write at most {self.max_facts} facts, each in at most {self.max_fact_chars} characters."
        if self.always_remember:
            yield "\nWhat is always kept here:"
            yield from (f"- {rule}" for rule in self.always_remember)
        if self.never_remember:
            yield "\nWhat is never kept here, whatever else is said:"
            yield from (f"- {rule}" for rule in self.never_remember)
        if self.custom_instructions:
            yield f"\n{self.custom_instructions}"
