"""Messages about the same subject are one topic, in one session or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from souvenir.conversations.agents import Agents
from souvenir.conversations.messages import Conversations
from souvenir.core.errors import TopicNotFound
from souvenir.core.types import ConceptKind, MessageRole
from souvenir.knowledge.clustering import (
    DOUBLING,
    FEW_SEGMENTS,
    SAME_TOPIC,
    average_link,
    clusters_of,
    least_similarity,
)
from souvenir.knowledge.segmentation import (
    FULL_BYTES,
    LEAST_UNIT,
    LEAST_WEIGHT,
    LENGTH_DISCOUNT,
    LONG_BYTES,
    LONGEST,
    OF_OPENING,
    OF_USER,
    OPENING_COUNTS,
    PREVIOUS_WEIGHT,
    SEGMENT_COST,
    SESSION_PRIOR,
    SHORT_BYTES,
    UNIT,
    Segment,
    Turn,
    segments_of,
)
from souvenir.knowledge.services import KnowledgeServices
from souvenir.knowledge.topic_assignment import read_segments
from souvenir.knowledge.topic_description import sentences_of
from souvenir.store.graph.topics import Form, TopicMessage
from souvenir.store.messages.messages import MessageDraft
from souvenir.store.selection import Chooses
from tests.cases import for_all
from tests.knowledge.agent import ANN, Agent

SAILING = ("Lisbon to Madeira on the Albatross, says Alice", "Lisbon and Madeira again on the Albatross, says Alice")
LONG_SAILING = tuple(f"{text}, and the Albatross sails from Lisbon again" for text in SAILING)
BAKING = ("Boris bakes panettone with Greta in Milan", "Greta brought panettone from Milan for Boris")
LONG_BAKING = tuple(f"{text}, so Greta and Boris have panettone" for text in BAKING)
SEA, OVEN = frozenset({"sea0", "sea1"}), frozenset({"oven0", "oven1"})


def talk(ann: Agent) -> None:
    """Two sessions of each of two subjects."""
    for number in range(2):
        ann.say(*SAILING, session=f"sea{number}")
        ann.say(*BAKING, session=f"oven{number}")


def of_sessions(ann: Agent) -> dict[frozenset[str], int]:
    """Index everything, and return the topics by the sessions of which each is the primary one."""
    ann.index()
    return {
        frozenset(one.name for one in ann.graph.topics.details(ANN, id_).sessions if one.is_primary): id_
        for id_ in (one.topic.id for one in ann.topics())
    }


def test_similar_sessions_are_one_topic_with_a_name_of_its_own(ann: Agent) -> None:
    talk(ann)
    ann.say("Hello", session="silent")
    assert of_sessions(ann).keys() == {SEA, OVEN}
    found = ann.topics()
    assert [(one.topic.sessions, one.topic.messages, one.topic.named_by) for one in found] == [(2, 4, None)] * 2
    assert len({one.name for one in found}) == 2


def test_a_session_about_two_subjects_has_two_topics(ann: Agent) -> None:
    ann.say(*LONG_SAILING, *LONG_BAKING, *LONG_SAILING, session="both")
    ann.tell(*LONG_BAKING, LONG_BAKING[0], session="oven")
    baking, sailing = [ann.graph.topics.details(ANN, one.topic.id) for one in ann.topics()]
    assert (baking.named.topic.messages, sailing.named.topic.messages) == (5, 4)
    assert [(one.name, one.is_primary, one.messages) for one in sailing.sessions] == [("both", True, 4)]
    sessions = [(one.name, one.is_primary, one.messages) for one in baking.sessions]
    assert sessions == [("oven", True, 3), ("both", False, 2)]
    assert {message.content for message, _ in sailing.messages} == {*LONG_SAILING}
    assert {message.content for message, _ in baking.messages} == {*LONG_BAKING}


def test_answers_and_short_messages_belong_to_the_segment_before(ann: Agent) -> None:
    ann.say(LONG_SAILING[0])
    ann.say(LONG_BAKING[0], role=MessageRole.ASSISTANT)
    ann.tell("To Lisbon!")
    assert ann.topic().topic.messages == 3


def test_a_topic_is_summarised_by_sentences_of_its_messages(ann: Agent) -> None:
    home = "Lisbon was home to Alice in the end."
    first, second = ann.tell(f"{SAILING[0]}. Well?", f"{SAILING[1]}.")
    assert ann.topic().summary == f"{SAILING[0]}. {SAILING[1]}."
    ann.edit(first, home)
    assert ann.topic().summary == f"{SAILING[1]}."
    ann.index()
    assert ann.topic().summary == f"{home} {SAILING[1]}."
    ann.remove(Chooses.MESSAGE, second)
    topic = ann.topic()
    assert topic.summary == home
    summaries = [ann.graph.topics.describe(ANN, topic.topic.id, {"summary": one}).summary for one in ("At sea", None)]
    assert summaries == ["At sea", home]


@for_all(
    "role, text, quoted",
    [
        (MessageRole.USER, "The guitar lessons moved to Monday.", [3]),
        (MessageRole.USER, "My guitar has new strings, at last.", [3]),
        (MessageRole.USER, "The guitarist moved to Monday.", [0, 1, 2]),
        (MessageRole.ASSISTANT, "Guitar lessons are a good idea.", [0, 1, 2]),
    ],
)
def test_a_summary_quotes_users_who_say_a_word_of_the_name(role: MessageRole, text: str, quoted: list[int]) -> None:
    others = [(MessageRole.USER, f"Nothing happened in {month} again.") for month in ("May", "June", "July")]
    messages = [TopicMessage(number, *one, None) for number, one in enumerate([*others, (role, text)])]
    forms = {number: [Form(number, "Nothing", ConceptKind.NAME)] for number in range(3)}
    found = sentences_of([messages], forms, dict.fromkeys(forms, 1.0), np.zeros(1), ["guitar lessons"])
    assert [one.message_id for one in found] == quoted


def test_a_summary_says_nothing_twice() -> None:
    texts = [*["The starter died again."] * 4, "The starter lives again."]
    messages = [TopicMessage(number, MessageRole.USER, text, None) for number, text in enumerate(texts)]
    quoted = sentences_of([messages], {}, {}, np.zeros(1), ())
    assert len({texts[one.message_id] for one in quoted}) == len(quoted) == 2


def test_messages_with_a_topic_that_the_policy_hides_are_not_quoted(ann: Agent) -> None:
    health = {"sensitive_topics": ["health"]}
    ann.say(f"{SAILING[0]}.", metadata=health)
    [second] = ann.tell(f"{SAILING[1]}.")
    topic = ann.topic()
    assert topic.summary == f"{SAILING[0]}. {SAILING[1]}."
    Agents(ann.engine).set_policy(ANN, {"hidden_topics": ["health"]})
    assert ann.topic().summary == f"{SAILING[1]}." == ann.graph.topics.details(ANN, topic.topic.id).named.summary
    Conversations(ann.engine).edit(ANN, second, metadata=health)
    assert ann.topics() == []


def test_a_topic_of_hidden_messages_only_is_like_an_absent_one_unless_a_caller_described_it(ann: Agent) -> None:
    ann.tell(*SAILING, metadata={"sensitive_topics": ["health"]})
    topics, topic_id = ann.graph.topics, ann.topic().topic.id
    Agents(ann.engine).set_policy(ANN, {"hidden_topics": ["health"]})
    for _ in range(2):
        with pytest.raises(TopicNotFound, match=str(topic_id)):
            topics.details(ANN, topic_id)
        with pytest.raises(TopicNotFound):
            topics.describe(ANN, topic_id, {"name": "Sailing"})
        assert ann.topics() == []
        Agents(ann.engine).set_policy(ANN, {"hidden_topics": []})
        topics.describe(ANN, topic_id, {"name": "Sailing"})
        Agents(ann.engine).set_policy(ANN, {"hidden_topics": ["health"]})
        found = topics.details(ANN, topic_id)
        assert (found.named, found.messages) == (ann.topic(), [])
        assert (found.named.name, found.named.summary, found.named.terms) == ("Sailing", None, [])
        assert topics.describe(ANN, topic_id, {"name": None}).name == ""


def test_messages_of_a_running_session_are_assigned_again_when_they_are_indexed(ann: Agent) -> None:
    ann.say(*LONG_SAILING, session="sea0")
    ann.say("Hello", session="sea1")
    both = [MessageDraft(MessageRole.USER, text) for text in (*LONG_SAILING, *LONG_BAKING, *LONG_BAKING)]
    Conversations(ann.engine).append(ANN, "sea1", both)
    ann.index()
    assert [one.topic.messages for one in ann.topics()] == [9], "they have no vectors"
    Conversations(ann.engine).index_pending(ANN)
    ann.index()
    assert [(one.topic.messages, one.topic.sessions) for one in ann.topics()] == [(5, 2), (4, 1)]


def test_messages_discuss_a_topic_in_proportion_to_its_terms(ann: Agent) -> None:
    talk(ann)
    ann.say("Lisbon", session="sea0")
    sea = of_sessions(ann)[SEA]
    said = {message.content: relevance for message, relevance in ann.graph.topics.details(ANN, sea).messages}
    assert said.keys() == {*SAILING, "Lisbon"}
    assert 0 < said["Lisbon"] < min(said[text] for text in SAILING) <= 1


def test_a_continued_topic_keeps_its_id_and_name(ann: Agent) -> None:
    talk(ann)
    sea = of_sessions(ann)[SEA]
    ann.graph.topics.describe(ANN, sea, {"name": "Sailing"})
    ann.say(*SAILING, session="sea2")
    ann.remove(Chooses.SESSION, "sea0")
    assert of_sessions(ann)[frozenset({"sea1", "sea2"})] == sea
    assert ann.graph.topics.details(ANN, sea).named.name == "Sailing"


def test_a_deleted_concept_disappears_from_topic_names(ann: Agent) -> None:
    talk(ann)
    sea = of_sessions(ann)[SEA]
    terms = ann.graph.topics.details(ANN, sea).named.terms[:2]
    assert len(terms) == 2
    for term in terms:
        ann.graph.concepts.hide(ANN, term.concept_id)
        left = ann.graph.topics.details(ANN, sea).named
        assert term.name not in left.name.split(", ")
        assert term.concept_id not in {one.concept_id for one in left.terms}


def test_a_topic_is_deleted_with_its_last_session(ann: Agent) -> None:
    talk(ann)
    [message] = ann.say("Zelda grows Dahlias", session="garden")
    topics = of_sessions(ann)
    ann.remove(Chooses.SESSION, "oven0")
    ann.remove(Chooses.SESSION, "oven1")
    with pytest.raises(TopicNotFound):
        ann.graph.topics.details(ANN, topics[OVEN])
    ann.remove(Chooses.MESSAGE, message)
    assert of_sessions(ann) == {SEA: topics[SEA]}


def test_an_incremental_pass_equals_a_full_one(ann: Agent) -> None:
    talk(ann)
    ann.index()
    ann.say(*SAILING, *SAILING, session="oven1")
    known = of_sessions(ann)
    ann.say("Hello", session="sea0")
    assert of_sessions(Agent(ann.engine, KnowledgeServices.open(ann.engine))) == known


def test_long_sessions_are_divided_in_parts(monkeypatch: pytest.MonkeyPatch, ann: Agent) -> None:
    monkeypatch.setattr("souvenir.knowledge.topic_assignment.MESSAGES_AT_ONCE", 3)
    ann.tell(*LONG_SAILING, *LONG_SAILING)
    assert (ann.topic().topic.sessions, ann.topic().topic.messages) == (1, 4)


def naive(alike: np.ndarray, least: float) -> set[frozenset[int]]:
    """Average link as it is written: the two that are most alike are joined, and all means taken anew."""
    groups = [[item] for item in range(len(alike))]
    while len(groups) > 1:
        means = {
            (one, other): float(np.mean([alike[a, b] for a in groups[one] for b in groups[other]]))
            for one in range(len(groups))
            for other in range(one)
        }
        (one, other), mean = max(means.items(), key=lambda pair: pair[1])
        if mean < least:
            break
        groups[other] += groups.pop(one)
    return {frozenset(group) for group in groups}


@for_all("seed", range(5))
def test_nearest_neighbour_chains_equal_greedy_average_link(seed: int) -> None:
    points = np.abs(np.random.default_rng(seed).normal(size=(40, 3)))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    alike = points @ points.T
    into = average_link(alike.copy(), np.ones(40), 0.9)
    joined = {frozenset(np.flatnonzero(into == one).tolist()) for one in np.unique(into)}
    assert 1 < len(joined) < 40
    assert joined == naive(alike, 0.9)


def turns_of(units: np.ndarray, sizes: Sequence[int]) -> list[Turn]:
    """A turn with each of the vectors and sizes in bytes."""
    return [
        Turn(index, False, size, 0, unit.astype(np.float32), (), ())
        for index, (unit, size) in enumerate(zip(units, sizes, strict=True))
    ]


def segment(vector: np.ndarray, terms: Sequence[int] = (), concept_ids: Sequence[int] = (1,)) -> Segment:
    turn = replace(turns_of(vector[None], [100])[0], terms=tuple(terms), concept_ids=tuple(concept_ids))
    [one] = segments_of([turn])
    return one


def random_segments(count: int, subjects: int, *, with_vectors: bool = True) -> tuple[list[Segment], list[int]]:
    """Return segments with their subjects; each has the direction and terms of its subject, with noise."""
    random = np.random.default_rng(3)
    directions = np.eye(subjects, 32) if with_vectors else np.zeros((subjects, 0))
    of_segment = random.integers(subjects, size=count).tolist()
    segments = []
    for subject in of_segment:
        vector = directions[subject] + 0.05 * random.normal(size=directions.shape[1])
        ids = np.unique(random.integers(30, size=25) + 1000 * subject)
        segments.append(segment(vector / max(np.linalg.norm(vector), 1), ids.tolist(), [subject]))
    return segments, of_segment


@pytest.mark.parametrize("with_vectors", [True, False])
def test_later_batches_join_existing_topics(monkeypatch: pytest.MonkeyPatch, with_vectors: bool) -> None:
    segments, subjects = random_segments(120, 4, with_vectors=with_vectors)
    for batch in (1_000, 50):
        monkeypatch.setattr("souvenir.knowledge.clustering.BATCH_SEGMENTS", batch)
        found = clusters_of(segments, range(120))
        assert len(found.mentions) == 4
        assert len(set(zip(subjects, found.topic_of, strict=True))) == 4


def test_topics_do_not_depend_on_the_numbers_of_terms() -> None:
    segments, _ = random_segments(60, 5)
    other = [replace(one, terms=7_000 - one.terms[::-1], counts=one.counts[::-1]) for one in segments]
    found, mirrored = clusters_of(segments, range(60)), clusters_of(other, range(60))
    assert (mirrored.topic_of, mirrored.relevance) == (found.topic_of, found.relevance)


def test_similar_segments_without_concepts_are_no_topic() -> None:
    unit = np.eye(2)
    segments = [segment(unit[side], (), concepts) for side, concepts in ((0, []), (0, []), (1, [1]), (1, []))]
    found = clusters_of(segments, range(4))
    assert (found.topic_of, found.mentions, found.topics_of) == ([-1, -1, 0, 0], [{1: OF_USER + OF_OPENING}], {1: 1})
    assert clusters_of([], []).topic_of == []


def test_shared_rare_terms_join_segments_of_unlike_meaning() -> None:
    units = np.eye(6)
    apart = [segment(unit, [index]) for index, unit in enumerate(units)]
    joined = [segment(unit, [index // 2]) for index, unit in enumerate(units)]
    assert clusters_of(apart, range(6)).topic_of == [0, 1, 2, 3, 4, 5]
    assert clusters_of(joined, range(6)).topic_of == [0, 0, 1, 1, 2, 2]


def test_segments_of_one_session_need_more_similarity() -> None:
    units = np.eye(8)
    units[1, :2] = 0.2, 0.98
    segments = [segment(unit) for unit in units]
    assert clusters_of(segments, range(8)).topic_of == [0, 0, 1, 2, 3, 4, 5, 6]
    assert clusters_of(segments, [0, 0, 1, 2, 3, 4, 5, 6]).topic_of == [0, 1, 2, 3, 4, 5, 6, 7]


def test_terms_of_a_segment_are_stems_without_function_words(ann: Agent) -> None:
    for text in ("The greenhouses, and why?", "my Greenhouse", "Why the two of us?"):
        ann.say(text, session=text)
    with ann.engine.namespace(ANN) as (connection, _):
        one, two, three = [segment.terms.tolist() for [segment] in read_segments(connection, [1, 2, 3]).values()]
    assert one == two != three == []


def test_openings_and_users_mention_more_than_answers() -> None:
    unit = np.ones(1, np.float32)
    said = ((False, (1, 2)), (True, (2, 3)), (False, (2,)))
    turns = [Turn(index, is_answer, 100, 0, unit, (), ids) for index, (is_answer, ids) in enumerate(said)]
    [one] = segments_of(turns)
    assert one.mentions == {1: 2 * OF_USER, 2: 3 * OF_USER + 1, 3: 1}
    assert OF_OPENING == OF_USER > 1


def test_the_first_message_of_a_segment_counts_more_in_its_mean() -> None:
    near = np.eye(2) @ [[1.0, 0.0], [0.8, 0.6]]
    [one] = segments_of(turns_of(near, [100, 100]))
    expected = UNIT * (OPENING_COUNTS * near[0] + near[1]) / (OPENING_COUNTS + 1)
    assert np.abs(one.mean - expected).max() <= 1 < OPENING_COUNTS
    assert one.weight == 2 * (LEAST_WEIGHT + FULL_BYTES)


@for_all("size, share", [(LONG_BYTES, 0.0), (LONG_BYTES + 100, 0.0), (LONG_BYTES // 2, 0.5), (LONG_BYTES // 3, 2 / 3)])
def test_a_segment_with_a_short_opening_leans_on_the_one_before(size: int, share: float) -> None:
    one, other, last = segments_of(turns_of(np.eye(3), [FULL_BYTES, size, LONG_BYTES]))
    previous, own = share * PREVIOUS_WEIGHT, OPENING_COUNTS * (LEAST_WEIGHT + FULL_BYTES)
    assert np.abs(other.mean - UNIT * np.array([previous, own, 0]) / (previous + own)).max() <= 1
    assert (one.mean.tolist(), last.mean.tolist()) == ([UNIT, 0, 0], [0, 0, UNIT])


def test_a_segment_leans_on_no_segment_without_vectors() -> None:
    turns = [replace(one, vector=None) for one in turns_of(np.zeros((LONGEST, 2)), [100] * LONGEST)]
    turns.append(replace(turns_of(np.eye(2)[:1], [SHORT_BYTES])[0], position=LONGEST))
    mute, one = segments_of(turns)
    assert (mute.mean.tolist(), one.mean.tolist()) == ([0, 0], [UNIT, 0])
    one, mute = segments_of([*turns[-1:], *turns[:-1]])
    assert (one.mean.tolist(), mute.mean.tolist()) == ([UNIT, 0], [0, 0])


def best_segments(units: np.ndarray, costs: np.ndarray) -> float:
    """Return the greatest value of any segmentation, by trying all of them."""
    values = []
    for cuts in product((False, True), repeat=len(units) - 1):
        begins = [0, *(index for index, cut in enumerate(cuts, 1) if cut)]
        parts = [units[begin:end] for begin, end in zip(begins, [*begins[1:], len(units)], strict=True)]
        values.append(sum(float(np.linalg.norm(part.sum(axis=0))) for part in parts) - float(costs[begins].sum()))
    return max(values)


@for_all("seed", range(5))
def test_segments_have_the_greatest_coherence_less_their_costs(seed: int) -> None:
    random = np.random.default_rng(seed)
    units, sizes = random.normal(size=(9, 3)), random.integers(SHORT_BYTES, 2 * LONG_BYTES, 9)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    found = segments_of(turns_of(units, sizes.tolist()))
    assert [one.first for one in found[1:]] == [one.last + 1 for one in found[:-1]]
    weights = LEAST_WEIGHT + np.minimum(sizes, FULL_BYTES)
    centred = units - weights @ units / (weights.sum() + SESSION_PRIOR * (LEAST_WEIGHT + FULL_BYTES))
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    centred *= (LEAST_UNIT + (1 - LEAST_UNIT) * np.minimum(sizes, FULL_BYTES) / FULL_BYTES)[:, None]
    costs = SEGMENT_COST - LENGTH_DISCOUNT * (np.minimum(sizes, LONG_BYTES) - FULL_BYTES) / LONG_BYTES
    value = sum(
        float(np.linalg.norm(centred[one.first : one.last + 1].sum(axis=0))) - costs[one.first] for one in found
    )
    assert value == pytest.approx(best_segments(centred, costs), abs=0.01)


@for_all("size, segments", [(FULL_BYTES, 1), (LONG_BYTES, 2)])
def test_a_long_message_begins_a_segment_where_a_short_one_goes_on(size: int, segments: int) -> None:
    near = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0]])
    assert len(segments_of(turns_of(near, [FULL_BYTES, size]))) == segments


def test_subjects_are_told_apart_in_a_language_whose_messages_are_all_alike() -> None:
    units = np.concatenate([np.zeros((8, 3)), 0.25 * np.eye(8)], axis=1)
    units[:, 0], units[:4, 1], units[4:, 2] = 0.7, 0.35, 0.35
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    assert [one.first for one in segments_of(turns_of(units[2:6], [120] * 4))] == [0, 2]
    segments = [segment(unit) for unit in units]
    assert clusters_of(segments, range(8)).topic_of == [0] * 4 + [1] * 4


def test_a_unit_with_a_short_opening_needs_more_to_be_a_segment() -> None:
    units = np.array([[1.0, 0.0], [0.05, np.sqrt(1 - 0.05**2)]])
    assert [len(segments_of(turns_of(units, [120, size]))) for size in (FULL_BYTES, SHORT_BYTES + 5)] == [2, 1]


def test_clusters_of_long_histories_need_more_similarity() -> None:
    few, many = SAME_TOPIC
    values = [least_similarity(segments) for segments in (0, 1, FEW_SEGMENTS, 2 * FEW_SEGMENTS, 10_000)]
    assert values == pytest.approx([few, few, few, few + DOUBLING, many])

    # Two of the segments have a cosine between the limits, the others none.
    def clusters(others: int) -> int:
        units = np.eye(others + 2)
        units[1, :2] = 0.3, 0.95
        return len(set(clusters_of([segment(unit) for unit in units], range(others + 2)).topic_of))

    assert (clusters(6), clusters(120)) == (7, 122)


def test_a_session_without_vectors_is_split_by_length_only() -> None:
    found = segments_of([Turn(index, False, 100, index, None, (), (1,)) for index in range(LONGEST + 1)])
    assert sum(one.messages for one in found) == LONGEST + 1
    assert len(found) == 2
