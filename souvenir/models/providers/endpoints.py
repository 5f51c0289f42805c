"""Addresses, keys and limits of model providers, from the settings. No error contains an address or a key."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pydantic import SecretStr

from souvenir.core.errors import InvalidRequest
from souvenir.core.settings import EmbedProvider, ExtractProvider, Settings
from souvenir.models.embedding.specs import ModelSpec

OPENAI_URL: str = Settings.model_fields["openai_base_url"].default
ANTHROPIC_URL: str = Settings.model_fields["anthropic_base_url"].default
OLLAMA_PORT = 11434

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

_DEFAULT_LLMS = {
    ExtractProvider.ANTHROPIC: "claude-haiku-4-5",
    ExtractProvider.OPENAI: "gpt-4.1-mini",
    ExtractProvider.OLLAMA: "llama3.1",
}
_LLM_KEYS = {
    ExtractProvider.ANTHROPIC: "EXTRACT_API_KEY or ANTHROPIC_API_KEY",
    ExtractProvider.OPENAI: "EXTRACT_API_KEY or OPENAI_API_KEY",
    ExtractProvider.OLLAMA: "EXTRACT_API_KEY",
}


@dataclass(frozen=True, slots=True)
class LLMEndpoint:
    """:param own: True if the address is the vendor's own, so that its prices and capabilities are known.

    :param timeout_s: Limit of one question, including retries and repairs.
    """

    provider: ExtractProvider
    model: str
    base_url: str
    api_key: str | None = field(repr=False)
    own: bool
    timeout_s: float
    max_tokens: int

    @classmethod
    def of(cls, settings: Settings, provider: ExtractProvider) -> LLMEndpoint:
        """Return the endpoint of a provider.

        Its own key, such as OPENAI_API_KEY, is sent to its own address only, such as OPENAI_BASE_URL, and never to
        another server that EXTRACT_BASE_URL names.

        :raises InvalidRequest: If an address or a key is invalid; the message names the setting.
        """
        vendor_url, vendor_key = _llm_vendor(settings, provider)
        base_url = vendor_url = checked_url(vendor_url, setting=f"{provider.value.upper()}_BASE_URL")
        if settings.extract_base_url is not None:
            base_url = checked_url(settings.extract_base_url, setting="EXTRACT_BASE_URL")
        own = base_url in (ANTHROPIC_URL, OPENAI_URL)
        key = checked_key(
            settings.extract_api_key or (vendor_key if base_url == vendor_url else None), setting=_LLM_KEYS[provider]
        )
        if own and not key:
            raise InvalidRequest(
                f"{provider.value.capitalize()} needs a key; set {_LLM_KEYS[provider]}, or another EXTRACT_PROVIDER"
            )
        return cls(
            provider,
            settings.extract_model or _DEFAULT_LLMS[provider],
            base_url.removesuffix("/v1") if provider is not ExtractProvider.OPENAI else base_url,
            key,
            own,
            settings.extract_timeout_s,
            settings.extract_max_tokens,
        )


@dataclass(frozen=True, slots=True)
class EmbeddingEndpoint:
    """:param timeout_s: Limit of one batch, including retries.

    :param rest_s: How long the circuit breaker stays open after a failure.
    """

    provider: EmbedProvider
    base_url: str
    api_key: str | None = field(repr=False)
    timeout_s: float
    rest_s: float

    @classmethod
    def of(cls, settings: Settings, spec: ModelSpec) -> EmbeddingEndpoint:
        """Return the endpoint of the spec's provider. Settings of another provider are not sent to it.

        :raises InvalidRequest: If an address or a key is invalid; the message names the setting.
        """
        ollama = spec.provider is EmbedProvider.OLLAMA
        vendor_url, secret = _ollama(settings) if ollama else (settings.openai_base_url, settings.openai_api_key)
        url = vendor_url = checked_url(vendor_url, setting=f"{'OLLAMA' if ollama else 'OPENAI'}_BASE_URL")
        if settings.embed_provider in (spec.provider, EmbedProvider.ONNX):
            if settings.embed_base_url is not None:
                url = checked_url(settings.embed_base_url, setting="EMBED_BASE_URL")
            secret = settings.embed_api_key or (secret if url == vendor_url else None)
        if secret is None and url == OPENAI_URL:
            raise InvalidRequest("OpenAI needs a key; set EMBED_API_KEY or OPENAI_API_KEY, or another EMBED_PROVIDER")
        return cls(
            spec.provider,
            f"{url}/v1" if ollama and not url.endswith("/v1") else url,
            checked_key(secret, setting="EMBED_API_KEY or OPENAI_API_KEY"),
            settings.embed_timeout_s,
            settings.embed_rest_s,
        )


def bearer(api_key: str | None) -> dict[str, str]:
    """Return the authorization header for OpenAI and Ollama; none without a key."""
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def checked_url(url: str, *, setting: str) -> str:
    """Return the address without a trailing slash.

    :param setting: The name of the setting to correct.
    :raises InvalidRequest: If it is not an HTTP address.
    """
    stripped = url.strip().rstrip("/")
    if not _is_web_address(stripped):
        raise InvalidRequest(f"{setting} is not an address such as http://gpu:8000/v1; correct it")
    return stripped


def checked_key(secret: SecretStr | None, *, setting: str) -> str | None:
    """Return the key as a header value; None if it is empty or missing.

    :raises InvalidRequest: If a header cannot contain it.
    """
    key = "" if secret is None else secret.get_secret_value().strip()
    if not (key.isascii() and (key.isprintable() or not key)):
        raise InvalidRequest(f"{setting} holds signs that no key has; copy it again")
    return key or None


def is_loopback(url: str) -> bool:
    """Return True if the address is on this machine, which is never accessed through a proxy."""
    return urlsplit(url).hostname in _LOOPBACK


def _llm_vendor(settings: Settings, provider: ExtractProvider) -> tuple[str, SecretStr | None]:
    match provider:
        case ExtractProvider.ANTHROPIC:
            return settings.anthropic_base_url, settings.anthropic_api_key
        case ExtractProvider.OPENAI:
            return settings.openai_base_url, settings.openai_api_key
    return _ollama(settings)


def _ollama(settings: Settings) -> tuple[str, None]:
    """Return Ollama's address, which needs no key.

    Scheme, host and port are optional, as for Ollama's client; 0.0.0.0, at which a server listens, is this machine.
    """
    address = settings.ollama_base_url.strip()
    if "://" not in address:
        host, slash, path = address.partition("/")
        host = f"127.0.0.1{host}" if host.startswith(":") else host
        address = f"http://{host if ':' in host else f'{host}:{OLLAMA_PORT}'}{slash}{path}"
    return address.replace("://0.0.0.0", "://127.0.0.1", 1), None


def _is_web_address(url: str) -> bool:
    from httpx2 import URL, InvalidURL

    try:
        parts = urlsplit(url)
        # Both would fail later with foreign errors: a host name that DNS cannot hold, an invalid port.
        (parts.hostname or "").encode("idna")
        URL(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except (ValueError, InvalidURL):
        return False
