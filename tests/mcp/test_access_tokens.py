"""Access tokens of an authorization server at `/mcp`: discovery, checks, and the key that each acts as."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import anyio
import httpx
import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from mcp import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl, ValidationError

from souvenir.access import access_tokens
from souvenir.core.settings import Settings
from souvenir.core.types import Role
from tests.client.running import RunningService
from tests.mcp.conftest import TIMEOUT_S, Asking, asking, calling
from tests.mcp.test_access_table import ENV, KEY
from tests.vendors.server import Reply, Request, Server

PUBLIC = "https://memory.example.org"
RESOURCE = f"{PUBLIC}/mcp"
LIST = asking("tools/list")
ENDPOINTS = {
    "authorization_endpoint": "authorize",
    "token_endpoint": "token",
    "registration_endpoint": "register",
    "jwks_uri": "keys",
}


class AuthorizationServer(Server[Request]):
    """Publishes its metadata and its keys, as RFC 8414 says; its issuer has a path.

    `asked` is set when the keys are asked for, and they are sent when `answers` is.
    """

    def __init__(self) -> None:
        super().__init__(Request)
        self.keys: dict[str, Any] = {"first": new_key()}
        self.published: Reply | None = None
        self.asked, self.answers = Event(), Event()
        self.answers.set()

    @property
    def issuer(self) -> str:
        return f"{self.url}/tenant"

    def reply(self, request: Request, queued: Any) -> Reply:
        if queued is not None:
            reply: Reply = queued
            return reply
        if request.path == "/.well-known/oauth-authorization-server/tenant":
            endpoints = {name: f"{self.url}/{place}" for name, place in ENDPOINTS.items()}
            modes = {"response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]}
            return Reply(body={"issuer": self.issuer, **endpoints, **modes})
        if request.path == "/register":
            return Reply(201, {**request.body, "client_id": "assistant"})
        if request.path == "/token":
            return self._token_for(request.body)
        if request.path == "/keys":
            self.asked.set()
            self.answers.wait(TIMEOUT_S)
            return self.published or Reply(body={"keys": [public(name, key) for name, key in self.keys.items()]})
        return Reply(404, {"error": "not_found"})

    def _token_for(self, asked: dict[str, str]) -> Reply:
        """With PKCE: the code is the challenge itself, of which the client has to know the origin."""
        digest = hashlib.sha256(asked["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != asked["code"]:
            return Reply(400, {"error": "invalid_grant"})
        token = self.token(aud=asked["resource"])
        return Reply(body={"access_token": token, "token_type": "Bearer", "expires_in": 300})

    def token(
        self, subject: str = "auth0|ann", *, kid: str = "first", key: Any = None, alg: str = "RS256", **claims: Any
    ) -> str:
        now = int(time.time())
        stated = {"iss": self.issuer, "aud": RESOURCE, "sub": subject, "iat": now, "exp": now + 300, **claims}
        stated = {name: value for name, value in stated.items() if value is not None}
        return jwt.encode(stated, key or self.keys[kid], algorithm=alg, headers={"kid": kid})


def public(name: str, key: Any) -> dict[str, Any]:
    kind: Any = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**kind.to_jwk(key.public_key(), as_dict=True), "kid": name}


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(scope="module")
def server() -> Iterator[AuthorizationServer]:
    server = AuthorizationServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def service(server: AuthorizationServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    data_dir: Path = tmp_path_factory.mktemp("tokens")
    service = RunningService(
        data_dir, api_key=KEY, auth_rate_limit=10**6, public_url=PUBLIC, oauth_issuer=server.issuer
    )
    service.start()
    yield service
    service.stop()


@pytest.fixture(scope="module")
def ask(service: RunningService) -> Iterator[Asking]:
    with httpx.Client(base_url=service.url, timeout=TIMEOUT_S, trust_env=False) as http:
        yield Asking(http)


@pytest.fixture(scope="module")
def ann(ask: Asking) -> dict[str, Any]:
    """The key for the tokens of auth0|ann."""
    return made(ask, "oauth:auth0|ann", namespace="ann")


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_tokens, "MIN_FETCH_INTERVAL_S", 0)


def made(ask: Asking, name: str, role: Role = Role.READ_WRITE, **reach: Any) -> dict[str, Any]:
    answer = ask.http.post("/api/keys", json={"name": name, "role": role.value, **reach}, headers=ENV)
    assert answer.status_code == 200, answer.text
    key: dict[str, Any] = answer.json()
    return key


def bearing(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def refusal(ask: Asking, token: str, path: str = "/mcp") -> tuple[int, str]:
    answer = ask.post(LIST, path, bearing(token))
    return answer.status_code, answer.json()["error"]["message"] if answer.status_code != 200 else ""


def test_a_client_without_a_token_is_led_to_the_authorization_server(ask: Asking, server):
    answer = ask.post(LIST)
    assert answer.status_code == 401
    metadata = f"{PUBLIC}/.well-known/oauth-protected-resource/mcp"
    assert answer.headers["www-authenticate"] == f'Bearer resource_metadata="{metadata}"'
    described = ask.http.get(metadata.removeprefix(PUBLIC))
    assert described.status_code == 200
    assert described.json() == {
        "resource": RESOURCE,
        "authorization_servers": [server.issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": "Souvenir",
    }
    assert ask.http.get("/.well-known/oauth-protected-resource").json()["resource"] == RESOURCE
    of_agent = ask.http.get("/.well-known/oauth-protected-resource/mcp/ann").json()
    assert of_agent["resource"] == f"{RESOURCE}/ann"
    assert ask.http.post("/.well-known/oauth-protected-resource").status_code == 405


class Kept(TokenStorage):
    """Token storage of a client, in memory."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def test_the_official_client_signs_in_and_calls_a_tool(tmp_path: Path, server):
    """From the address of the service alone: discovery, registration, consent with PKCE, token, call."""
    service = RunningService(tmp_path / "data", api_key=KEY, oauth_issuer=server.issuer, public_url=None)
    visited: list[dict[str, str]] = []

    async def consent(url: str) -> None:
        visited.append(dict(parse_qsl(urlsplit(url).query)))

    async def redirected() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=visited[0]["code_challenge"], state=visited[0]["state"])

    async def use() -> None:
        metadata = OAuthClientMetadata(client_name="Assistant", redirect_uris=[AnyUrl("http://127.0.0.1/callback")])
        signing_in = OAuthClientProvider(f"{service.url}/mcp", metadata, Kept(), consent, redirected)
        async with (
            httpx2.AsyncClient(auth=signing_in, trust_env=False) as http,
            Client(streamable_http_client(f"{service.url}/mcp", http_client=http)) as client,
        ):
            added = await client.call_tool("add_memory", {"text": "The kettle is signed in."})
            assert not added.is_error

    service.start()
    try:
        with httpx.Client(base_url=service.url, timeout=TIMEOUT_S, trust_env=False) as http:
            made(Asking(http), "oauth:auth0|ann", namespace="ann")
            anyio.run(use)
            stored = http.get("/memories", headers={**ENV, "X-Namespace": "ann"}).json()["memories"]
    finally:
        service.stop()
    assert visited[0]["resource"] == f"{service.url}/mcp"
    assert [memory["text"] for memory in stored] == ["The kettle is signed in."]


