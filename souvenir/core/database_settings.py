"""Settings of a database in PostgreSQL, which several replicas of the service share."""

from __future__ import annotations

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings

SCHEMES = ("postgresql://", "postgres://")


class DatabaseSettings(BaseSettings):
    """The part of `souvenir.core.settings.Settings` that concerns PostgreSQL."""

    database_url: SecretStr | None = Field(
        default=None,
        description="Address of a database in PostgreSQL 16 or newer, such as `postgresql://souvenir@db/souvenir`, "
        "that any number of replicas share (docs/scaling.md); parameters of libpq may follow. Unset, the database is a "
        "file in DATA_DIR.",
    )
    database_connections: int = Field(
        default=8,
        ge=2,
        le=200,
        description="Maximum connections of one replica to PostgreSQL, besides one that waits for news.",
    )
    database_statement_timeout_s: float = Field(
        default=60.0,
        gt=0,
        description="Maximum seconds of one statement in PostgreSQL; a request that needs longer is answered 503.",
    )

    @field_validator("database_url")
    @classmethod
    def _of_postgres(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not url.get_secret_value().startswith(SCHEMES):
            raise ValueError("it is not the URL of a PostgreSQL database; begin it with postgresql://")
        return url
