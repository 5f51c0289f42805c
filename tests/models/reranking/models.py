"""Generated cross-encoders whose scores can be computed by hand.

The score of a pair is the number of places where a word of the question stands in the passage, less 2. The word `slow`
takes the graph hours, unless it is stopped, and with `broken` it fails.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
WORDS = "slow broken ann : red green blue fish fox whale bird sleeps swims sings a the does what where".split()
SLOW_STEPS = 10**10

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def write_cross_encoder(
    folder: Path,
    configs: Mapping[str, object] | None = None,
    *,
    outputs: int = 1,
    table: int = 512,
    onnx_name: str = "model.onnx",
) -> Path:
    """Write a model to the folder and return it.

    :param configs: JSON files by their names. :param outputs: Numbers that it says of a pair.
    :param table: Positions that it knows; a longer pair makes it fail.
    """
    (folder / onnx_name).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(overlap_model(outputs, table), folder / onnx_name)
    word_tokenizer().save(str(folder / "tokenizer.json"))
    for name, content in (configs or {}).items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


def word_tokenizer() -> Tokenizer:
    """One token per word, and a truncation to 3 tokens, which must be ignored."""
    vocabulary = {word: place for place, word in enumerate([*SPECIAL, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    tokenizer.enable_truncation(3)
    return tokenizer


def overlap_model(outputs: int, table: int) -> ModelProto:
    constants = {
        "rows": np.array([2]),
        "columns": np.array([1]),
        "both": np.array([1, 2]),
        "last_special": np.array(len(SPECIAL) - 1),
        "slow": np.array(len(SPECIAL) + WORDS.index("slow")),
        "broken": np.array(len(SPECIAL) + WORDS.index("broken")),
        "table": np.array(table),
        "steps": np.array(SLOW_STEPS),
        "one": np.array(1.0, dtype=np.float32),
        "two": np.array(2.0, dtype=np.float32),
        "go_on": np.array(True),
        "zero": np.array(0),
        "positions": np.zeros(table, dtype=np.float32),
        "weights": np.array([[1] if outputs == 1 else range(outputs)], dtype=np.float32),
        "length_at": np.array([1]),
    }
    graph = helper.make_graph(
        [*_overlap(), *_positions(), *_slowness(), *_scores()],
        "overlap",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in INPUTS],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", outputs])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def _node(operator: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(operator, inputs.split(), [output], **attributes)


def _overlap() -> list[NodeProto]:
    """The number of pairs of equal words in query and passage, (batch, 1)."""
    return [
        _node("Greater", "input_ids last_special", "is_word"),
        _node("Cast", "is_word", "word", to=TensorProto.FLOAT),
        _node("Cast", "token_type_ids", "second", to=TensorProto.FLOAT),
        _node("Cast", "attention_mask", "there", to=TensorProto.FLOAT),
        _node("Sub", "one second", "first"),
        _node("Mul", "word there", "said"),
        _node("Mul", "said first", "in_question"),
        _node("Mul", "said second", "in_passage"),
        _node("Unsqueeze", "input_ids rows", "ids_down"),
        _node("Unsqueeze", "input_ids columns", "ids_across"),
        _node("Equal", "ids_down ids_across", "is_same"),
        _node("Cast", "is_same", "same", to=TensorProto.FLOAT),
        _node("Unsqueeze", "in_question rows", "question_down"),
        _node("Unsqueeze", "in_passage columns", "passage_across"),
        _node("Mul", "question_down passage_across", "across"),
        _node("Mul", "same across", "shared"),
        _node("ReduceSum", "shared both", "overlap", keepdims=0),
    ]


def _positions() -> list[NodeProto]:
    """Zero, but fails for pairs that are longer than the table or contain `broken`."""
    return [
        _node("Equal", "input_ids broken", "is_broken"),
        _node("Cast", "is_broken", "broken_words", to=TensorProto.INT64),
        _node("ReduceSum", "broken_words", "broken_count", keepdims=0),
        _node("Mul", "broken_count table", "beyond"),
        _node("Shape", "input_ids", "shape"),
        _node("Gather", "shape length_at", "length"),
        _node("Sub", "length length_at", "end"),
        _node("Add", "end beyond", "last_position"),
        _node("Gather", "positions last_position", "position"),
        _node("ReduceSum", "position", "nothing", keepdims=0),
    ]


def _slowness() -> list[NodeProto]:
    """Zero, after very many steps for every `slow`."""
    value = helper.make_tensor_value_info
    step = helper.make_graph(
        [_node("Identity", "on", "still_on"), _node("Mul", "held one", "kept")],
        "step",
        [
            value("step_number", TensorProto.INT64, []),
            value("on", TensorProto.BOOL, []),
            value("held", TensorProto.FLOAT, []),
        ],
        [value("still_on", TensorProto.BOOL, []), value("kept", TensorProto.FLOAT, [])],
    )
    return [
        _node("Equal", "input_ids slow", "is_slow"),
        _node("Cast", "is_slow", "slow_words", to=TensorProto.INT64),
        _node("ReduceSum", "slow_words", "slow_count", keepdims=0),
        _node("Mul", "slow_count steps", "step_count"),
        _node("Loop", "step_count go_on nothing", "waited", body=step),
    ]


def _scores() -> list[NodeProto]:
    return [
        _node("Sub", "overlap two", "lower"),
        _node("Add", "lower waited", "score"),
        _node("Unsqueeze", "score columns", "column"),
        _node("MatMul", "column weights", "logits"),
    ]
