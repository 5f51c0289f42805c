"""Addresses, keys and limits of model providers, from the settings. No error contains an address or a key."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pydantic import SecretStr

from souvenir.core.errors import InvalidRequest
from souvenir.core.settings import EmbedProvider, ExtractProvider, Settings
from souvenir.models.embedding.specs import ModelSpec

OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_URL = "https://api.anthropic.com"

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
        """Return the endpoint. A vendor's key is sent to the vendor only, never to the server of EXTRACT_BASE_URL.

        :raises InvalidRequest: If an address or a key is invalid; the message names the setting.
        """
        vendor_url, vendor_key = _llm_vendor(settings, provider)
        setting = "EXTRACT_BASE_URL or OLLAMA_BASE_URL" if provider is ExtractProvider.OLLAMA else "EXTRACT_BASE_URL"
        base_url = checked_url(settings.extract_base_url or vendor_url, setting=setting)
        own = base_url == vendor_url and provider is not ExtractProvider.OLLAMA
        key = checked_key(settings.extract_api_key or (vendor_key if own else None), setting=_LLM_KEYS[provider])
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
        base_url, secret = _embedding_vendor(settings, spec.provider)
        if settings.embed_provider in (spec.provider, EmbedProvider.ONNX):
            base_url, secret = settings.embed_base_url or base_url, settings.embed_api_key or secret
        if secret is None and base_url == OPENAI_URL:
            raise InvalidRequest("OpenAI needs a key; set EMBED_API_KEY or OPENAI_API_KEY, or another EMBED_PROVIDER")
        ollama = spec.provider is EmbedProvider.OLLAMA
        url = checked_url(base_url, setting="EMBED_BASE_URL or OLLAMA_BASE_URL" if ollama else "EMBED_BASE_URL")
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
            return ANTHROPIC_URL, settings.anthropic_api_key
        case ExtractProvider.OPENAI:
            return OPENAI_URL, settings.openai_api_key
    return settings.ollama_base_url, None


def _embedding_vendor(settings: Settings, provider: EmbedProvider) -> tuple[str, SecretStr | None]:
    if provider is EmbedProvider.OLLAMA:
        return settings.ollama_base_url, None
    return OPENAI_URL, settings.openai_api_key


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
