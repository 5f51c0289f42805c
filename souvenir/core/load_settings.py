"""Settings of the load: how much work and waiting is admitted at once, and how long a request may take."""

from __future__ import annotations

from pydantic import Field

from souvenir.core.network_settings import NetworkSettings


class LoadSettings(NetworkSettings):
    """The part of `souvenir.core.settings.Settings` that concerns the load."""

    request_timeout_s: float = Field(
        default=60.0, gt=0, description="Seconds from a request's arrival until it is answered 503."
    )
    queue_wait_s: float = Field(
        default=1.0,
        gt=0,
        description="Maximum expected wait of a request before it is processed, in seconds; above, it is refused at "
        "once (429).",
    )
    max_request_tokens: int = Field(
        default=150_000,
        ge=1,
        description="Maximum tokens of the texts of one request (413 above); jobs such as imports are not limited.",
    )
    max_searches: int = Field(
        default=0,
        ge=0,
        description="Maximum concurrent searches; 0 takes one per core, more where another server embeds.",
    )
    max_writes: int = Field(default=0, ge=0, description="Maximum concurrent writes; 0 takes as many as for searches.")
    max_reads: int = Field(
        default=0, ge=0, description="Maximum other concurrent reads; 0 takes two per core, at least 8."
    )
    max_long: int = Field(
        default=6, ge=1, description="Maximum concurrent long requests: backups, exports, deletions by source."
    )
    max_proxied_calls: int = Field(
        default=128,
        ge=1,
        description="Maximum calls of models in progress through the proxy (429 above); one caller may have three "
        "quarters of them.",
    )
    max_connections: int = Field(
        default=512, ge=1, description="Maximum open connections; on further ones only health is answered (503)."
    )
    stall_timeout_s: float = Field(
        default=20.0,
        gt=0,
        description="Seconds until a client is disconnected that sends neither a further 64 KiB of its body nor its "
        "end, or does not read its answer.",
    )
    body_memory_mb: int = Field(
        default=128, ge=1, description="Memory for the bodies of requests in progress, in MiB (429 above)."
    )
