"""The signature of an archive: a JSON file next to it, by the key of the installation (Ed25519, RFC 8032).

Signed are `PREFIX` and the SHA-256 of the file. The key is made at the first export and stays in DATA_DIR.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from souvenir.core.errors import InvalidRequest, StoreUnusable
from souvenir.core.files import make_folder, write_private
from souvenir.core.settings import Settings

PREFIX = b"souvenir archive 1\n"
KEY_NAME = "archive.key"
ALGORITHM = "ed25519"


@dataclass(frozen=True, slots=True)
class Signature:
    """:param path: Its file. :param public_key: In base64, of the key that signed."""

    path: Path
    public_key: str


def signature_path(archive: Path) -> Path:
    return archive.with_name(archive.name + ".sig")


def sign(settings: Settings, archive: Path, digest: bytes) -> Signature:
    """Write the signature of an archive.

    :param digest: The SHA-256 of the file. :raises StoreUnusable: If the key in DATA_DIR cannot be read or made.
    """
    key = _own_key(settings.data_dir)
    made = Signature(signature_path(archive), base64.b64encode(key.public_key().public_bytes_raw()).decode())
    content = {
        "algorithm": ALGORITHM,
        "sha256": digest.hex(),
        "public_key": made.public_key,
        "signature": base64.b64encode(key.sign(PREFIX + digest)).decode(),
    }
    write_private(made.path, json.dumps(content, indent=1) + "\n")
    return made


def require_signed(archive: Path, digest: bytes, public_key: str | None) -> str:
    """Return the public key that signed the archive, in base64.

    :param public_key: The key that must have signed it; None for any.
    :raises InvalidRequest: If the signature is missing or wrong, or is by another key.
    """
    path = signature_path(archive)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        key, signature = (base64.b64decode(content[name], validate=True) for name in ("public_key", "signature"))
        Ed25519PublicKey.from_public_bytes(key).verify(signature, PREFIX + digest)
    except FileNotFoundError as error:
        raise InvalidRequest(
            f"{path} is missing; put the signature next to the archive, or accept one without it with --unsigned"
        ) from error
    except InvalidSignature as error:
        raise InvalidRequest(f"{archive} is not as it was signed; export it again") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidRequest(f"{path} is no signature of an archive; export it again") from error
    signer = base64.b64encode(key).decode()
    if public_key is not None and public_key != signer:
        raise InvalidRequest(f"{archive} was signed by the key {signer} and not by {public_key}; do not trust it")
    return signer


def _own_key(folder: Path) -> Ed25519PrivateKey:
    path = folder / KEY_NAME
    try:
        if not path.exists():
            make_folder(folder)
            made = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            write_private(path, made.decode())
        key = load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError) as error:
        raise StoreUnusable(
            f"The key {path} cannot be read ({error}); restore it, or delete it for a new one"
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise StoreUnusable(f"The key {path} is no Ed25519 key; restore it, or delete it for a new one")
    return key
