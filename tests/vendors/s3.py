"""An S3 server on loopback (moto, in a process of its own), and a proxy that cuts connections to it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from threading import Event, Thread
from typing import Any

import boto3
import httpx
from botocore.config import Config

BUCKET = "backups"
ACCESS_KEY_ID, SECRET = "AKIAEXAMPLE", "s3cr3t-8d1f"
START_TIMEOUT_S = 60
PAGE_KEYS = 100
"""Objects that one page of a list holds; Amazon's holds a thousand."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class S3Server:
    """:param unauthenticated: Requests until keys are checked; None: they never are."""

    def __init__(self, *, unauthenticated: int | None = None) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        environment = {
            **os.environ,
            "MOTO_S3_ALLOW_CROSSACCOUNT_ACCESS": "true",
            "MOTO_S3_DEFAULT_MAX_KEYS": str(PAGE_KEYS),
        }
        if unauthenticated is not None:
            environment["INITIAL_NO_AUTH_ACTION_COUNT"] = str(unauthenticated)
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.client = client_of(self.address)
        self._http = httpx.Client(base_url=self.address, trust_env=False, verify=False)

    def wait(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                self._http.get("/moto-api/data.json")
            except httpx.TransportError:
                assert time.monotonic() < deadline, "moto did not start"
                time.sleep(0.05)
            else:
                return

    def reset(self) -> None:
        """Delete everything and make the bucket."""
        self._http.post("/moto-api/reset").raise_for_status()
        self.client.create_bucket(Bucket=BUCKET)

    def objects(self) -> list[str]:
        return [one["Key"] for one in self.client.list_objects_v2(Bucket=BUCKET).get("Contents", ())]

    def read(self, key: str) -> bytes:
        content: bytes = self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return content

    def write(self, key: str, content: bytes) -> None:
        self.client.put_object(Bucket=BUCKET, Key=key, Body=content)

    def close(self) -> None:
        self._http.close()
        self._process.kill()
        self._process.wait()


def client_of(address: str) -> Any:
    config = Config(s3={"addressing_style": "path"}, proxies={})
    return boto3.session.Session().client(
        "s3",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id=ACCESS_KEY_ID,
        aws_secret_access_key=SECRET,
        config=config,
    )


class CuttingProxy:
    """Forwards connections, and closes one after each number of bytes of answers in `cuts`.

    :param port: Of the server.
    :param stalls_after: Bytes of requests that are forwarded; all further ones wait for ever.
    """

    def __init__(self, port: int, cuts: list[int] | None = None, *, stalls_after: int | None = None) -> None:
        self._server = port
        self.cuts = [] if cuts is None else cuts
        self._stalls_after = stalls_after
        self._sent = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._server))
            Thread(target=self._copy, args=(client, server, False), daemon=True).start()
            Thread(target=self._copy, args=(server, client, True), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, cut: bool) -> None:
        copied = 0
        with suppress(OSError):
            while part := source.recv(65536):
                if not cut and self._stalls_after is not None:
                    self._sent += len(part)
                    if self._sent > self._stalls_after:
                        Event().wait()
                if cut and self.cuts and copied + len(part) >= self.cuts[0]:
                    target.sendall(part[: max(0, self.cuts.pop(0) - copied)])
                    break
                target.sendall(part)
                copied += len(part)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def close(self) -> None:
        self._listener.close()
