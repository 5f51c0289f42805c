"""Where the language model is and how it is asked, as the settings say."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import SecretStr

from souvenir.errors import InvalidRequest
from souvenir.settings import ExtractProvider, Settings
from souvenir.vendors.addresses import OPENAI_URL, checked_key, checked_url

ANTHROPIC_URL = "https://api.anthropic.com"

_MODELS = {
    ExtractProvider.ANTHROPIC: "claude-haiku-4-5",
    ExtractProvider.OPENAI: "gpt-4.1-mini",
    ExtractProvider.OLLAMA: "llama3.1",
}
_KEYS = {
    ExtractProvider.ANTHROPIC: "EXTRACT_API_KEY or ANTHROPIC_API_KEY",
    ExtractProvider.OPENAI: "EXTRACT_API_KEY or OPENAI_API_KEY",
    ExtractProvider.OLLAMA: "EXTRACT_API_KEY",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """:param timeout_s: Of one question, with everything that is done to get an answer.

    :param own: Whether the address is the vendor's own, so that its prices and abilities are known.
    """

    provider: ExtractProvider
    model: str
    base_url: str
    api_key: str | None = field(repr=False)
    own: bool
    timeout_s: float
    max_tokens: int

    @classmethod
    def of(cls, settings: Settings, provider: ExtractProvider) -> Endpoint:
        """The keys of the vendors are sent to the vendors only, never to the server that EXTRACT_BASE_URL names.

        :raises InvalidRequest: If an address or a key cannot be used; the sentence names the setting.
        """
        vendors_url, vendors_key = _vendors_own(settings, provider)
        setting = "EXTRACT_BASE_URL or OLLAMA_BASE_URL" if provider is ExtractProvider.OLLAMA else "EXTRACT_BASE_URL"
        base_url = checked_url(settings.extract_base_url or vendors_url, setting=setting)
        own = base_url == vendors_url and provider is not ExtractProvider.OLLAMA
        secret = settings.extract_api_key or (vendors_key if own else None)
        key = checked_key(secret.get_secret_value() if secret else None, setting=_KEYS[provider])
        if own and not key:
            raise InvalidRequest(
                f"{provider.value.capitalize()} wants a key; set {_KEYS[provider]}, or another EXTRACT_PROVIDER"
            )
        return cls(
            provider,
            settings.extract_model or _MODELS[provider],
            base_url.removesuffix("/v1") if provider is not ExtractProvider.OPENAI else base_url,
            key or None,
            own,
            settings.extract_timeout_s,
            settings.extract_max_tokens,
        )


def _vendors_own(settings: Settings, provider: ExtractProvider) -> tuple[str, SecretStr | None]:
    match provider:
        case ExtractProvider.ANTHROPIC:
            return ANTHROPIC_URL, settings.anthropic_api_key
        case ExtractProvider.OPENAI:
            return OPENAI_URL, settings.openai_api_key
    return settings.ollama_base_url, None
