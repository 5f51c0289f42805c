"""The bucket: backups as objects of an S3-compatible store.

A backup is two objects below the prefix: `NAME/souvenir.db` (or `NAME/souvenir.db.enc`), then `NAME/manifest.json`,
which describes it. The manifest is written last and deleted first, so a backup with a manifest is whole. What is read
is trusted as little as any input: names, sizes and manifests are checked.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog

from souvenir.core.errors import RemoteBackupNotFound, RemoteBackupUnusable, SyncUnavailable, Unavailable
from souvenir.core.settings import Settings
from souvenir.core.stored_json import StoredJson
from souvenir.store.sqlite.backups import DATABASE_FILE, MANIFEST_FILE, Backup
from souvenir.sync.encryption import Readable

ENCRYPTED = ".enc"
"""The suffix of an encrypted database."""

PART_BYTES = 16 * 2**20
MAX_PARTS = 9_000
"""S3 allows 10,000 parts in an upload; larger databases have larger parts."""

MAX_MANIFEST_BYTES = 64 * 1024
CONNECT_TIMEOUT_S, READ_TIMEOUT_S, ATTEMPTS = 5, 15, 3
RESUMPTIONS = 5
"""Interruptions of one download after which it is given up."""

ABANDONED_AFTER = timedelta(days=1)
"""A database without a manifest that is older belongs to an upload that was killed."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")

