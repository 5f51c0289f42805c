"""Operations of the section `extraction_profiles`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, Listing, NotSent, Repeat, segments
from souvenir_client.records.enums import ExtractionMode
from souvenir_client.records.extraction_profiles import ProfileDeleted, ProfileRecord


class AsyncExtractionProfiles:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> Listing[ProfileRecord]:
        """List the extraction profiles of a namespace. `GET /extraction/profiles`."""
        return await self._transport.send(
            Call("GET", "/extraction/profiles", {200: list[ProfileRecord]}, repeat=Repeat.SAFE)
        )

    async def get(self, prefix: str) -> ProfileRecord:
        """Get the profile of exactly this prefix. `GET /extraction/profiles/{prefix}`."""
        return await self._transport.send(
            Call("GET", f"/extraction/profiles/{segments(prefix)}", {200: ProfileRecord}, repeat=Repeat.SAFE)
        )

    async def set(
        self,
        prefix: str,
        *,
        mode: ExtractionMode | NotSent | None = NOT_SENT,
        enabled: bool | NotSent | None = NOT_SENT,
        max_facts: int | NotSent | None = NOT_SENT,
        max_fact_chars: int | NotSent | None = NOT_SENT,
        rules: Mapping[str, Any] | NotSent | None = NOT_SENT,
        ttl_days: float | NotSent | None = NOT_SENT,
        confidence_threshold: float | NotSent | None = NOT_SENT,
        min_age_days: float | NotSent | None = NOT_SENT,
        confidence_half_life_days: float | NotSent | None = NOT_SENT,
        half_life_days: float | NotSent | None = NOT_SENT,
        single_call: bool | NotSent | None = NOT_SENT,
    ) -> ProfileRecord:
        """Make a profile for the sources below a prefix, or change some fields of it.

        `PUT /extraction/profiles/{prefix}`.
        """
        return await self._transport.send(
            Call(
                "PUT",
                f"/extraction/profiles/{segments(prefix)}",
                {200: ProfileRecord},
                body={
                    "mode": mode,
                    "enabled": enabled,
                    "max_facts": max_facts,
                    "max_fact_chars": max_fact_chars,
                    "rules": rules,
                    "ttl_days": ttl_days,
                    "confidence_threshold": confidence_threshold,
                    "min_age_days": min_age_days,
                    "confidence_half_life_days": confidence_half_life_days,
                    "half_life_days": half_life_days,
                    "single_call": single_call,
                },
                repeat=Repeat.SAFE,
            )
        )

    async def delete(self, prefix: str) -> ProfileDeleted:
        """Delete the profile of exactly this prefix; what was stored under it stays.

        `DELETE /extraction/profiles/{prefix}`.
        """
        return await self._transport.send(
            Call("DELETE", f"/extraction/profiles/{segments(prefix)}", {200: ProfileDeleted})
        )
