"""What the service answers in its section `extraction_profiles`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass

from souvenir_client.records.enums import ExtractionMode


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDeleted:
    deleted: bool
    source_prefix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRecord:
    """What holds for the sources below a prefix; fields that nobody set are as without a profile."""

    source_prefix: str
    mode: ExtractionMode
    enabled: bool
    max_facts: int | None
    max_fact_chars: int | None
    rules: RulesRecord
    ttl_days: float | None
    confidence_threshold: float | None
    min_age_days: float
    confidence_half_life_days: float
    half_life_days: float
    single_call: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesRecord:
    always_remember: list[str]
    never_remember: list[str]
    custom_instructions: str