_CREDENTIALS = frozenset(
    {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "Forbidden"}
    | {"401", "403", "AllAccessDisabled", "AccountProblem", "NotSignedUp", "AuthorizationHeaderMalformed"}
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RemoteBackup:
    """An entry of the list. `uploaded_at` is by the clock of the store."""

    name: str
    uploaded_at: datetime
    stored_bytes: int
    encrypted: bool


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of `manifest.json`: the backup, and the object that holds its database.

    :param sha256: Of the object as it is stored, like `stored_bytes`.
    :param context: The description of the backup as it is stored, to which an encrypted database is bound.
    """

    backup: Backup
    encrypted: bool
    stored_bytes: int
    sha256: str
    context: bytes

    @classmethod
    def parse(cls, content: bytes) -> Manifest:
        """:raises ValueError: If it is invalid. Fields of a newer release are ignored."""
        stored = json.loads(content)
        return _MANIFEST.load({**stored, "context": _canonical(stored["backup"])})

    def to_json(self) -> bytes:
        stored = {"backup": asdict(self.backup), "encrypted": self.encrypted}
        return json.dumps({**stored, "stored_bytes": self.stored_bytes, "sha256": self.sha256}, indent=2).encode()


_MANIFEST = StoredJson(Manifest, unknown="ignore")


def context_of(backup: Backup) -> bytes:
    return _canonical(asdict(backup))


def _canonical(stored: Any) -> bytes:
    return json.dumps(stored, sort_keys=True).encode()


class Bucket:
    """Thread-safe. Every call blocks on the network; nothing is requested before the first call."""

    def __init__(self, settings: Settings) -> None:
        """:raises Unavailable: If the packages of the extra are not installed."""
        try:
            import boto3
            from boto3.s3.transfer import TransferConfig
            from botocore.config import Config
        except ImportError as error:
            raise Unavailable(
                "SYNC_BUCKET is set and the packages of cloud sync are missing; install requirements-sync.txt, or "
                "unset it"
            ) from error
        secret = settings.sync_secret_access_key
        self._transfer_config = TransferConfig
        self._name = str(settings.sync_bucket)
        self._prefix = settings.sync_prefix
        # Stores other than AWS often know neither buckets as host names nor its newer checksums; SHA-256 is ours.
        self._client = boto3.session.Session().client(
            "s3",
            endpoint_url=settings.sync_endpoint_url,
            region_name=settings.sync_region,
            aws_access_key_id=settings.sync_access_key_id,
            aws_secret_access_key=None if secret is None else secret.get_secret_value(),
            config=Config(
                connect_timeout=CONNECT_TIMEOUT_S,
                read_timeout=READ_TIMEOUT_S,
                retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                s3={"addressing_style": "path" if settings.sync_endpoint_url else "auto"},
            ),
        )

    def backups(self) -> list[RemoteBackup]:
        """Return the backups that are whole, the newest upload first."""
        objects = dict(self._objects())
        found = []
        for key, manifest in objects.items():
            folder, _, file = key.rpartition("/")
            if file != MANIFEST_FILE or not _NAME.fullmatch(folder):
                continue
            for suffix in (ENCRYPTED, ""):
                if database := objects.get(f"{folder}/{DATABASE_FILE}{suffix}"):
                    found.append(RemoteBackup(folder, manifest["LastModified"], database["Size"], bool(suffix)))
                    break
        return sorted(found, key=lambda one: (one.uploaded_at, one.name), reverse=True)

    def manifest(self, name: str) -> Manifest:
        """:raises RemoteBackupNotFound: If there is none of that name.

        :raises RemoteBackupUnusable: If it cannot be read.
        """
        if not _NAME.fullmatch(name):
            raise RemoteBackupNotFound(name)
        with self._errors():
            try:
                answer = self._client.get_object(Bucket=self._name, Key=self._key(name, MANIFEST_FILE))
            except self._client.exceptions.NoSuchKey as error:
                raise RemoteBackupNotFound(name) from error
            content = answer["Body"].read(MAX_MANIFEST_BYTES)
        try:
            manifest = Manifest.parse(content)
            datetime.fromisoformat(manifest.backup.created_at)
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise RemoteBackupUnusable(name, "its manifest cannot be read; restore another one") from error
        if manifest.backup.name != name:
            raise RemoteBackupUnusable(name, "its manifest is that of another backup; restore another one")
        return manifest

    def upload(self, backup: Backup, database: Readable, *, size: int, encrypted: bool) -> Manifest:
        """Store a backup, reading its database once and in parts; an existing one of its name is replaced.

        :param size: The approximate number of bytes that `database` returns.
        """
        hashed = _Hashed(database)
        part_bytes = max(PART_BYTES, size // MAX_PARTS)
        config = self._transfer_config(
            multipart_threshold=part_bytes, multipart_chunksize=part_bytes, use_threads=False
        )
        with self._errors():
            self._client.upload_fileobj(
                hashed, self._name, self._key(backup.name, _database_file(encrypted)), Config=config
            )
            manifest = Manifest(backup, encrypted, hashed.bytes, hashed.sha256, context_of(backup))
            self._client.put_object(
                Bucket=self._name,
                Key=self._key(backup.name, MANIFEST_FILE),
                Body=manifest.to_json(),
                ContentType="application/json",
            )
            # The other form of it, from before the passphrase was set or unset.
            self._delete(backup.name, _database_file(not encrypted))
        return manifest

    @contextmanager
    def database(self, manifest: Manifest) -> Iterator[Readable]:
        """Open the stored database for one pass; it ends only where its size and SHA-256 are those of the manifest.

        :raises RemoteBackupUnusable: While reading, if it is another file.
        """
        name = manifest.backup.name
        stream = _Download(
            lambda start: self._open(name, _database_file(manifest.encrypted), start), manifest, self._is_interruption
        )
        with self._errors():
            yield stream

    def delete(self, name: str) -> None:
        with self._errors():
            for file in (MANIFEST_FILE, _database_file(True), _database_file(False)):
                self._delete(name, file)

    def clear_abandoned(self, now: datetime) -> None:
        """Delete databases without a manifest that uploads left long ago."""
        objects = dict(self._objects())
        for key, stored in objects.items():
            folder, _, file = key.rpartition("/")
            is_database = file in (_database_file(True), _database_file(False)) and _NAME.fullmatch(folder)
            is_old = now - stored["LastModified"] > ABANDONED_AFTER
            if is_database and is_old and f"{folder}/{MANIFEST_FILE}" not in objects:
                with self._errors():
                    self._delete(folder, file)

    def _objects(self) -> Iterator[tuple[str, Any]]:
        """Yield the objects by their name below the prefix."""
        with self._errors():
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name, Prefix=self._prefix):
                for stored in page.get("Contents", ()):
                    yield stored["Key"].removeprefix(self._prefix), stored

    def _open(self, name: str, file: str, start: int) -> Any:
        """Return the body of an object from a byte on."""
        try:
            return self._client.get_object(
                Bucket=self._name, Key=self._key(name, file), **({"Range": f"bytes={start}-"} if start else {})
            )["Body"]
        except self._client.exceptions.NoSuchKey as error:
            raise RemoteBackupUnusable(name, "its database is missing; restore another one") from error

    def _delete(self, name: str, file: str) -> None:
        self._client.delete_object(Bucket=self._name, Key=self._key(name, file))

    def _key(self, name: str, file: str) -> str:
        return f"{self._prefix}{name}/{file}"

    @staticmethod
    def _is_interruption(error: BaseException) -> bool:
        from botocore.exceptions import HTTPClientError, IncompleteReadError, ResponseStreamingError
        from urllib3.exceptions import HTTPError

        return isinstance(error, HTTPClientError | IncompleteReadError | ResponseStreamingError | HTTPError | OSError)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Replace errors of the library by a sentence; what the store answered is neither shown nor logged."""
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError
        from urllib3.exceptions import HTTPError

        try:
            yield
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code"))
            if code in ("NoSuchBucket", "404"):
                reason = f"The bucket {self._name!r} does not exist there; make it, or correct SYNC_BUCKET"
            elif code in _CREDENTIALS:
                reason = (
                    f"The store refused the keys for the bucket {self._name!r} ({code}); correct SYNC_ACCESS_KEY_ID, "
                    "SYNC_SECRET_ACCESS_KEY or SYNC_REGION, or allow the keys what they need"
                )
            else:
                reason = f"The store refused a request for the bucket {self._name!r} ({code}); try again later"
            raise SyncUnavailable(reason) from error
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise SyncUnavailable(
                "There are no complete keys for the bucket; set SYNC_ACCESS_KEY_ID and SYNC_SECRET_ACCESS_KEY"
            ) from error
        except (BotoCoreError, HTTPError) as error:
            raise SyncUnavailable(
                f"The store of the bucket {self._name!r} cannot be reached ({type(error).__name__}); check "
                "SYNC_ENDPOINT_URL and the network, and try again"
            ) from error


def _database_file(encrypted: bool) -> str:
    return DATABASE_FILE + ENCRYPTED if encrypted else DATABASE_FILE


class _Hashed:
    """A file that is read once, with its size and SHA-256."""

    def __init__(self, source: Readable) -> None:
        self._source = source
        self._hash = hashlib.sha256()
        self.bytes = 0

    def read(self, size: int = -1, /) -> bytes:
        """:param size: At most; a negative one is the rest, which the library reads of what is shorter than a part."""
        part = b"".join(iter(lambda: self._source.read(2**20), b"")) if size < 0 else self._source.read(size)
        self._hash.update(part)
        self.bytes += len(part)
        return part

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


class _Download:
    """The stored object of a manifest, continued where its connection broke off."""

    def __init__(
        self, open_at: Callable[[int], Any], manifest: Manifest, is_interruption: Callable[[BaseException], bool]
    ) -> None:
        self._open_at = open_at
        self._manifest = manifest
        self._is_interruption = is_interruption
        self._hash = hashlib.sha256()
        self._position = 0
        self._interruptions = 0
        self._body: Any = None

    def read(self, size: int, /) -> bytes:
        part = self._next(size)
        self._hash.update(part)
        self._position += len(part)
        if self._position > self._manifest.stored_bytes or (not part and self._position < self._manifest.stored_bytes):
            raise RemoteBackupUnusable(
                self._manifest.backup.name, "it does not have the size that was uploaded; restore another one"
            )
        if not part and self._hash.hexdigest() != self._manifest.sha256:
            raise RemoteBackupUnusable(
                self._manifest.backup.name, "its checksum is not that of the upload; restore another one"
            )
        return part

    def _next(self, size: int) -> bytes:
        while True:
            try:
                if self._position == self._manifest.stored_bytes and self._body is None:
                    return b""
                if self._body is None:
                    self._body = self._open_at(self._position)
                part: bytes = self._body.read(size)
            except Exception as error:
                self._interruptions += 1
                if not self._is_interruption(error) or self._interruptions > RESUMPTIONS:
                    raise
                log.warning("sync_resumed", error=type(error).__name__, at_bytes=self._position)
                self._close()
            else:
                return part

    def _close(self) -> None:
        if self._body is not None:
            self._body.close()
            self._body = None
