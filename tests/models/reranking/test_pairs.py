"""Pairs compared with those of the shipped model's own tokenizer."""

from __future__ import annotations

from tokenizers import Tokenizer

from souvenir.core.files import RESOURCES
from souvenir.core.settings import EmbedProvider
from souvenir.models.embedding.model_folder import ModelFolder
from souvenir.models.embedding.specs import DEFAULT_MODELS
from souvenir.models.reranking.onnx_reranker import RERANKING, PairTokenizer

FOLDER = DEFAULT_MODELS[EmbedProvider.ONNX]
QUESTION = "What did Zoë's grandmother bake, and when?"
PASSAGES = ["Zoë: my grandmother baked strudel in May 2023 🥧", "", "x" * 600, "one two three " * 400]


def test_a_pair_equals_the_tokenizer_s_with_the_second_text_truncated():
    own = Tokenizer.from_file(str(RESOURCES / FOLDER / "tokenizer.json"))
    own.no_padding()
    own.enable_truncation(256, strategy="only_second")
    pairs = PairTokenizer(ModelFolder.find(RERANKING, FOLDER, None, None)).pairs(QUESTION, PASSAGES)
    assert [len(pair) for pair in pairs][-1] == 256
    for pair, passage in zip(pairs, PASSAGES, strict=True):
        expected = own.encode(QUESTION, passage)
        assert (list(pair.ids), list(pair.types)) == (expected.ids, expected.type_ids)
