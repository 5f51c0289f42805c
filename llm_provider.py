"""The protocol of language model providers, and the provider that the settings name."""

from souvenir.models.llm.provider import LLMProvider, provider_of

__all__ = ["LLMProvider", "provider_of"]
