"""Settings of the network: where the service listens, who may connect, which names and pages it answers, and events."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, NoDecode


def parted(value: Any) -> Any:
    return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(parted)]


def _web_address(value: str) -> str:
    """:raises ValueError: If it is no URL of http or https, or has parts that are no part of an address."""
    url = urlsplit(value)
    if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment or url.username:
        raise ValueError("give a URL such as https://memory.example.org, without user, query and fragment")
    return value


WebAddress = Annotated[str, AfterValidator(_web_address)]


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class NetworkSettings(BaseSettings):
    """The part of `souvenir.core.settings.Settings` that concerns the network."""

    host: str = Field(
        default="127.0.0.1",
        validation_alias=AliasChoices("host", "memory_server_host"),
        description="Address to listen on. 0.0.0.0 opens the service to the network; then its first start without a "
        "key makes one for an admin.",
    )
    port: int = Field(
        default=8900,
        ge=0,
        le=65535,
        validation_alias=AliasChoices("port", "memory_server_port"),
        description="TCP port to listen on; 0 takes a free one.",
    )
    published_on: str | None = Field(
        default=None,
        description="Address under which clients reach the service, if that is not HOST. docker compose sets it from "
        "BIND, since HOST is 0.0.0.0 inside a container; no key is made if it is a loopback address.",
    )
    public_url: WebAddress | None = Field(
        default=None,
        description="URL under which clients reach the service, such as `https://memory.example.org`: links of the "
        "tools `search` and `fetch` begin with it, access tokens are made for it, and its name is allowed in Host. "
        "Unset, links name HOST and PORT.",
    )
    oauth_issuer: WebAddress | None = Field(
        default=None,
        description="Issuer of the authorization server whose access tokens `/mcp` accepts in addition to keys "
        "(OAuth 2.1); it requires PUBLIC_URL. Unset accepts none.",
    )
    oauth_audience: str | None = Field(
        default=None,
        min_length=1,
        description="Audience of these tokens, if it is not the URL of `/mcp` or `/mcp/{agent}` below PUBLIC_URL.",
    )
    oauth_jwks_url: WebAddress | None = Field(
        default=None,
        description="URL of the public keys of the authorization server, if its metadata does not name it.",
    )
    api_key: SecretStr | None = Field(
        default=None,
        description="Key of an admin. While it is unset and no key was made, every client is admitted as admin.",
    )
    allow_open: bool = Field(
        default=False,
        description="Serve a network without keys: every client is admitted as admin, and every start logs a warning. "
        "Only loopback names, ALLOWED_HOSTS and the name of PUBLIC_URL are answered then.",
    )
    auth_rate_limit: int = Field(
        default=50,
        ge=1,
        description="Wrong keys that one address may send in a minute; further wrong ones are answered 429.",
    )
    trusted_proxies: Names = Field(
        default=(),
        description="Addresses or networks of proxies whose X-Forwarded-For is trusted, separated by commas.",
    )
    allowed_hosts: Names = Field(
        default=(),
        description="Names and addresses allowed in Host in addition to localhost and the name of PUBLIC_URL, "
        "separated by commas; unset allows any if HOST is a network address and requests need a key.",
    )
    webhook_allowed_hosts: Names = Field(
        default=(),
        description="Names, addresses and networks that webhooks may be sent to although they are not public, "
        "separated by commas, such as `hooks.internal,10.1.0.0/16`.",
    )
    proxy_openai_api_key: SecretStr | None = Field(
        default=None,
        description="Key that the proxy sends to OPENAI_BASE_URL for every key with write access. Unset passes on the "
        "vendor's key that a caller sends.",
    )
    proxy_anthropic_api_key: SecretStr | None = Field(default=None, description="Likewise for ANTHROPIC_BASE_URL.")
    cors_origins: Names = Field(
        default=(),
        description="Origins whose pages may call the service from a browser, separated by commas; `*` for all. Other "
        "pages cannot read answers, and their POST, PUT, PATCH and DELETE are refused (403).",
    )

    events_retention_days: float = Field(
        default=7.0, gt=0, description="Days that events are kept; never more than 100,000 of one namespace."
    )
    max_event_streams: int = Field(
        default=100, ge=1, description="Maximum open event streams (503 above). A key may have a quarter of them (429)."
    )
    event_stream_max_s: float = Field(
        default=3600.0, gt=0, description="Seconds after which an event stream ends; its reader connects again."
    )

    @model_validator(mode="after")
    def _names_itself_to_clients(self) -> Self:
        if self.oauth_issuer is not None and self.public_url is None:
            raise ValueError("OAUTH_ISSUER requires PUBLIC_URL, the URL for which access tokens are made; set it too")
        return self

    @property
    def public_address(self) -> str:
        """The beginning of the service's URLs, without a slash at the end."""
        return (self.public_url or f"http://{self.published_on or self.host}:{self.port}").rstrip("/")

    @property
    def serves_network(self) -> bool:
        """True if other machines can connect, by the addresses under which clients reach the service."""
        reached = [(self.published_on or self.host).strip("[]")]
        if self.public_url is not None:
            reached.append(urlsplit(self.public_url).hostname or "")
        return not all(map(is_loopback, reached))
