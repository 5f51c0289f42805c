"""OnnxEmbedder with tiny models of every supported kind, and with unsupported ones."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from souvenir.core.errors import EmbeddingUnavailable
from souvenir.core.settings import EmbedProvider
from souvenir.models.embedding.onnx_embedder import OnnxEmbedder
from souvenir.models.embedding.specs import DEFAULT_MODELS
from tests.hub_server import COMMIT, said_by_another_process, serving

ROOT = Path(__file__).parents[2]

WORDS = ["[PAD]", "[CLS]", "[SEP]", "query", "passage", ":", "red", "green", "blue", "fish"]
TABLE = np.array([[i + 1, (i * 7) % 5 - 2, (i * 3) % 4] for i in range(len(WORDS))], dtype=np.float32)


def write_model(
    folder: Path,
    configs: Mapping[str, object] | None = None,
    *,
    table: NDArray[np.float32] = TABLE,
    extra_inputs: Sequence[str] = (),
    pooled: bool = False,
    onnx_name: str = "model.onnx",
) -> Path:
    """Write a model whose token vectors are the rows of a table; `configs` are JSON files by path."""
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["token_vectors"])]
    if pooled:
        nodes.append(helper.make_node("ReduceMean", ["token_vectors", "axis"], ["sentence_embedding"], keepdims=0))
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
        for name in ("input_ids", "attention_mask", *extra_inputs)
    ]
    output = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
    constants = [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([1]), "axis")]
    graph = helper.make_graph(nodes, "table", inputs, [output], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    (folder / onnx_name).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / onnx_name)
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    for name, content in (configs or {}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


def tiny_tokenizer() -> Tokenizer:
    """One token per word, and a truncation to 3 tokens, which must be ignored."""
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[PAD]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.enable_truncation(3)
    return tokenizer


def unit(vector: NDArray[np.float32]) -> Any:
    return pytest.approx(vector / np.linalg.norm(vector), abs=1e-6)


def rows_of(text: str) -> NDArray[np.float32]:
    return TABLE[[WORDS.index(word) for word in text.split()]]


def modules(*kinds: str) -> list[dict[str, str]]:
    return [{"type": f"sentence_transformers.models.{kind}", "path": f"1_{kind}"} for kind in kinds]


@pytest.mark.parametrize(
    ("pooling", "pool"),
    [
        ({"pooling_mode_mean_tokens": True}, lambda rows: rows.mean(axis=0)),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, lambda rows: rows[0]),
        ({"pooling_mode_max_tokens": True}, lambda rows: rows.max(axis=0)),
        ({"pooling_mode_lasttoken": True}, lambda rows: rows[-1]),
        ({"pooling_mode": "cls"}, lambda rows: rows[0]),
        ({}, lambda rows: rows.mean(axis=0)),
    ],
)
def test_token_vectors_are_pooled_by_the_model_s_configuration(tmp_path, pooling, pool):
    configs = {"modules.json": modules("Transformer", "Pooling", "Normalize"), "1_Pooling/config.json": pooling}
    embedder = OnnxEmbedder(str(write_model(tmp_path, configs)))
    vectors = embedder.embed_documents(["red", "green blue red fish"])
    assert vectors[0] == unit(pool(rows_of("[CLS] red [SEP]")))
    assert vectors[1] == unit(pool(rows_of("[CLS] green blue red fish [SEP]")))
    assert embedder.dim == 3
    embedder.close()


def test_a_graph_with_pooling_is_used_unchanged(tmp_path):
    embedder = OnnxEmbedder(str(write_model(tmp_path, pooled=True)))
    assert embedder.embed_query("red fish") == unit(rows_of("[CLS] red fish [SEP]").mean(axis=0))
    embedder.close()


def test_a_folder_can_name_an_output_of_token_vectors(tmp_path):
    table = TABLE / np.linalg.norm(TABLE, axis=1, keepdims=True)
    configs = {
        "souvenir.json": {"token_vectors": {"output": "token_vectors", "projection": "none", "stop_words": "green"}},
        "config_sentence_transformers.json": {"prompts": {"query": "query: ", "document": "passage: "}},
    }
    embedder = OnnxEmbedder(str(write_model(tmp_path, configs, table=table)))
    embedded = embedder.embed_passages(["green red fish", "green"])
    assert embedded.vectors.tolist() == embedder.embed_documents(["green red fish", "green"]).tolist()
    assert embedded.tokens is not None
    [first, second] = embedded.tokens
    assert [WORDS[place] for place in first.ids] == ["red", "fish"]
    assert first.codes.tolist() == np.rint(127 * table[first.ids]).tolist()
    assert second.codes.shape == (0, 3)
    tokens = embedder.query_tokens("green  fish")
    assert tokens is not None
    assert ([WORDS[place] for place in tokens.ids], tokens.spans) == (["fish"], [(7, 11)])
    assert tokens.vectors.tolist() == table[tokens.ids].tolist()
    embedder.close()


def test_a_model_without_token_output_makes_no_token_vectors(tmp_path):
    embedder = OnnxEmbedder(str(write_model(tmp_path)))
    assert embedder.token_space is None
    assert embedder.embed_passages(["red"]).tokens is None
    assert embedder.query_tokens("red") is None
    embedder.close()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"output": "other", "projection": "none", "stop_words": ""},
            "no output 'other', which souvenir.json names",
        ),
        ({"output": "token_vectors"}, "token_vectors.projection: Field required"),
    ],
)
def test_a_wrong_description_of_token_vectors_fails_the_load(tmp_path, content, message):
    with pytest.raises(EmbeddingUnavailable, match=message):
        OnnxEmbedder(str(write_model(tmp_path, {"souvenir.json": {"token_vectors": content}}))).load()


def test_token_types_are_passed_to_graphs_that_need_them(tmp_path):
    embedder = OnnxEmbedder(str(write_model(tmp_path, extra_inputs=["token_type_ids"])))
    assert embedder.embed_query("red") == unit(rows_of("[CLS] red [SEP]").mean(axis=0))
    embedder.close()


def test_graphs_with_other_inputs_are_refused(tmp_path):
    with pytest.raises(EmbeddingUnavailable, match="pixel_values"):
        OnnxEmbedder(str(write_model(tmp_path, extra_inputs=["pixel_values"]))).load()


def test_the_model_s_prompts_prefix_queries_and_documents(tmp_path):
    configs = {
        "config_sentence_transformers.json": {"prompts": {"query": "query : ", "document": "passage : "}},
        "sentence_bert_config.json": {"max_seq_length": 12},
    }
    embedder = OnnxEmbedder(str(write_model(tmp_path, configs)))
    assert embedder.embed_query("red") == unit(rows_of("[CLS] query : red [SEP]").mean(axis=0))
    assert embedder.embed_documents(["red"])[0] == unit(rows_of("[CLS] passage : red [SEP]").mean(axis=0))
    assert embedder.max_tokens == 12 - 2 - 2
    assert embedder.token_offsets("red fish") == [(0, 3), (4, 8)]
    assert embedder.token_count("red fish\nred") == 3
    long = embedder.embed_query("red " * 6 + "blue " * 10)
    windows = ["red " * 6 + "blue " * 2, "blue " * 8]
    vectors = [rows_of(f"[CLS] query : {window} [SEP]").mean(axis=0) for window in windows]
    assert long == unit(np.mean([vector / np.linalg.norm(vector) for vector in vectors], axis=0))
    embedder.close()


def test_e5_models_get_their_undeclared_prefixes(tmp_path):
    embedder = OnnxEmbedder(str(write_model(tmp_path / "multilingual-e5-small")))
    assert embedder.embed_query("red") == unit(rows_of("[CLS] query : red [SEP]").mean(axis=0))
    assert embedder.embed_documents(["red"])[0] == unit(rows_of("[CLS] passage : red [SEP]").mean(axis=0))
    embedder.close()


@pytest.mark.parametrize(
    ("configs", "max_tokens"),
    [
        ({"sentence_bert_config.json": {"max_seq_length": 20}, "tokenizer_config.json": {"model_max_length": 30}}, 18),
        ({"tokenizer_config.json": {"model_max_length": 30}}, 28),
        ({"tokenizer_config.json": {"model_max_length": 1e30}}, 510),
        ({"tokenizer_config.json": {"model_max_length": 8192}}, 510),
        ({"tokenizer_config.json": {"model_max_length": 8192}, "souvenir.json": {"max_length": 1024}}, 1022),
        ({}, 510),
    ],
)
def test_the_window_is_the_model_s_and_not_the_tokenizer_s(tmp_path, configs, max_tokens):
    assert OnnxEmbedder(str(write_model(tmp_path, configs))).max_tokens == max_tokens


def test_known_models_get_the_prefixes_and_pooling_that_their_files_lack(tmp_path):
    folder = write_model(tmp_path / "bge-small-en-v1.5-ONNX")
    embedder = OnnxEmbedder(str(folder))
    assert embedder.embed_documents(["red fish"])[0] == unit(rows_of("[CLS]").mean(axis=0))
    assert embedder.max_tokens < 510, "the prefix of queries takes some tokens of the window"
    embedder.close()
    stated = write_model(folder, {"1_Pooling/config.json": {"pooling_mode_mean_tokens": True}})
    embedder = OnnxEmbedder(str(stated))
    assert embedder.embed_documents(["red fish"])[0] == unit(rows_of("[CLS] red fish [SEP]").mean(axis=0))
    embedder.close()


def test_settings_in_the_folder_take_precedence_and_change_the_id_if_they_change_vectors(tmp_path):
    prompts = {"prompts": {"query": "query : ", "document": "passage : "}}
    folder = write_model(tmp_path / "model", {"config_sentence_transformers.json": prompts})
    own = OnnxEmbedder(str(folder)).model_id
    write_model(folder, {"souvenir.json": {"query_prefix": ""}})
    embedder = OnnxEmbedder(str(folder))
    assert embedder.model_id == own
    assert embedder.embed_query("red") == unit(rows_of("[CLS] red [SEP]").mean(axis=0))
    embedder.close()
    write_model(folder, {"souvenir.json": {"document_prefix": "", "pooling": "cls", "dim": 2}})
    embedder = OnnxEmbedder(str(folder))
    assert re.fullmatch(rf"{own}\+[0-9a-f]{{8}}", embedder.model_id)
    assert (embedder.dim, embedder.ready) == (2, False)
    assert embedder.embed_documents(["red"])[0] == unit(rows_of("[CLS]")[0][:2])
    embedder.close()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"querry_prefix": ""}, "querry_prefix: Unexpected keyword argument"),
        ({"pooling": "sum"}, "pooling: Input should be 'mean', 'cls', 'max' or 'lasttoken'"),
        ({"dim": 0}, "dim must be at least 1"),
        ({"dim": 4}, "asks for 4 dimensions of a vector that has 3"),
        ([], "Input should be a dictionary"),
    ],
)
def test_wrong_settings_in_the_folder_fail_the_load(tmp_path, content, message):
    with pytest.raises(EmbeddingUnavailable, match=re.escape(message)):
        OnnxEmbedder(str(write_model(tmp_path, {"souvenir.json": content}))).load()


def test_steps_after_pooling_are_used_if_the_graph_contains_them(tmp_path):
    configs = {"modules.json": modules("Transformer", "Pooling", "Dense", "Normalize")}
    embedder = OnnxEmbedder(str(write_model(tmp_path, configs, pooled=True)))
    assert embedder.embed_query("red fish") == unit(rows_of("[CLS] red fish [SEP]").mean(axis=0))
    embedder.close()


def test_a_folder_without_manifest_is_named_after_its_onnx_file(tmp_path):
    one, other = write_model(tmp_path / "one" / "model"), write_model(tmp_path / "two" / "model", pooled=True)
    ids = [OnnxEmbedder(str(folder)).model_id for folder in (one, other, one)]
    assert all(re.fullmatch(r"model@[0-9a-f]{12}", model_id) for model_id in ids)
    assert ids[0] == ids[2] != ids[1]


# --- models that cannot be used ------------------------------------------------------------------------------------


def test_a_missing_folder_names_the_setting_to_correct(tmp_path):
    with pytest.raises(EmbeddingUnavailable, match="correct EMBED_MODEL"):
        OnnxEmbedder(str(tmp_path / "nowhere")).load()


def test_a_folder_without_an_onnx_file_names_the_expected_files(tmp_path):
    with pytest.raises(EmbeddingUnavailable, match=re.escape("onnx/model.onnx")):
        OnnxEmbedder(str(tmp_path)).load()


def test_models_with_unsupported_steps_are_refused(tmp_path):
    dense = write_model(tmp_path / "dense", {"modules.json": modules("Transformer", "Pooling", "Dense")})
    with pytest.raises(EmbeddingUnavailable, match="Dense"):
        OnnxEmbedder(str(dense)).load()
    weighted = write_model(tmp_path / "weighted", {"1_Pooling/config.json": {"pooling_mode_weightedmean_tokens": True}})
    with pytest.raises(EmbeddingUnavailable, match="weightedmean"):
        OnnxEmbedder(str(weighted)).load()


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "sentence_bert_config.json"])
def test_the_error_of_a_damaged_file_names_it_and_is_not_retried_at_once(tmp_path, name):
    folder = write_model(tmp_path)
    whole = (folder / name).read_bytes() if (folder / name).exists() else b"{}"
    (folder / name).write_bytes(b"\0damaged")
    embedder = OnnxEmbedder(str(folder))
    for _ in range(2):
        with pytest.raises(EmbeddingUnavailable, match=re.escape(name)):
            embedder.embed_query("red")
    (folder / name).write_bytes(whole)
    with pytest.raises(EmbeddingUnavailable, match=re.escape(name)):
        embedder.embed_query("red")
    assert OnnxEmbedder(str(folder)).embed_query("red").shape == (3,)


def test_an_onnx_file_missing_from_its_manifest_is_refused(tmp_path):
    manifest = json.loads((ROOT / DEFAULT_MODELS[EmbedProvider.ONNX] / "manifest.json").read_text(encoding="utf-8"))
    folder = write_model(tmp_path, {"manifest.json": manifest})
    with pytest.raises(EmbeddingUnavailable, match="sha256 is not the one in manifest"):
        OnnxEmbedder(str(folder)).load()


def test_a_model_without_a_vector_fails_the_request(tmp_path):
    table = TABLE.copy()
    table[WORDS.index("red")] = np.nan
    embedder = OnnxEmbedder(str(write_model(tmp_path, table=table)))
    with pytest.raises(EmbeddingUnavailable, match="no usable vector"):
        embedder.embed_query("red")
    assert np.isfinite(embedder.embed_query("blue")).all()
    embedder.close()


def test_a_graph_that_fails_to_run_fails_the_load(tmp_path):
    embedder = OnnxEmbedder(str(write_model(tmp_path, table=TABLE[:1])))
    with pytest.raises(EmbeddingUnavailable, match="failed on this text"):
        embedder.load()
    assert not embedder.ready


# --- Hugging Face --------------------------------------------------------------------------------------------------


def test_a_model_in_the_hugging_face_cache_needs_no_network_and_is_named_after_its_commit(tmp_path):
    repository = tmp_path / "models--org--small"
    write_model(repository / "snapshots" / COMMIT, onnx_name="onnx/model.onnx")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT, encoding="utf-8")
    embedder = OnnxEmbedder("org/small", cache_dir=tmp_path)
    assert embedder.model_id == f"org/small@{COMMIT[:12]}"
    assert embedder.embed_query("red") == unit(rows_of("[CLS] red [SEP]").mean(axis=0))
    embedder.close()


def test_a_failed_download_is_reported(tmp_path):
    with pytest.raises(EmbeddingUnavailable, match=r"could not be downloaded .* at revision 'v2'"):
        OnnxEmbedder("org/elsewhere", revision="v2", cache_dir=tmp_path).load()


def test_a_hugging_face_id_is_downloaded_once_and_without_files_of_no_use(tmp_path):
    folder = write_model(tmp_path / "hub", {"config.json": {"pad_token_id": 0}}, onnx_name="onnx/model.onnx")
    (folder / "pytorch_model.bin").write_bytes(b"much too large")
    with serving(folder) as hub:
        assert embed_in_another_process(hub.url, tmp_path / "cache") == f"org/small@{COMMIT[:12]}"
        assert f"/org/small/resolve/{COMMIT}/onnx/model.onnx" in hub.asked
        assert not any("pytorch_model" in path for path in hub.asked)
        hub.asked.clear()
        assert embed_in_another_process(hub.url, tmp_path / "cache") == f"org/small@{COMMIT[:12]}"
        assert hub.asked == []


def embed_in_another_process(hub: str, cache_dir: Path) -> str:
    """Embed a text and return the model id."""
    return said_by_another_process(
        "import sys, pathlib, onnx_embedder\n"
        "e = onnx_embedder.OnnxEmbedder('org/small', revision='v1', cache_dir=pathlib.Path(sys.argv[1]))\n"
        "e.embed_query('red')\n"
        "print(e.model_id)",
        hub,
        cache_dir,
    )
