"""The keys of the authorization server: how long they are used, and the signatures that each checks."""

from __future__ import annotations

import base64
import math
import time
from collections.abc import Iterator

import anyio
import anyio.to_thread
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from souvenir.access import access_tokens
from souvenir.access.access_tokens import AccessTokens
from souvenir.core.errors import AuthorizationServerUnavailable, Unauthorized
from souvenir.core.network_settings import NetworkSettings
from tests.mcp.conftest import TIMEOUT_S
from tests.mcp.test_access_tokens import PUBLIC, AuthorizationServer, new_key, public
from tests.vendors.server import Reply


@pytest.fixture(scope="module")
def server() -> Iterator[AuthorizationServer]:
    server = AuthorizationServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def tokens(server: AuthorizationServer) -> Iterator[AccessTokens]:
    """Access tokens that have read the keys; the server's own answers are given back afterwards."""
    settings = NetworkSettings(public_url=PUBLIC, oauth_issuer=server.issuer)
    tokens = AccessTokens(settings, None, "/metadata")  # type: ignore[arg-type]  # nothing here looks a key up
    anyio.run(tokens.subject, server.token().encode(), "/mcp")
    yield tokens
    server.published = None
    server.answers.set()


def test_a_known_key_is_not_waited_for_while_an_unknown_one_is_looked_up(tokens, server, monkeypatch):
    monkeypatch.setattr(access_tokens, "MIN_FETCH_INTERVAL_S", 0)
    unknown = server.token(kid="nobody", key=new_key())

    async def use(age: float) -> None:
        tokens._fetched_at = time.monotonic() - age
        server.answers.clear()
        server.asked.clear()
        async with anyio.create_task_group() as group:
            group.start_soon(refused, unknown)
            assert await anyio.to_thread.run_sync(server.asked.wait, TIMEOUT_S)
            assert await tokens.subject(server.token().encode(), "/mcp") == "auth0|ann"
            assert not server.answers.is_set()
            server.answers.set()

    async def refused(token: str) -> None:
        with pytest.raises(Unauthorized, match="signed with no key"):
            await tokens.subject(token.encode(), "/mcp")

    anyio.run(use, 0.0)
    anyio.run(use, access_tokens.KEYS_KEPT_S + 1)


UNREADABLE = [[1], {"keys": 5}, {"keys": [1]}, {"keys": []}, {"keys": [{"kty": 5}, {"kty": "RSA", "n": 1, "e": []}]}]


@pytest.mark.parametrize("published", UNREADABLE, ids=str)
def test_keys_that_cannot_be_read_again_are_used_for_a_day(tokens, server, monkeypatch, published):
    monkeypatch.setattr(access_tokens, "MIN_FETCH_INTERVAL_S", 0)
    server.published = Reply(body=published)
    asked = len(server.requests)
    for age in (access_tokens.KEYS_KEPT_S + 1, access_tokens.KEYS_USED_S - 60):
        tokens._fetched_at = time.monotonic() - age
        assert anyio.run(tokens.subject, server.token().encode(), "/mcp") == "auth0|ann"
    tokens._fetched_at = time.monotonic() - access_tokens.KEYS_USED_S
    with pytest.raises(AuthorizationServerUnavailable):
        anyio.run(tokens.subject, server.token().encode(), "/mcp")
    assert [request.path for request in server.requests[asked:]].count("/keys") == 3
    server.published = None
    assert anyio.run(tokens.subject, server.token().encode(), "/mcp") == "auth0|ann"


@pytest.mark.parametrize("alg", access_tokens.OF_RSA)
def test_a_key_of_no_stated_algorithm_checks_every_one_of_its_kind(tokens, server, alg):
    assert anyio.run(tokens.subject, server.token(alg=alg).encode(), "/mcp") == "auth0|ann"


def test_a_key_checks_no_other_algorithm_than_it_states_or_its_curve_has(tokens, server):
    curve = ec.generate_private_key(ec.SECP256R1())
    stated = {**public("first", server.keys["first"]), "alg": "RS512"}
    shared = {"kty": "oct", "kid": "shared", "k": "c2VjcmV0" * 8, "alg": "HS256"}
    server.published = Reply(body={"keys": [stated, public("curve", curve), shared]})
    tokens._fetched_at = tokens._asked_at = -math.inf

    def subject(token: str) -> str:
        return str(anyio.run(tokens.subject, token.encode(), "/mcp"))

    assert subject(server.token(alg="RS512")) == subject(server.token(kid="curve", key=curve, alg="ES256"))
    for token in (
        server.token(alg="RS256"),
        server.token(alg="PS512"),
        server.token(kid="curve", key=server.keys["first"]),
        server.token(kid="shared", key=base64.urlsafe_b64decode(shared["k"]), alg="HS256"),
        server.token(kid="first", key=b"a shared secret of 32 bytes or more", alg="HS256"),
    ):
        with pytest.raises(Unauthorized):
            subject(token)
