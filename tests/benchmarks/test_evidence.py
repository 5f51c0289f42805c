"""What the benchmark of relevance counts and fits, on numbers worked out by hand and on talks of one line."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.evidence.calibration import auc, calibration_error, reliability
from benchmarks.evidence.fitting import OFF_TOPIC_SHARE, Answer, logistic, weights_of
from benchmarks.evidence.questions import Kind, cut, read_questions
from benchmarks.evidence.reader import LabelReader, Model, Script, babbles, invents, read_all
from benchmarks.extraction.replay import listening
from benchmarks.retrieval.data_sets import Question, read_data_set
from souvenir.conversations.verification import Answered
from souvenir.core.settings import ExtractProvider, Settings
from souvenir.core.types import MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.provider import provider_of
from souvenir.retrieval.probability import Arms
from souvenir.retrieval.relevance import Judgement
from tests.fake_embedder import FakeEmbedder


def answer(kind: Kind, scope: str = "ann", **signals: float) -> Answer:
    return Answer("talks", scope, scope, kind, "", Arms.ALL, Judgement(signals=signals))


def test_auc_is_the_share_of_pairs_in_order_and_equals_count_half():
    assert auc([1.0, 2.0], [1.0, 0.0]) == pytest.approx((0.5 + 1 + 1 + 1) / 4)


def test_calibration_error_is_the_bins_mean_distance_by_weight():
    bins = reliability([0.05, 0.05, 0.95, 1.0], [False, True, True, True], [1, 1, 1, 1])
    assert [one is not None for one in bins] == [True, *[False] * 8, True]
    assert calibration_error(bins) == pytest.approx((2 * abs(0.05 - 0.5) + 2 * abs(0.975 - 1.0)) / 4)
    heavier = reliability([0.05, 0.95], [True, True], [3, 1])
    assert calibration_error(heavier) == pytest.approx((3 * 0.95 + 0.05) / 4)


def test_without_signals_the_fit_is_the_share_itself():
    answers = [answer(Kind.ANSWERED)] * 4
    fitted = logistic(answers, [True, True, True, False], [1.0] * 4, ())
    assert fitted.bias == pytest.approx(math.log(3), abs=1e-3)
    assert fitted({}) == pytest.approx(0.75, abs=1e-3)


def test_a_fit_gives_each_signal_the_share_that_was_true_of_it():
    counts: Sequence[tuple[float, int, int]] = [(0.0, 1, 4), (1.0, 9, 1)]
    answers = [answer(Kind.ANSWERED, gap=gap) for gap, true, false in counts for _ in range(true + false)]
    truth = [number < true for _, true, false in counts for number in range(true + false)]
    fitted = logistic(answers, truth, [1.0] * len(answers), ("gap",))
    assert [fitted({"gap": gap}) for gap in (0.0, 1.0)] == pytest.approx([0.2, 0.9], abs=2e-3)


def test_a_signal_that_would_lower_the_relevance_the_wrong_way_gets_no_weight():
    answers = [answer(Kind.ANSWERED, hit=hit, unknown=unknown) for hit in (0.0, 1.0) for unknown in (0.0, 1.0)] * 2
    truth = [one.signals["hit"] == 1.0 or one.signals["unknown"] == 1.0 for one in answers[:4]] + [False] * 4
    found = logistic(answers, truth, [1.0] * len(answers), ("hit", "unknown"))
    assert found.weights["unknown"] == 0.0
    assert found.weights["hit"] > 0.0


def test_answers_without_the_signal_take_no_part_and_a_fit_of_one_kind_is_refused():
    answers = [answer(Kind.ANSWERED, gap=1.0), answer(Kind.ANSWERED)]
    with pytest.raises(ValueError, match="gap"):
        logistic(answers, [True, False], [1.0, 1.0], ("gap",))


def test_questions_of_others_weigh_together_a_share_of_an_agents_own():
    own, others = [answer(Kind.ANSWERED), answer(Kind.UNANSWERED)], [answer(Kind.OTHER_SCOPE)] * 5
    assert weights_of([*own, *others]) == pytest.approx([1.0, 1.0] + [2 * OFF_TOPIC_SHARE / 5] * 5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two talks of one set, and a third one of another; one question of each category."""
    asked = {
        "talks": [
            ("ann ben", "Ann", "Where does Ann sail?", "single-hop"),
            ("cem dia", "Cem", "Did Cem bake?", "temporal"),
        ],
        "chats": [("chat", "user", "Which port is open?", "single-hop")],
    }
    for name, questions in asked.items():
        docs = [
            {"id": f"{scope}/1", "text": "x", "meta": {"scope": scope, "session": "s", "turn": 1, "speaker": speaker}}
            for scope, speaker, _, _ in questions
        ]
        queries = [
            {"text": text, "scope": scope, "category": category, "relevant": {f"{scope}/1": 1}}
            for scope, _, text, category in questions
        ]
        if name == "talks":
            common = {"scope": "ann ben", "relevant": {}}
            queries += [{"text": "Does Ann fly?", "category": "adversarial", **common}]
            queries += [{"text": "Nobody knows?", "category": "open-domain", **common}]
        (tmp_path / name).mkdir()
        for file, rows in (("docs", docs), ("queries", queries)):
            lines = "\n".join(json.dumps(row) for row in rows)
            (tmp_path / name / f"{file}.jsonl").write_text(lines, encoding="utf-8")
    return tmp_path


