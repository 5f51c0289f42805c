"""Extraction profiles: how the sources below a prefix are extracted from, and how long what was stored there lives."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, RootModel, StringConstraints

from souvenir.api.caller import Admin, RunningService
from souvenir.api.errors import error_responses
from souvenir.api.fields import MAX_SOURCE_CHARS, Clean
from souvenir.api.json_route import router
from souvenir.store.profiles import ExtractionMode, ExtractionProfile
from souvenir.types import JsonObject

routes = router("extraction_profiles")

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
        max_length=MAX_SOURCE_CHARS, description="A source prefix such as `wip/`; the slash at its end may be left out."
    ),
    Clean,
]
Rule = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_RULE_CHARS), Clean]
Rules = Annotated[list[Rule], Field(max_length=MAX_RULES)]
Days = Annotated[float, Field(gt=0, le=MAX_DAYS, allow_inf_nan=False)]


class ProfileRules(BaseModel):
    """Said to the model beside its prompt, when it looks for facts."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE["rules"]]})

    always_remember: Rules | None = Field(default=None, description="What is a fact worth keeping, one a rule.")
    never_remember: Rules | None = Field(default=None, description="What is never one.")
    custom_instructions: Annotated[str, StringConstraints(max_length=MAX_INSTRUCTION_CHARS), Clean] | None = Field(
        default=None, description="What else it shall mind."
    )


class ProfileRequest(BaseModel):
    """What is left out stays as it is; null takes a field back to what holds without a profile."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ttl_days": 30, "max_facts": 10}]})

    mode: ExtractionMode | None = Field(
        default=None, description="`aggressive` takes more, as before a context is compacted."
    )
    enabled: bool | None = Field(default=None, description="Whether anything is extracted for these sources.")
    max_facts: Annotated[int, Field(ge=1, le=200)] | None = Field(
        default=None, description="Facts of one extraction, in the place of EXTRACT_MAX_FACTS."
    )
    max_fact_chars: Annotated[int, Field(ge=50, le=5_000)] | None = Field(
        default=None, description="Characters of one fact, in the place of EXTRACT_MAX_FACT_CHARS."
    )
    rules: ProfileRules | None = Field(default=None, description="Merged too, list by list.")
    ttl_days: Days | None = Field(
        default=None, description="Days after which memories of these sources are archived when policies are enforced."
    )
    confidence_threshold: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = Field(
        default=None, description="Confidence below which they are archived then."
    )
    min_age_days: Annotated[float, Field(ge=0, le=MAX_DAYS, allow_inf_nan=False)] | None = Field(
        default=None, description="Days before which none is for its confidence."
    )
    confidence_half_life_days: Days | None = Field(default=None, description="Days after which confidence is half.")
    half_life_days: Days | None = Field(
        default=None, description="Kept for clients, without effect; a search says `recency_half_life_days` itself."
    )
    single_call: bool | None = Field(
        default=None, description="Kept for clients, without effect: facts are found and decided on in two calls."
    )

    def changes(self) -> JsonObject:
        return self.model_dump(mode="json", exclude_unset=True)


class RulesRecord(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE["rules"]]})

    always_remember: list[str]
    never_remember: list[str]
    custom_instructions: str


class ProfileRecord(BaseModel):
    """What holds for the sources below a prefix; fields that nobody set are as without a profile."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    source_prefix: str = Field(description="The longest that a source lies below is the one that counts.")
    mode: ExtractionMode
    enabled: bool
    max_facts: int | None = Field(description="Null: EXTRACT_MAX_FACTS.")
    max_fact_chars: int | None = Field(description="Null: EXTRACT_MAX_FACT_CHARS.")
    rules: RulesRecord
    ttl_days: float | None = Field(description="Null: however old they are.")
    confidence_threshold: float | None = Field(description="Null: whatever their confidence.")
    min_age_days: float
    confidence_half_life_days: float
    half_life_days: float = Field(description="Without effect.")
    single_call: bool = Field(description="Without effect.")

    @classmethod
    def of(cls, profile: ExtractionProfile) -> ProfileRecord:
        return cls.model_validate(profile, from_attributes=True)


class ProfileList(RootModel[list[ProfileRecord]]):
    """By their prefixes."""

    model_config = ConfigDict(json_schema_extra={"examples": [[_EXAMPLE]]})


class ProfileDeleted(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"deleted": True, "source_prefix": "wip/"}]})

    deleted: bool
    source_prefix: str


@routes.get("/extraction/profiles", summary="List extraction profiles", responses=error_responses())
def list_profiles(scope: Admin, service: RunningService) -> ProfileList:
    """List the extraction profiles of a namespace."""
    return ProfileList([ProfileRecord.of(profile) for profile in service.tending.profiles.all(scope)])


@routes.get("/extraction/profiles/{prefix:path}", summary="Get an extraction profile", responses=error_responses(404))
def get_profile(prefix: Prefix, scope: Admin, service: RunningService) -> ProfileRecord:
    """Get the profile of exactly this prefix."""
    return ProfileRecord.of(service.tending.profiles.get(scope, prefix))


@routes.put("/extraction/profiles/{prefix:path}", summary="Set an extraction profile", responses=error_responses(404))
def set_profile(prefix: Prefix, body: ProfileRequest, scope: Admin, service: RunningService) -> ProfileRecord:
    """Make a profile for the sources below a prefix, or change some fields of it."""
    profile = service.tending.profiles.put(scope, prefix, body.changes())
    service.audit.act(scope, "profile.set")
    return ProfileRecord.of(profile)


@routes.delete(
    "/extraction/profiles/{prefix:path}", summary="Delete an extraction profile", responses=error_responses(404)
)
def delete_profile(prefix: Prefix, scope: Admin, service: RunningService) -> ProfileDeleted:
    """Delete the profile of exactly this prefix; what was stored under it stays."""
    deleted = service.tending.profiles.delete(scope, prefix)
    service.audit.act(scope, "profile.delete")
    return ProfileDeleted(deleted=True, source_prefix=deleted)
