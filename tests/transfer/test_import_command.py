"""`python app.py import-memories` with the shipped model, and the start of the service after it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import faiss
import pytest

from souvenir.api.transfer_lines import ReadAs
from souvenir.command_line import main
from souvenir.core.settings import Settings
from souvenir.core.types import Scope
from souvenir.memories.reembedding import chosen_model
from souvenir.server.service import Service
from souvenir.store.rows import select

TEXTS = ["Ann plays the violin.", "The billing service runs on Postgres 17.", "Lunch is at noon in the yard."]
PATIENCE_S = 60.0


def test_vectors_are_reused_and_the_service_completes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    settings = Settings(data_dir=tmp_path / "data")
    embedder, _ = chosen_model(settings)
    with closing(embedder):
        vectors = embedder.embed_documents(TEXTS)
    old = tmp_path / "old"
    old.mkdir()
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    faiss.write_index(index, str(old / "index.faiss"))
    (old / "config.json").write_text(json.dumps({"model": "all-MiniLM-L6-v2"}))
    (old / "metadata.json").write_text(
        json.dumps([{"id": at, "text": text, "source": "s", "timestamp": ""} for at, text in enumerate(TEXTS)])
    )
    monkeypatch.setenv("DATA_DIR", str(settings.data_dir))
    assert main(["import-memories", str(old), "--namespace", "team", "--no-backup"]) == 0
    said = capsys.readouterr().out
    assert "3 stored vectors are those of all-MiniLM-L6-v2@" in said
    assert "3 memories imported, 0 were there already" in said
    assert main(["check"]) == 0
    with closing(Service.open(settings, ReadAs())) as service:
        assert service.loading is not None
        service.loading.join(PATIENCE_S)
        with service.engine.namespace(Scope()) as (connection, _):
            ids = list(select(connection, str, "SELECT id FROM jobs WHERE kind = 'reembed'"))
        assert [service.reembedding_jobs.wait(one, PATIENCE_S).error for one in ids] == [None]
        with service.engine.namespace(Scope()) as (connection, _):
            assert connection.execute("SELECT count(*) FROM vectors WHERE tokens IS NOT NULL").get == 3


def test_a_damaged_folder_is_one_sentence_and_makes_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "metadata.json").write_text('[{"text": "Ann')
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    assert main(["import-memories", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert "metadata.json cannot be imported: it is not complete JSON" in said.err
    assert not (tmp_path / "data" / "souvenir.db").exists()
