"""Edits at the same time: no acknowledged edit is lost, and one that cannot be made says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Semaphore

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from app import create_app
from souvenir.conversations.documents import ATTEMPTS
from souvenir.core.settings import Settings
from souvenir.core.types import FloatVector
from tests.api.conftest import BASE_URL, KEY, loaded
from tests.compat.memory_tool.conftest import Tool
from tests.fake_embedder import FakeEmbedder, fake_of
from tests.thoroughness import sampled

FILE = "/memories/log.md"
PATIENCE_S = 30.0
HELD = "held"
WRITERS, LINES = 4, sampled(4, 40)


class HoldingEmbedder(FakeEmbedder):
    """Holds each text with the word `HELD` between the reading of a document and its write."""

    def __init__(self) -> None:
        self.arrived, self.go_on = Semaphore(0), Semaphore(0)

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        if any(HELD in text for text in texts):
            self.arrived.release()
            assert self.go_on.acquire(timeout=PATIENCE_S)
        return super().embed_documents(texts)


@pytest.fixture(scope="module")
def embedder() -> HoldingEmbedder:
    return HoldingEmbedder()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, embedder: HoldingEmbedder) -> Iterator[TestClient]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("edits"), api_key=SecretStr(KEY))
    with TestClient(create_app(settings, embedder, fake_of), base_url=BASE_URL) as client:
        yield loaded(client)


@pytest.fixture
def log(tool: Tool) -> Tool:
    tool.done("create", path=FILE, file_text="begin\n")
    return tool


def test_an_edit_of_a_file_that_changed_meanwhile_is_made_again_on_the_new_text(log: Tool, embedder: HoldingEmbedder):
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(log.done, "str_replace", path=FILE, old_str="begin", new_str=HELD)
        assert embedder.arrived.acquire(timeout=PATIENCE_S)
        log.done("insert", path=FILE, insert_line=1, insert_text="quick")
        embedder.go_on.release(2)
        assert slow.result().endswith("     1\theld\n     2\tquick\n     3\t")
    assert embedder.arrived.acquire(timeout=PATIENCE_S)
    assert log.texts() == {"memories/log.md": "held\nquick\n"}


def test_a_text_that_another_edit_took_away_is_not_replaced(log: Tool, embedder: HoldingEmbedder):
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(log.refused, "str_replace", path=FILE, old_str="begin", new_str=HELD)
        assert embedder.arrived.acquire(timeout=PATIENCE_S)
        log.done("str_replace", path=FILE, old_str="begin", new_str="end")
        embedder.go_on.release()
        assert slow.result() == (f"No replacement was performed, old_str `begin` did not appear verbatim in {FILE}.")
    assert log.texts() == {"memories/log.md": "end\n"}


def test_a_file_that_was_deleted_meanwhile_does_not_come_back(log: Tool, embedder: HoldingEmbedder):
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(log.refused, "insert", path=FILE, insert_line=0, insert_text=HELD)
        assert embedder.arrived.acquire(timeout=PATIENCE_S)
        log.done("delete", path=FILE)
        embedder.go_on.release()
        assert slow.result() == f"The path {FILE} does not exist. Please provide a valid path."
    assert log.memories() == []


def test_an_edit_that_others_always_overtake_is_refused_and_changes_nothing(log: Tool, embedder: HoldingEmbedder):
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(log.refused, "insert", path=FILE, insert_line=0, insert_text=HELD)
        for number in range(ATTEMPTS):
            assert embedder.arrived.acquire(timeout=PATIENCE_S)
            log.done("insert", path=FILE, insert_line=0, insert_text=f"quick {number}")
            embedder.go_on.release()
        assert slow.result() == f"The file {FILE} is being changed by others; view it and send the command again"
    assert log.texts() == {"memories/log.md": "quick 2\nquick 1\nquick 0\nbegin\n"}


def test_every_acknowledged_line_of_many_writers_is_in_the_file(log: Tool):
    def write(writer: int) -> list[str]:
        lines = [f"line {number} of {writer}" for number in range(LINES)]
        answers = [log.send("insert", path=FILE, insert_line=0, insert_text=line).json() for line in lines]
        return [line for line, answer in zip(lines, answers, strict=True) if not answer["is_error"]]

    with ThreadPoolExecutor(WRITERS) as pool:
        acknowledged = [line for lines in pool.map(write, range(WRITERS)) for line in lines]
    stored = log.texts()["memories/log.md"].splitlines()
    assert acknowledged
    assert sorted(stored) == sorted([*acknowledged, "begin"])


def test_of_two_files_that_would_be_a_file_and_its_directory_one_is_stored(log: Tool, embedder: HoldingEmbedder):
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(log.refused, "create", path="/memories/a", file_text=HELD)
        assert embedder.arrived.acquire(timeout=PATIENCE_S)
        log.done("create", path="/memories/a/b.md", file_text="b")
        embedder.go_on.release()
        assert slow.result() == "/memories/a is a directory; send the path of a file"
    assert log.texts() == {"memories/log.md": "begin\n", "memories/a/b.md": "b"}