def test_a_token_acts_as_the_key_of_its_subject(ask: Asking, server, ann):
    token = bearing(server.token())
    added = ask.call("add_memory", "/mcp", token, text="The kettle is in the kitchen.")
    assert added["memory"] == "The kettle is in the kitchen."
    listed = ask.http.get("/memories", headers={**ENV, "X-Namespace": "ann"}).json()["memories"]
    assert [memory["text"] for memory in listed] == ["The kettle is in the kitchen."]
    used = next(key for key in ask.http.get("/api/keys", headers=ENV).json()["keys"] if key["id"] == ann["id"])
    assert used["usage_count"] >= 1


def test_a_read_only_key_reads_only(ask: Asking, server):
    made(ask, "oauth:reader", Role.READ_ONLY, namespace="ann")
    tools = ask.post(LIST, "/mcp", bearing(server.token("reader"))).json()["result"]["tools"]
    names = {tool["name"] for tool in tools}
    assert "search_memory" in names
    assert "add_memory" not in names


def test_a_token_sees_no_other_agent(ask: Asking, server, ann):
    status, sentence = refusal(ask, server.token(aud=f"{RESOURCE}/ben"), "/mcp/ben")
    assert status == 403
    assert "'ann'" in sentence


def test_a_token_for_the_path_of_an_agent_is_accepted_there_only(ask: Asking, server, ann):
    token = server.token(aud=f"{RESOURCE}/ann")
    assert refusal(ask, token, "/mcp/ann") == (200, "")
    assert refusal(ask, token)[0] == 401


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1_700_000_000},
        {"exp": None},
        {"nbf": 4_000_000_000},
        {"aud": "https://other.example.org"},
        {"aud": None},
        {"iss": "https://evil.example.org"},
        {"iss": None},
        {"subject": None},
    ],
    ids=str,
)
def test_a_token_with_wrong_claims_is_refused(ask: Asking, server, ann, claims):
    status, sentence = refusal(ask, server.token(**claims))
    assert status == 401
    assert sentence.startswith("The access token is not valid here (")


