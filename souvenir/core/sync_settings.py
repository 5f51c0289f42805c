"""Settings of cloud sync: the bucket that receives copies of backups, its keys and the passphrase."""

from __future__ import annotations

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings


class SyncSettings(BaseSettings):
    """The part of `souvenir.core.settings.Settings` that concerns cloud sync."""

    sync_bucket: str | None = Field(
        default=None,
        min_length=1,
        description="Bucket that receives copies of backups (docs/operations.md, Cloud sync). Requires the packages of "
        "requirements-sync.txt; unset sends nothing.",
    )
    sync_endpoint_url: str | None = Field(
        default=None,
        description="Address of an S3-compatible store, such as `https://minio.example:9000`; unset is AWS.",
    )
    sync_prefix: str = Field(
        default="souvenir/",
        max_length=500,
        description="Beginning of the object names in the bucket; each service needs its own.",
    )
    sync_region: str | None = Field(
        default=None, description="Region of the bucket; unset takes `AWS_REGION` or `AWS_DEFAULT_REGION`."
    )
    sync_access_key_id: str | None = Field(
        default=None,
        description="Access key of the bucket; unset takes AWS's own variables, files or roles "
        "(`AWS_ACCESS_KEY_ID` and so on).",
    )
    sync_secret_access_key: SecretStr | None = Field(default=None, description="Secret of SYNC_ACCESS_KEY_ID.")
    sync_passphrase: SecretStr | None = Field(
        default=None,
        description="Passphrase with which backups are encrypted before they are sent. Without it they cannot be "
        "restored: keep a copy elsewhere. Unset sends them as they are.",
    )
    sync_interval_hours: float = Field(
        default=24.0, ge=0, description="Hours between scheduled uploads, made if something changed; 0 makes none."
    )
    sync_keep: int = Field(default=30, ge=1, description="Backups kept in the bucket; an upload deletes older ones.")
