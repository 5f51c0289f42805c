"""Where a provider is and how it is asked, as the settings say."""

from __future__ import annotations

from dataclasses import dataclass, field

from souvenir.embedding.specs import ModelSpec
from souvenir.errors import InvalidRequest
from souvenir.settings import EmbedProvider, Settings
from souvenir.vendors.addresses import OPENAI_URL, checked_key, checked_url


@dataclass(frozen=True, slots=True)
class Endpoint:
    """:param timeout_s: Of one batch, retries included.

    :param rest_s: How long a provider that failed is left alone.
    """

    provider: EmbedProvider
    base_url: str
    api_key: str | None = field(repr=False)
    timeout_s: float
    rest_s: float

    @classmethod
    def of(cls, settings: Settings, spec: ModelSpec) -> Endpoint:
        """Of the spec's provider. What the settings say of another provider than that is not sent to it.

        :raises InvalidRequest: If an address or a key cannot be used; the sentence names the setting.
        """
        base_url, api_key = _vendors_own(settings, spec.provider)
        if settings.embed_provider in (spec.provider, EmbedProvider.ONNX):
            base_url = settings.embed_base_url or base_url
            api_key = settings.embed_api_key.get_secret_value() if settings.embed_api_key else api_key
        return cls(
            spec.provider,
            _checked_url(base_url, spec.provider),
            _checked_key(api_key, base_url),
            settings.embed_timeout_s,
            settings.embed_rest_s,
        )


def _vendors_own(settings: Settings, provider: EmbedProvider) -> tuple[str, str | None]:
    if provider is EmbedProvider.OLLAMA:
        return settings.ollama_base_url, None
    return OPENAI_URL, settings.openai_api_key.get_secret_value() if settings.openai_api_key else None


def _checked_url(base_url: str, provider: EmbedProvider) -> str:
    ollama = provider is EmbedProvider.OLLAMA
    url = checked_url(base_url, setting="EMBED_BASE_URL or OLLAMA_BASE_URL" if ollama else "EMBED_BASE_URL")
    return f"{url}/v1" if ollama and not url.endswith("/v1") else url


def _checked_key(api_key: str | None, base_url: str) -> str | None:
    if api_key is None and base_url == OPENAI_URL:
        raise InvalidRequest("OpenAI wants a key; set EMBED_API_KEY or OPENAI_API_KEY, or another EMBED_PROVIDER")
    return checked_key(api_key, setting="EMBED_API_KEY or OPENAI_API_KEY")