def test_an_agent_is_asked_its_own_questions_and_those_of_others_under_its_names_too(folder: Path):
    found = read_questions(folder, ("talks", "chats"))
    assert [(one.kind, one.text) for one in found["talks"]["ann ben"]] == [
        (Kind.ANSWERED, "Where does Ann sail?"),
        (Kind.UNANSWERED, "Does Ann fly?"),
        (Kind.OTHER_SCOPE, "Did Cem bake?"),
        (Kind.RENAMED, "Did Ann bake?"),
        (Kind.OTHER_SET, "Which port is open?"),
    ]
    assert {one.kind for one in found["chats"]["chat"]} == {Kind.ANSWERED, Kind.OTHER_SET}


DOG = "Biscuit is a beagle  of five years."
KNOWN = LabelReader({"what is Biscuit": [DOG], "where does Biscuit sleep": []})


@pytest.mark.parametrize(
    ("script", "verdicts"),
    [
        (KNOWN, [(Answered.YES, True), (Answered.NO, False)]),
        (invents, [(Answered.UNKNOWN, False)] * 2),
        (babbles, [(Answered.UNKNOWN, False)] * 2),
    ],
    ids=["labels", "invents", "babbles"],
)
def test_a_scripted_reader_has_the_verdict_of_its_script_unless_its_quote_is_invented(
    tmp_path: Path, script: Script, verdicts: Sequence[tuple[Answered, bool]]
):
    questions = [
        Question("what is Biscuit", "ann", "plain", {"dog": 1.0}),
        Question("where does Biscuit sleep", "ann", "never_said", {}),
    ]
    with (
        closing(MemoryEngine.open(Settings(data_dir=tmp_path), FakeEmbedder())) as engine,
        listening(Model(script)) as at,
    ):
        added = engine.add_batch(Scope("ann"), [MemoryDraft(DOG, "notes")])
        provider = provider_of(Settings(extract_provider=ExtractProvider.OPENAI, extract_base_url=f"{at}/v1"))
        assert provider is not None
        with closing(provider):
            reads = list(read_all(questions, engine, {added[0]: "dog"}, provider))
    assert [(one.verdict.answered, one.quoted) for one in reads] == verdicts
    assert [one.found for one in reads] == [True, False]


def test_a_conversation_is_cut_between_sessions_and_each_part_is_asked_what_it_answers(tmp_path: Path):
    docs = [
        {"id": f"d{number}", "text": "x", "meta": {"scope": "ann", "session": f"s{number // 2}"}} for number in range(7)
    ]
    asked = {"d1": "plain", "d5": "adversarial", "d6": "plain"}
    queries = [
        {"text": f"{id_}?", "scope": "ann", "category": category, "relevant": {id_: 1}}
        for id_, category in asked.items()
    ]
    for file, rows in (("docs", docs), ("queries", queries)):
        (tmp_path / f"{file}.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    parts = cut(read_data_set(tmp_path), read_questions(tmp_path.parent, [tmp_path.name])[tmp_path.name], 3, 0.5)
    assert [[one.id for one in part] for part in parts.data_set.documents.values()] == [
        ["d0", "d1", "d2", "d3"],
        ["d4", "d5", "d6"],
    ]
    of_each = [[(one.kind, one.text) for one in part] for part in parts.questions.values()]
    assert of_each == [[(Kind.ANSWERED, "d1?")], [(Kind.UNANSWERED, "d5?"), (Kind.ANSWERED, "d6?")]]
    assert set(parts.conversation_of.values()) == {"ann"}
