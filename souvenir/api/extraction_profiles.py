"""Extraction profiles: extraction and retention settings of the sources below a prefix."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, RootModel, StringConstraints

from souvenir.api.fields import Clean
from souvenir.core.labels import MAX_SOURCE_CHARS
from souvenir.core.types import JsonObject
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import Admin, RunningService
from souvenir.server.routing import Routes
from souvenir.store.learning.profiles import ExtractionMode, ExtractionProfile

routes = Routes("extraction_profiles")

MAX_RULES, MAX_RULE_CHARS, MAX_INSTRUCTION_CHARS = 100, 500, 4_000
"""Of one profile; a model reads all of it with every question."""

MAX_DAYS = 36_500

_EXAMPLE: dict[str, Any] = {
    "source_prefix": "wip/",
    "mode": "standard",
    "enabled": True,
    "max_facts": 10,
    "max_fact_chars": None,
    "rules": {
        "always_remember": ["Names of services and who owns them"],
        "never_remember": ["Salaries"],
        "custom_instructions": "Write facts in English.",
    },
    "ttl_days": 30,
    "confidence_threshold": None,
    "min_age_days": 0,
    "confidence_half_life_days": 90,
    "half_life_days": 30,
    "single_call": False,
}

Prefix = Annotated[
    str,
    Path(
        max_length=MAX_SOURCE_CHARS,
        description="A source prefix such as `wip/`; the trailing slash is optional.",
        examples=["wip/"],
    ),
    Clean,
]
Rule = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_RULE_CHARS), Clean]
Rules = Annotated[list[Rule], Field(max_length=MAX_RULES)]
Days = Annotated[float, Field(gt=0, le=MAX_DAYS, allow_inf_nan=False)]


class ProfileRules(BaseModel):
    """Guidance for the model, added to the prompt that finds facts."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE["rules"]]})

    always_remember: Rules | None = Field(default=None, description="Rules for facts to remember.")
    never_remember: Rules | None = Field(default=None, description="Rules for facts to ignore.")
    custom_instructions: Annotated[str, StringConstraints(max_length=MAX_INSTRUCTION_CHARS), Clean] | None = Field(
        default=None, description="Additional rules."
    )


class ProfileRequest(BaseModel):
    """Omitted fields are kept; null resets a field to its default."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ttl_days": 30, "max_facts": 10}]})

    mode: ExtractionMode | None = Field(
        default=None, description="`aggressive` extracts more, as before a context is compacted."
    )
    enabled: bool | None = Field(default=None, description="True if extraction is enabled for these sources.")
    max_facts: Annotated[int, Field(ge=1, le=200)] | None = Field(
        default=None, description="Maximum number of facts per extraction, instead of EXTRACT_MAX_FACTS."
    )
    max_fact_chars: Annotated[int, Field(ge=50, le=5_000)] | None = Field(
        default=None, description="Maximum number of characters of a fact, instead of EXTRACT_MAX_FACT_CHARS."
    )
    rules: ProfileRules | None = Field(default=None, description="Guidance for the model; merged list by list.")
    ttl_days: Days | None = Field(
        default=None,
        description="Retention period in days: older memories of these sources are archived when "
        "policies are enforced.",
    )
    confidence_threshold: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = Field(
        default=None, description="Minimum confidence: memories below it are archived when policies are enforced."
    )
    min_age_days: Annotated[float, Field(ge=0, le=MAX_DAYS, allow_inf_nan=False)] | None = Field(
        default=None, description="Minimum age in days before a memory is archived for its confidence."
    )
    confidence_half_life_days: Days | None = Field(default=None, description="The half-life of confidence in days.")
    half_life_days: Days | None = Field(
        default=None,
        description="Stored for clients, without effect; searches have their own `recency_half_life_days`.",
    )
    single_call: bool | None = Field(
        default=None, description="Stored for clients, without effect: facts are found and decided on in two calls."
    )

    def changes(self) -> JsonObject:
        return self.model_dump(mode="json", exclude_unset=True)


class RulesRecord(BaseModel):
    always_remember: list[str] = Field(examples=[["Names of services and who owns them"]])
    never_remember: list[str] = Field(examples=[["Salaries"]])
    custom_instructions: str = Field(examples=["Write facts in English."])


class ProfileRecord(BaseModel):
    """The extraction settings of the sources below a prefix; unset fields have their defaults."""

    source_prefix: str = Field(
        description="The prefix; the longest matching prefix of a source applies.", examples=["wip/"]
    )
    mode: ExtractionMode
    enabled: bool
    max_facts: int | None = Field(description="Null: EXTRACT_MAX_FACTS.")
    max_fact_chars: int | None = Field(description="Null: EXTRACT_MAX_FACT_CHARS.")
    rules: RulesRecord
    ttl_days: float | None = Field(description="Null: no maximum age.")
    confidence_threshold: float | None = Field(description="Null: no minimum confidence.")
    min_age_days: float
    confidence_half_life_days: float
    half_life_days: float = Field(description="Ignored.")
    single_call: bool = Field(description="Ignored.")

    @classmethod
    def of(cls, profile: ExtractionProfile) -> ProfileRecord:
        return cls.model_validate(profile, from_attributes=True)


class ProfileList(RootModel[list[ProfileRecord]]):
    """Ordered by prefix."""


class ProfileDeleted(BaseModel):
    deleted: bool
    source_prefix: str = Field(examples=["wip/"])


@routes.get(
    "/extraction/profiles",
    summary="List extraction profiles",
    cost=CostClass.LIGHT,
    sdk="extraction_profiles.list",
)
def list_profiles(scope: Admin, service: RunningService) -> ProfileList:
    """List the extraction profiles of a namespace."""
    return ProfileList([ProfileRecord.of(profile) for profile in service.maintenance.profiles.all(scope)])


@routes.get(
    "/extraction/profiles/{prefix:path}",
    summary="Get an extraction profile",
    cost=CostClass.LIGHT,
    sdk="extraction_profiles.get",
    errors=[404],
)
def get_profile(prefix: Prefix, scope: Admin, service: RunningService) -> ProfileRecord:
    """Get the extraction profile of exactly this prefix."""
    return ProfileRecord.of(service.maintenance.profiles.get(scope, prefix))


@routes.put(
    "/extraction/profiles/{prefix:path}",
    summary="Set an extraction profile",
    cost=CostClass.LIGHT,
    sdk="extraction_profiles.set",
    errors=[404],
)
def set_profile(prefix: Prefix, body: ProfileRequest, scope: Admin, service: RunningService) -> ProfileRecord:
    """Create an extraction profile for the sources below a prefix, or update the given fields of it."""
    profile = service.maintenance.profiles.put(scope, prefix, body.changes())
    service.audit.act(scope, "profile.set")
    return ProfileRecord.of(profile)


@routes.delete(
    "/extraction/profiles/{prefix:path}",
    summary="Delete an extraction profile",
    cost=CostClass.LIGHT,
    sdk="extraction_profiles.delete",
    errors=[404],
)
def delete_profile(prefix: Prefix, scope: Admin, service: RunningService) -> ProfileDeleted:
    """Delete the extraction profile of exactly this prefix; memories that were stored under it are kept."""
    deleted = service.maintenance.profiles.delete(scope, prefix)
    service.audit.act(scope, "profile.delete")
    return ProfileDeleted(deleted=True, source_prefix=deleted)
