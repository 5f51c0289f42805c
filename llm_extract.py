"""The extraction of memories from conversations."""

from souvenir.learning.extraction import Extraction

__all__ = ["Extraction"]
