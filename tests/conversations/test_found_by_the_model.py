"""Search of small conversations with the shipped model.

Relevant messages rank among the first, and results equal those of the reference search.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, MessageRole, PassageKind, Scope, SearchQuery, Weights
from souvenir.index.analyser import Analyser
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.onnx_embedder import OnnxEmbedder
from souvenir.store.messages.messages import Message, MessageDraft, MessageFilter
from tests.reference.agreement import assert_equals_reference
from tests.reference.search import ReferenceSearch

FRIENDS, GARDEN, NOTES = Scope("friends"), Scope("garden"), Scope("notes")
MARCH, MAY = datetime(2023, 3, 4, 18, tzinfo=UTC), datetime(2023, 5, 20, 9, tzinfo=UTC)
NOW = datetime(2023, 6, 30, tzinfo=UTC)
USER, ASSISTANT = MessageRole.USER, MessageRole.ASSISTANT

TALK = {
    MARCH: [
        ("Mara", "I finally signed up for the pottery class at the community centre."),
        ("Jonas", "Nice! Who is the teacher?"),
        ("Mara", "A woman called Ilse. She has an old gas kiln behind her house."),
        ("Jonas", "And what does it cost?"),
        ("Mara", "Ninety euros, with the clay."),
        ("Jonas", "No football for me before June, my knee is still bad."),
        ("Mara", "Did the doctor say what it is?"),
        ("Jonas", "A torn meniscus. It has to be operated on. [photo of a knee brace]"),
        ("Mara", "Oh no. My brother had that too."),
    ],
    MAY: [
        ("Jonas", "I was home the same evening, it all went well."),
        ("Mara", "Great news! How long do you need the crutches?"),
        ("Jonas", "Two more weeks, if the swelling goes down."),
        ("Mara", "My first bowl came out in one piece yesterday, by the way."),
        ("Jonas", "Bring it along on Sunday!"),
    ],
}
CHAT = [
    (USER, "I would like to grow tomatoes on my balcony. It faces north and is quite windy. What do you think?"),
    (
        ASSISTANT,
        "Tomatoes want six hours of sun a day, so a balcony that faces north is hard. A few ideas:\n"
        "- Choose small kinds, such as cherry tomatoes, which ripen with less light.\n"
        "- Put a trellis with a windbreak of jute on the side from which the wind comes.\n"
        "- Use pots of at least twenty litres and water them in the morning, never over the leaves.\n"
        "- Against aphids, spray a little soft soap in water on the lower side of the leaves, twice a week, and plant "
        "nasturtiums next to the pots, which draw the aphids away.\n"
        "- Herbs such as mint, chives and parsley do well in the shade, if the tomatoes give up.",
    ),
    (USER, "In April I carried all the pots up to the roof, there is sun until the evening."),
    (ASSISTANT, "That is a good place. Tie the plants to canes, since it is windier up there."),
    (USER, "My neighbour Selma waters them while I am in Lisbon."),
    (ASSISTANT, "Leave her a note: a litre for each pot in the morning, and nothing when it has rained."),
]
FACTS = {
    MARCH: ["Jonas has a torn meniscus.", "The surgery is planned for May.", "He works as a carpenter."],
    MAY: ["Mara takes part in a pottery class.", "It is taught by Ilse.", "The class meets on Tuesdays."],
}


@dataclass(frozen=True, slots=True)
class Asked:
    question: str
    answer: str
    among: int = 1


QUESTIONS = {
    FRIENDS: [
        Asked("Who is the teacher of Mara's pottery class?", "called Ilse", among=2),
        Asked("How much does Mara pay for the pottery class?", "Ninety euros", among=3),
        Asked("What is wrong with Jonas's knee?", "torn meniscus", among=2),
        Asked("How long does Jonas need crutches?", "Two more weeks"),
        Asked("When did Mara's bowl come out of the kiln?", "yesterday"),
        Asked("What did Mara say in March about her brother?", "My brother"),
    ],
    GARDEN: [
        Asked("Can you remind me where I put the pots in the end?", "up to the roof"),
        Asked("What did you recommend against aphids?", "soft soap"),
        Asked("Who waters the plants while I travel?", "Selma"),
    ],
    NOTES: [
        Asked("Who teaches the pottery class?", "Ilse", among=3),
        Asked("What injury does Jonas have?", "meniscus"),
    ],
}


@pytest.fixture(scope="module")
def model() -> Iterator[OnnxEmbedder]:
    with closing(OnnxEmbedder(threads=1)) as model:
        yield model


@pytest.fixture(scope="module")
def told(model: OnnxEmbedder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryEngine]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("told"))
    with closing(MemoryEngine.open(settings, model)) as engine:
        conversations = Conversations(engine)
        for day, turns in TALK.items():
            conversations.add(FRIENDS, [turn(day, *said) for said in enumerate(turns)])
        conversations.add(GARDEN, [MessageDraft(role, text, session_id="balcony") for role, text in CHAT])
        for day, facts in FACTS.items():
            engine.add_batch(NOTES, [MemoryDraft(fact, "friends", document_at=day) for fact in facts])
        yield engine


def turn(day: datetime, number: int, said: tuple[str, str]) -> MessageDraft:
    speaker, text = said
    at = day + timedelta(minutes=number)
    return MessageDraft(USER, text, session_id=f"{day:%B}", speaker=speaker, created_at=at)


def messages(engine: MemoryEngine, scope: Scope) -> Sequence[Message]:
    return Conversations(engine).page(scope, MessageFilter(), limit=100)[0]


@pytest.mark.parametrize(("scope", "asked"), [(scope, asked) for scope, of in QUESTIONS.items() for asked in of])
def test_the_answer_is_among_the_first_results(told: MemoryEngine, scope: Scope, asked: Asked):
    query = SearchQuery(asked.question, asked.among, now=NOW)
    if scope is NOTES:
        texts = [hit.memory.text for hit in told.search(scope, query).hits]
    else:
        found = told.recall(scope, PassageKind.MESSAGE, query)
        content_of = {message.id: message.content for message in messages(told, scope)}
        texts = [content_of[id_] for id_ in found.owner_ids] if found is not None else []
    assert any(asked.answer in text for text in texts), texts


@pytest.mark.parametrize("weights", [Weights(), Weights(vector=0.3, recency=0.2, role=-0.5)])
def test_with_real_vectors_the_ranking_equals_the_reference_search(
    told: MemoryEngine, model: OnnxEmbedder, weights: Weights
):
    reference = ReferenceSearch(model, Analyser())
    passages = {
        **{scope: reference.passages.of_messages(messages(told, scope)) for scope in (FRIENDS, GARDEN)},
        NOTES: reference.passages.of_memories(told.page(NOTES, offset=0, limit=100).memories),
    }
    for scope, stored in passages.items():
        for asked in [one for of in QUESTIONS.values() for one in of]:
            query = SearchQuery(asked.question, 50, weights=weights, now=NOW)
            found = told.search(scope, query) if scope is NOTES else told.recall(scope, PassageKind.MESSAGE, query)
            assert found is not None
            assert_equals_reference(found, reference.rank(stored, query, NOW), 50)
