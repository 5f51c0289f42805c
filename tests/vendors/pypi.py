"""PyPI's advisories on loopback, for clients that know only the public address.

A client reaches them through this proxy, which answers every host itself under a certificate of its own authority.
"""

from __future__ import annotations

import functools
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HOST = "pypi.org"


@dataclass
class PyPI:
    """:param releases: Advisories by `name/version`; other releases are 404.

    :param failing: Releases whose request is answered with 503.
    :param silent: Requests are read and not answered.
    :param headers: Those of all requests.
    """

    environment: dict[str, str]
    releases: dict[str, list[dict[str, Any]]]
    failing: set[str] = field(default_factory=set)
    silent: bool = False
    asked: list[str] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(folder: Path) -> Iterator[PyPI]:
    """:param folder: For the certificate."""
    certificate, key = certified(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    pypi = PyPI({"REQUESTS_CA_BUNDLE": str(certificate)}, {"packaging/24.0": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Proxy, pypi=pypi, context=context))
    pypi.environment["HTTPS_PROXY"] = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield pypi
    finally:
        pypi.closing.set()
        server.shutdown()
        server.server_close()


def certified(folder: Path) -> tuple[Path, Path]:
    """The files of a certificate for the host, which is its own authority, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments: Any, pypi: PyPI, context: ssl.SSLContext) -> None:
        self._pypi = pypi
        self._context = context
        super().__init__(*arguments)

    def do_CONNECT(self) -> None:
        self.send_response(200)
        self.end_headers()
        tls = self._context.wrap_socket(self.connection, server_side=True)
        # The requests within the tunnel are read by the loop that read this one.
        self.connection, self.rfile, self.wfile = tls, tls.makefile("rb"), tls.makefile("wb")
        self.close_connection = False

    def finish(self) -> None:
        super().finish()
        self.connection.close()

    def do_GET(self) -> None:
        release = self.path.removeprefix("/pypi/").removesuffix("/json")
        self._pypi.asked.append(release)
        self._pypi.headers += [f"{name}: {value}" for name, value in self.headers.items()]
        if self._pypi.silent:
            self._pypi.closing.wait()
        elif release in self._pypi.failing:
            self._answer(503, {})
        elif release in self._pypi.releases:
            self._answer(200, {"vulnerabilities": self._pypi.releases[release]})
        else:
            self._answer(404, {})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        encoded = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""
