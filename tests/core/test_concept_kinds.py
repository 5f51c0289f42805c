"""The kind of a concept by the kinds of its mentions."""

from __future__ import annotations

import pytest

from souvenir.core.concept_kinds import CONFIDENCE, kind_of
from souvenir.core.types import ConceptKind

PERSON, ANIMAL, PLACE, NAME = ConceptKind.PERSON, ConceptKind.ANIMAL, ConceptKind.PLACE, ConceptKind.NAME


def test_a_text_that_says_that_a_name_is_an_animal_outweighs_lists_of_names() -> None:
    kind, confidence = kind_of({ANIMAL: 1, PLACE: 4, NAME: 9})
    assert kind is ANIMAL
    assert confidence == pytest.approx(5 / 9 * CONFIDENCE[ANIMAL])


def test_many_mentions_of_another_kind_outweigh_one_as_an_animal() -> None:
    assert kind_of({ANIMAL: 1, PERSON: 6})[0] is PERSON
