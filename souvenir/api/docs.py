"""The description of this API, for machines and for people. Open to everybody; it holds nothing of what is stored."""

from __future__ import annotations

from fastapi import Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, JSONResponse

from souvenir.api.json_route import router

routes = router("docs")

# Not left to FastAPI, whose own routes make the description, for some 0.4 s at first, on the event loop.


@routes.get("/openapi.json", include_in_schema=False)
def openapi(request: Request) -> JSONResponse:
    return JSONResponse(request.app.openapi())


@routes.get("/docs", include_in_schema=False)
def docs(request: Request) -> HTMLResponse:
    """A page whose script a browser gets from a public address; the service itself sends nothing there."""
    return get_swagger_ui_html(openapi_url="openapi.json", title=request.app.title)
