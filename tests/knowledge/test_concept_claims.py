"""Statements of callers about concepts: merges that cross, and aliases of single and of bulk requests."""

from __future__ import annotations

from typing import Any

import pytest

from souvenir.core.errors import Conflict
from souvenir.knowledge.claim_types import ConceptPatch, ConceptStatement
from souvenir.store.graph.concepts import Concept
from tests.cases import for_all
from tests.knowledge.agent import ANN, Agent

SEATS = ("My sofa is red.", "My couch is green.", "My settee is blue.")


def merge(ann: Agent, one: Concept, into: Concept) -> None:
    """As two callers do at once: by the ids that they have read, and before anything is indexed."""
    ann.graph.claims.update(ANN, into.id, ConceptPatch(aliases=(one.name,)))


def seats(ann: Agent) -> dict[str, Concept]:
    return {name: ann.concept(name) for name in ("sofa", "couch", "settee")}


@pytest.mark.parametrize("is_indexed", [False, True])
def test_aliases_of_a_concept_that_was_merged_into_another_are_refused(ann: Agent, is_indexed: bool) -> None:
    ann.tell(*SEATS)
    before = seats(ann)
    merge(ann, before["couch"], before["sofa"])
    if is_indexed:
        ann.index()
    for other in ("sofa", "settee"):
        with pytest.raises(Conflict, match=f"merged into 'sofa'; change the aliases of concept {before['sofa'].id}"):
            merge(ann, before[other], before["couch"])
    ann.index()
    assert {name: one.key for name, one in seats(ann).items()} == {"sofa": "sofa", "couch": "sofa", "settee": "settee"}
    assert ann.update(ann.concept("couch"), aliases=()).key == "sofa"
    assert seats(ann) == before


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_concept_with_aliases_is_merged_with_them(ann: Agent, is_indexed: bool) -> None:
    ann.tell(*SEATS)
    before = seats(ann)
    merge(ann, before["settee"], before["couch"])
    if is_indexed:
        ann.index()
    merge(ann, before["couch"], before["sofa"])
    ann.index()
    assert {one.key for one in seats(ann).values()} == {"sofa"}


def test_the_aliases_of_concepts_that_are_aliases_of_one_another_can_be_changed(ann: Agent) -> None:
    ann.tell(*SEATS)
    crossing = [ConceptStatement(key="couch", aliases=("sofa",)), ConceptStatement(key="sofa", aliases=("couch",))]
    ann.graph.claims.state(ANN, crossing, [])
    ann.index()
    assert ann.concept("couch").key == ann.concept("sofa").key == "sofa"
    ann.update(ann.concept("sofa"), aliases=())
    assert ann.concept("couch").key == "couch"


@for_all("alias", ["Alice the first", "Little Alice", "Lee, Alice"])
def test_an_alias_that_contains_the_name_of_a_concept_is_another_name_and_no_merge(ann: Agent, alias: str) -> None:
    ann.tell("Alice sings.", "Greta sings.")
    for name in ("alice", "greta"):
        assert alias in ann.update(ann.concept(name), aliases=[alias]).aliases
        assert ann.concept("alice").id != ann.concept("greta").id
        ann.update(ann.concept(name), aliases=[])


@for_all("spelling", ["choirs", "the Choir", "CHOIR"])
def test_an_alias_in_any_spelling_is_merged_by_both_routes(ann: Agent, spelling: str) -> None:
    ann.tell("Our choir sang.", "My sofa is red.")
    ann.update(ann.concept("sofa"), aliases=(spelling,))
    assert ann.concept("choir").key == "sofa"
    ann.update(ann.concept("sofa"), aliases=())
    assert ann.concept("choir").key == "choir"
    ann.graph.claims.state(ANN, [ConceptStatement(key="sofa", aliases=(spelling,))], [])
    ann.index()
    assert ann.concept("choir").key == "sofa"
    ann.update(ann.concept("sofa"), aliases=())


def test_aliases_in_bulk_are_added_and_those_of_a_patch_replace_all(ann: Agent) -> None:
    ann.tell(*SEATS)
    for alias in ("couch", "settee", "the bench"):
        ann.graph.claims.state(ANN, [ConceptStatement(key="sofa", aliases=(alias,))], [])
    ann.index()
    assert {*ann.concept("sofa").stated_aliases} == {"couch", "settee", "the bench"}
    ann.update(ann.concept("sofa"), aliases=("couch",))
    assert ann.concept("sofa").stated_aliases == ("couch",)
    assert ann.concept("settee").key == "settee"


def test_a_name_that_a_caller_gave_to_another_concept_is_refused(ann: Agent) -> None:
    ann.tell(*SEATS)
    before = seats(ann)
    ann.update(before["sofa"], name="Old Faithful", aliases=("Chesterfield",))
    for used in ("old faithful", "Chesterfield"):
        with pytest.raises(Conflict, match="Another concept has the name"):
            ann.update(before["couch"], name=used)
        with pytest.raises(Conflict):
            ann.graph.claims.state(ANN, [ConceptStatement(key="couch", name=used)], [])
    assert ann.concept("couch") == before["couch"]
    assert ann.update(before["sofa"], name="OLD FAITHFUL").name == "OLD FAITHFUL"
    ann.update(before["sofa"], name="", aliases=())
    assert ann.update(before["couch"], name="Chesterfield").name == "Chesterfield"


def test_a_stated_alias_of_another_concept_is_refused_and_its_stated_name_merges_it(ann: Agent) -> None:
    ann.tell(*SEATS)
    before = seats(ann)
    ann.update(before["sofa"], name="Old Faithful", aliases=("Chesterfield",))
    with pytest.raises(Conflict, match="'chesterfield'; to merge the two, give its name 'Old Faithful' in aliases"):
        ann.update(before["couch"], aliases=("chesterfield",))
    assert ann.concept("couch") == before["couch"]
    ann.update(before["couch"], aliases=("old faithful",))
    assert ann.concept("Chesterfield").key == ann.concept("sofa").key == "couch"


@pytest.mark.parametrize("first", [{"name": "Bench"}, {"aliases": ("Bench",)}])
def test_one_request_gives_a_name_to_one_concept(ann: Agent, first: dict[str, Any]) -> None:
    ann.tell(*SEATS)
    before = seats(ann)
    other = ConceptStatement(key="couch", name="Bench")
    with pytest.raises(Conflict, match="Another concept has the name 'Bench'"):
        ann.graph.claims.state(ANN, [ConceptStatement(key="sofa", **first), other], [])
    with pytest.raises(Conflict, match="Another concept has the name 'Settle'"):
        ann.graph.claims.state(ANN, [ConceptStatement(key=key, aliases=("Settle",)) for key in before], [])
    assert seats(ann) == before


def test_a_patch_right_after_an_undone_merge_changes_the_separated_concept(ann: Agent) -> None:
    ann.tell(*SEATS)
    couch = ann.concept("couch").id
    ann.update(ann.concept("sofa"), aliases=("couch",))
    assert ann.concept(couch).key == "sofa"
    ann.graph.claims.update(ANN, ann.concept("sofa").id, ConceptPatch(aliases=()))
    changed = ann.graph.claims.update(ANN, couch, ConceptPatch(description="A seat", aliases=("the bench",)))
    assert (changed.key, changed.description) == ("couch", "A seat")
    ann.index()
    assert {one.key: one.description for one in map(ann.concept, ("couch", "sofa"))} == {
        "couch": "A seat",
        "sofa": None,
    }