def test_a_token_that_others_signed_is_refused(ask: Asking, server, ann):
    assert refusal(ask, server.token(key=new_key()))[0] == 401
    now = int(time.time())
    claims = {"iss": server.issuer, "aud": RESOURCE, "sub": "auth0|ann", "exp": now + 300}
    assert refusal(ask, jwt.encode(claims, "", algorithm="none", headers={"kid": "first"}))[0] == 401
    shared = jwt.encode(claims, "a shared secret of 32 bytes or more", algorithm="HS256", headers={"kid": "first"})
    assert refusal(ask, shared)[0] == 401
    assert refusal(ask, "a.b.c")[0] == 401


@pytest.mark.parametrize("name", ["stranger", "caller"])
def test_a_subject_without_a_key_of_its_own_is_refused(ask: Asking, server, name):
    made(ask, "caller", namespace="ann")
    status, sentence = refusal(ask, server.token(name))
    assert status == 403
    assert sentence == f"No keys are named 'oauth:{name}'; an administrator creates exactly one for this user"


def test_a_subject_with_two_keys_is_refused(ask: Asking, server):
    for namespace in ("one", "two"):
        made(ask, "oauth:twice", namespace=namespace)
    status, sentence = refusal(ask, server.token("twice"))
    assert (status, sentence[:6]) == (403, "2 keys")


def test_revoking_the_key_ends_the_access_of_a_valid_token(ask: Asking, server):
    key = made(ask, "oauth:leaver", namespace="ann")
    token = server.token("leaver")
    assert refusal(ask, token)[0] == 200
    assert ask.http.delete(f"/api/keys/{key['id']}", headers=ENV).status_code == 200
    assert refusal(ask, token)[0] == 403


def test_the_quota_of_the_key_holds_for_tokens(ask: Asking, server):
    made(ask, "oauth:eager", namespace="ann", quotas={"requests_per_minute": 2})
    assert [refusal(ask, server.token("eager"))[0] for _ in range(3)] == [200, 200, 429]


def test_keys_are_accepted_as_before_and_tokens_at_mcp_only(ask: Asking, server, ann):
    assert ask.post(LIST, headers=ENV).status_code == 200
    assert ask.post(LIST, headers=bearing(ann["key"])).status_code == 200
    assert ask.http.get("/memories", headers=bearing(server.token())).status_code == 401


@pytest.mark.usefixtures("no_pause")
def test_a_new_signing_key_is_read_when_it_is_first_seen(ask: Asking, server, ann):
    assert refusal(ask, server.token())[0] == 200
    server.keys["second"] = new_key()
    assert refusal(ask, server.token(kid="second"))[0] == 200
    assert refusal(ask, server.token())[0] == 200


def test_unknown_signing_keys_are_not_asked_for_each_time(ask: Asking, server, ann):
    assert refusal(ask, server.token())[0] == 200
    asked = len(server.requests)
    for _ in range(5):
        assert refusal(ask, server.token(kid="unknown", key=new_key()))[0] == 401
    assert len(server.requests) <= asked + 2


