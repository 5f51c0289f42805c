"""The files of the page: how they are served, and where they come from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import souvenir
from scripts.vendor_page import VENDOR, vendored
from tests.api.conftest import KEY
from tests.page.requirements import HAS_NODE_MODULES, INSTALL_NODE_MODULES

PAGE = Path(souvenir.__file__).parent / "page"


@pytest.mark.parametrize("path", ["/", "/ui"])
def test_the_document_is_served_with_a_strict_policy_and_names_files_that_are_kept(client, path):
    document = client.get(path)
    assert document.headers["Content-Type"] == "text/html; charset=utf-8"
    assert document.headers["Cache-Control"] == "no-cache"
    directives = dict(each.split(" ", 1) for each in document.headers["Content-Security-Policy"].split("; "))
    assert directives["default-src"] == "'self'"
    assert "unsafe" not in document.headers["Content-Security-Policy"]
    assert directives["frame-ancestors"] == directives["object-src"] == "'none'"
    files = re.findall(r'(?:href|src)="(ui/assets/[^"]+)"', document.text)
    assert files
    for file in files:
        answer = client.get(f"/{file}")
        assert answer.status_code == 200, file
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert answer.content == (PAGE / file.split("/", 3)[3]).read_bytes()


def test_a_file_is_compressed_for_clients_that_take_it(client):
    [script] = re.findall(r'src="(ui/assets/[^"]+/app.js)"', client.get("/").text)
    plain = client.get(f"/{script}", headers={"Accept-Encoding": "identity"})
    small = client.get(f"/{script}", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in plain.headers
    assert (small.headers["Content-Encoding"], small.content) == ("gzip", plain.content)
    assert int(small.headers["Content-Length"]) < int(plain.headers["Content-Length"])


@pytest.mark.parametrize(
    "name", ["nothing.js", "../settings.py", "%2e%2e/%2e%2e/app.py", "api-types.d.ts", "index.html"]
)
def test_no_other_file_is_served(client, name):
    [version] = re.findall(r'src="(ui/assets/[^/]+)', client.get("/").text)
    assert client.get(f"/{version}/{name}").status_code == 404
    assert client.get("/ui/assets/0000000000000000/app.js").status_code == 404


@pytest.mark.skipif(not HAS_NODE_MODULES, reason=INSTALL_NODE_MODULES)
def test_the_vendored_modules_are_those_of_the_locked_packages():
    held = {path.name: path.read_text(encoding="utf-8") for path in VENDOR.iterdir()}
    assert held == vendored(), "python -m scripts.vendor_page"


def test_the_page_needs_no_key(start):
    client = start(api_key=KEY)
    [script] = re.findall(r'src="(ui/assets/[^"]+)"', client.get("/").text)
    assert client.get(f"/{script}").status_code == 200
