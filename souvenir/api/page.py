"""The web page: its document and its files. They are open and contain no stored data; the page asks the API for that.

The document names its files below the digest of all of them, so that browsers keep those files and never mix versions.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

import souvenir
from souvenir.server.load_shedding import CostClass
from souvenir.server.routing import Routes

routes = Routes("page")

FOLDER = Path(souvenir.__file__).parent / "page"
ASSETS = "ui/assets/"
POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json"}


@dataclass(frozen=True, slots=True)
class Asset:
    media_type: str
    plain: bytes
    compressed: bytes


@cache
def assets() -> dict[str, Asset]:
    """The files that the page loads, by their path in its folder."""
    found = {}
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in _TYPES:
            content = path.read_bytes()
            found[path.relative_to(FOLDER).as_posix()] = Asset(
                _TYPES[path.suffix], content, gzip.compress(content, mtime=0)
            )
    return found


@cache
def digest() -> str:
    every = hashlib.sha256()
    for name, asset in assets().items():
        every.update(name.encode() + b"\0" + asset.plain)
    return every.hexdigest()[:16]


@routes.get("/", cost=CostClass.LIGHT, include_in_schema=False)
def page() -> Response:
    document = (FOLDER / "index.html").read_text(encoding="utf-8").replace("{assets}", f"{ASSETS}{digest()}")
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
    return Response(document, media_type="text/html", headers=headers)


@routes.get("/ui", cost=CostClass.LIGHT, include_in_schema=False)
def page_by_its_other_name() -> Response:
    return page()


@routes.get("/ui/assets/{version}/{name:path}", cost=CostClass.LIGHT, include_in_schema=False)
def page_asset(version: str, name: str, request: Request) -> Response:
    asset = assets().get(name)
    if asset is None or version != digest():
        raise HTTPException(404)
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("Accept-Encoding", ""):
        return Response(asset.plain, media_type=asset.media_type, headers=headers)
    headers["Content-Encoding"] = "gzip"
    return Response(asset.compressed, media_type=asset.media_type, headers=headers)
