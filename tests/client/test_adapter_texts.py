"""The limits of texts that the adapters know, next to those of the service."""

from __future__ import annotations

import sys

from souvenir.api import fields, search
from souvenir.core import text
from souvenir_client.adapters import texts


def test_the_same_characters_are_invisible_to_the_adapters_and_to_the_service():
    everything = list(map(chr, range(sys.maxunicode + 1)))
    assert [one for one in everything if texts.is_blank(one)] == [one for one in everything if text.is_blank(one)]
    assert texts.is_blank("")
    assert not texts.is_blank("\u200bx")


def test_the_adapters_know_the_limits_of_the_service():
    assert texts.MAX_TEXT_CHARACTERS == fields.MAX_TEXT_CHARS
    [limit] = [
        found.max_length
        for found in search.SearchRequest.model_fields["query"].metadata
        if hasattr(found, "max_length")
    ]
    assert limit == texts.MAX_QUERY_CHARACTERS