AGENTS = ["my agent", "茶", "a?b", "a#b", "50%", 'quoted "name"', "ann@home:(1)"]


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_of_any_name_has_an_address_to_sign_in_at(ask: Asking, server, agent):
    path = f"/mcp/{quote(agent, safe=access_tokens.OF_PATHS)}"
    challenge = ask.post(LIST, path)
    assert challenge.status_code == 401
    metadata = f"{PUBLIC}/.well-known/oauth-protected-resource{path}"
    assert challenge.headers["www-authenticate"] == f'Bearer resource_metadata="{metadata}"'
    described = ask.http.get(metadata.removeprefix(PUBLIC)).json()
    assert described["resource"] == f"{PUBLIC}{path}"
    subject = f"of {agent}"
    made(ask, f"oauth:{subject}", namespace=agent)
    assert refusal(ask, server.token(subject, aud=described["resource"]), path) == (200, "")
    assert refusal(ask, server.token(subject, aud=f"{RESOURCE}/a"), path)[0] == 401


def test_the_host_header_names_no_other_resource(ask: Asking, server, ann):
    made(ask, "oauth:root", Role.ADMIN)
    token = server.token("root", aud=f"{RESOURCE}/a")
    for host in ("localhost/mcp/a?", "localhost:80/mcp/a#"):
        answer = ask.post(LIST, "/mcp/helper", {**bearing(token), "Host": host})
        assert answer.status_code in (400, 401, 421)


def test_a_key_that_looks_like_a_token_is_accepted(tmp_path: Path, server):
    key = "an.admin.key"
    service = RunningService(tmp_path / "data", api_key=key, public_url=PUBLIC, oauth_issuer=server.issuer)
    service.start()
    try:
        with httpx.Client(base_url=service.url, timeout=TIMEOUT_S, trust_env=False) as http:
            assert Asking(http).post(LIST, headers=bearing(key)).status_code == 200
            assert refusal(Asking(http), "an.admin.kez")[0] == 401
    finally:
        service.stop()


def test_an_authorization_server_that_is_down_is_named_and_keys_still_work(tmp_path: Path):
    server = AuthorizationServer()
    server.start()
    server.stop()
    service = RunningService(tmp_path / "data", api_key=KEY, public_url=PUBLIC, oauth_issuer=server.issuer)
    service.start()
    try:
        with httpx.Client(base_url=service.url, timeout=TIMEOUT_S, trust_env=False) as http:
            answer = Asking(http).post(LIST, headers=bearing(server.token()))
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
            assert "send an API key" in answer.json()["error"]["message"]
            assert Asking(http).post(LIST, headers=ENV).status_code == 200
    finally:
        service.stop()


def test_the_settings_name_the_audience_and_the_address_of_the_keys(tmp_path: Path):
    server = AuthorizationServer()
    server.start()
    service = RunningService(
        tmp_path / "data",
        api_key=KEY,
        public_url=PUBLIC,
        oauth_issuer="https://unreachable.example.org/",
        oauth_audience="souvenir",
        oauth_jwks_url=f"{server.url}/keys",
    )
    service.start()
    try:
        with httpx.Client(base_url=service.url, timeout=TIMEOUT_S, trust_env=False) as http:
            made(Asking(http), "oauth:auth0|ann", namespace="ann")
            token = server.token(iss="https://unreachable.example.org/", aud=["other", "souvenir"])
            assert refusal(Asking(http), token) == (200, "")
        assert [request.path for request in server.requests] == ["/keys"]
    finally:
        service.stop()
        server.stop()


def test_without_an_authorization_server_nothing_changes(tmp_path: Path, server):
    service = RunningService(tmp_path / "data", api_key=KEY)
    service.start()
    try:
        with httpx.Client(base_url=service.url, timeout=TIMEOUT_S, trust_env=False) as http:
            assert http.get("/.well-known/oauth-protected-resource").status_code == 404
            answer = Asking(http).post(calling("search_memory", {"query": "a"}), headers=bearing(server.token()))
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    finally:
        service.stop()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"oauth_issuer": "https://login.example.org"}, "OAUTH_ISSUER requires PUBLIC_URL"),
        ({"public_url": "memory.example.org"}, "give a URL such as"),
        ({"public_url": "https://memory.example.org/?a=1"}, "give a URL such as"),
        ({"public_url": PUBLIC, "oauth_issuer": "ftp://login.example.org"}, "give a URL such as"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, sentence):
    with pytest.raises(ValidationError, match=sentence):
        Settings(**settings)
