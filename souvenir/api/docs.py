"""The OpenAPI document and the page that shows it. Both are open and contain no stored data.

The page's script and style come from the package fastapi-offline, so that the page needs no network; only its files are
used, none of its code.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.util import find_spec
from pathlib import Path

from fastapi import Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse

from souvenir.server.load_shedding import CostClass
from souvenir.server.routing import Routes

routes = Routes("docs")

_INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)

# Not left to FastAPI, whose own routes make the description, for some 0.4 s at first, on the event loop.


@routes.get("/openapi.json", cost=CostClass.LIGHT, include_in_schema=False)
def openapi(request: Request) -> JSONResponse:
    return JSONResponse(request.app.openapi())


@routes.get("/docs", cost=CostClass.LIGHT, include_in_schema=False)
def docs(request: Request) -> HTMLResponse:
    page = get_swagger_ui_html(
        openapi_url="openapi.json",
        title=request.app.title,
        swagger_js_url="docs/swagger-ui-bundle.js",
        swagger_css_url="docs/swagger-ui.css",
        swagger_favicon_url="docs/favicon.png",
    )
    page.headers["Content-Security-Policy"] = _page_policy(bytes(page.body))
    return page


@routes.get("/docs/swagger-ui-bundle.js", cost=CostClass.LIGHT, include_in_schema=False)
def docs_script() -> FileResponse:
    return FileResponse(_page_file("swagger-ui-bundle.js"))


@routes.get("/docs/swagger-ui.css", cost=CostClass.LIGHT, include_in_schema=False)
def docs_style() -> FileResponse:
    return FileResponse(_page_file("swagger-ui.css"))


@routes.get("/docs/favicon.png", cost=CostClass.LIGHT, include_in_schema=False)
def docs_icon() -> FileResponse:
    return FileResponse(_page_file("favicon.png"))


def _page_policy(page: bytes) -> str:
    """Only files of the service, and the one script that is part of the page, by its hash.

    Swagger UI sets styles on elements, and its style sheet has images as data.
    """
    [script] = _INLINE_SCRIPT.findall(page)
    digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
    return (
        f"default-src 'none'; script-src 'self' 'sha256-{digest}'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _page_file(name: str) -> Path:
    package = find_spec("fastapi_offline")
    if package is None or package.origin is None:
        raise FileNotFoundError("the package fastapi-offline is not installed")
    return Path(package.origin).parent / "static" / name
