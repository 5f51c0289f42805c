"""Every refusal and warning on the operators' page is caused, read and followed: the remedy on the page works."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

import app as program
from souvenir.core.files import RESOURCES
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.reembedding import chosen_model
from souvenir.store.sqlite.locks import lock_folder
from souvenir.store.sqlite.schema import SCHEMA_VERSION
from tests.store.damage import overwrite

Remedy = Callable[[str], object]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "operations.md"
COMMAND = re.compile(r"`python app\.py ([^`]+)`")
SCOPE = Scope()
TEXT = "the staging database moved to Frankfurt"


def rows_of(section: str) -> list[tuple[str, str]]:
    """Return the first two columns of the table in a section of the page."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    return [(row[0].strip(), row[1].strip()) for row in cells[2:]]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A data folder with one memory, made with the real model, and the name of a backup of it."""
    path = tmp_path_factory.mktemp("prepared") / "data"
    settings = Settings(data_dir=path)
    with closing(MemoryEngine.open(settings, chosen_model(settings)[0])) as engine:
        engine.add(SCOPE, MemoryDraft(TEXT, "ops"))
        return path, engine.back_up(reason="manual").name


@dataclass
class Folder:
    """A copy of the prepared folder, in which a test causes a refusal or a warning and follows the page."""

    path: Path
    backup: str
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    held: ExitStack

    @property
    def database(self) -> Path:
        return self.path / "souvenir.db"

    @contextmanager
    def engine(self) -> Iterator[MemoryEngine]:
        settings = Settings()
        embedder = chosen_model(settings)[0]
        embedder.load()
        with closing(embedder), closing(MemoryEngine.open(settings, embedder)) as engine:
            engine.warm_up()
            yield engine

    def run(self, *arguments: str) -> tuple[int, str]:
        """Return the exit code of a command, and what it printed."""
        code = program.main(arguments)
        written = self.capsys.readouterr()
        return code, written.out + written.err

    def follow(self, message: str) -> str:
        """Run the first command that a message names; return what it printed."""
        named = COMMAND.search(message)
        assert named, message
        code, printed = self.run(*shlex.split(named[1]))
        assert code == 0, printed
        return printed

    def require_sound(self) -> None:
        with self.engine() as engine:
            assert engine.readiness().warnings == ()
            assert [hit.memory.text for hit in engine.search(SCOPE, SearchQuery(TEXT)).hits] == [TEXT]
            assert list(engine.check()) == []

    def set(self, name: str, value: str) -> Remedy:
        """Set a setting that cannot be used; the remedy unsets it."""
        self.monkeypatch.setenv(name, value)
        return lambda _: self.monkeypatch.delenv(name)


@pytest.fixture
def folder(
    prepared: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Folder]:
    path, backup = prepared
    shutil.copytree(path, tmp_path / "data")
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    with ExitStack() as held:
        yield Folder(tmp_path / "data", backup, monkeypatch, capsys, held)


# --- refusals to start: each function causes one and returns its remedy, which is called with the sentence ------------


def damaged(folder: Folder) -> Remedy:
    content = bytearray(folder.database.read_bytes())
    content[2 * 4096 : 4 * 4096] = b"\xff" * 8192
    folder.database.write_bytes(content)
    return folder.follow


def missing(folder: Folder) -> Remedy:
    folder.database.unlink()
    return folder.follow


def newer_schema(folder: Folder) -> Remedy:
    with closing(apsw.Connection(str(folder.database))) as connection:
        connection.pragma("user_version", SCHEMA_VERSION + 1)
    return lambda _: folder.run("restore", folder.backup)


def moved_model(folder: Folder) -> Remedy:
    there, now = folder.path.parent / "there" / "my-model", folder.path.parent / "here" / "my-model"
    shutil.copytree(RESOURCES / "models" / "all-MiniLM-L6-v2", there, ignore=shutil.ignore_patterns("manifest.json"))
    shutil.rmtree(folder.path)
    folder.monkeypatch.setenv("EMBED_MODEL", str(there))
    with folder.engine() as engine:
        engine.add(SCOPE, MemoryDraft(TEXT, "ops"))
    shutil.move(there, now)
    folder.monkeypatch.delenv("EMBED_MODEL")
    return lambda _: folder.monkeypatch.setenv("EMBED_MODEL", str(now))


def taken_folder(folder: Folder) -> Remedy:
    held = folder.held.enter_context(lock_folder(folder.path))
    return lambda _: held.close()


def unfinished_restore(folder: Folder) -> Remedy:
    """A restore was decided, and a file cannot be renamed."""
    shutil.copyfile(folder.path / "backups" / folder.backup / "souvenir.db", folder.path / "souvenir.db.restoring")
    (folder.path / "souvenir.db.restore").write_text('{"mark": ".replaced-1"}')
    blocking = folder.path / "souvenir.db.replaced-1"
    blocking.mkdir()
    return lambda _: blocking.rmdir()


def unwritable_folder(folder: Folder) -> Remedy:
    (folder.path.parent / "file").touch()
    folder.monkeypatch.setenv("DATA_DIR", str(folder.path.parent / "file" / "data"))
    return lambda _: folder.monkeypatch.setenv("DATA_DIR", str(folder.path))


def unusable_rules(folder: Folder) -> Remedy:
    (folder.path.parent / "rules.yaml").write_text("rules: [3]")
    return folder.set("PRIVACY_CONFIG", str(folder.path.parent / "rules.yaml"))


def unknown_dimension(folder: Folder) -> Remedy:
    folder.set("EMBED_PROVIDER", "openai")
    folder.set("EMBED_API_KEY", "sk-none")
    folder.set("EMBED_MODEL", "a-model-of-tomorrow")
    shutil.rmtree(folder.path)

    def remedy(_: str) -> None:
        folder.monkeypatch.setenv("EMBED_DIM", "64")

    return remedy


def no_key(folder: Folder) -> Remedy:
    shutil.rmtree(folder.path)
    return folder.set("EMBED_PROVIDER", "openai")


REFUSALS: dict[str, Callable[[Folder], Remedy]] = {
    "is damaged": damaged,
    "is missing although": missing,
    "has schema version": newer_schema,
    "The vectors in": moved_model,
    "Another process uses": taken_folder,
    "cannot be finished": unfinished_restore,
    "How many numbers a vector": unknown_dimension,
    "The cross-encoder": lambda folder: folder.set("RERANK_MODEL", str(folder.path / "nowhere")),
    "OpenAI needs a key": no_key,
    "The privacy rules in": unusable_rules,
    "cannot be written": unwritable_folder,
}
"""How each refusal in the table of the page is caused, by words of its sentence."""

ELSEWHERE = {"address already in use": "tests/api/test_app.py"}
"""Refusals that another test causes, since they need a listening process."""


def test_every_refusal_of_the_page_is_caused_by_a_test():
    messages = [message for message, _ in rows_of("When it does not start")]
    known = [*REFUSALS, *ELSEWHERE]
    assert [message for message in messages if not any(words in message for words in known)] == []
    assert [words for words in known if not any(words in message for message in messages)] == []


@pytest.mark.parametrize("words", REFUSALS)
def test_following_the_page_after_a_refusal_leads_to_a_sound_service(folder: Folder, words: str):
    remedy = REFUSALS[words](folder)
    code, printed = folder.run()
    assert code == 1
    [sentence] = printed.splitlines()
    assert re.search(words, sentence), sentence
    remedy(sentence)
    if folder.database.exists():
        folder.require_sound()
    else:
        chosen_model(Settings())[0].close()


# --- warnings: each function causes one and returns its remedy, which is called with the message ----------------------


def older_copy(folder: Folder) -> Remedy:
    """A copy is put back by hand, and the backup has what it lacks."""
    copy = folder.path.parent / "copy.db"
    with folder.engine() as engine:
        engine.delete(SCOPE, 1, force=True)
    shutil.copyfile(folder.database, copy)
    with folder.engine() as engine:
        engine.add(SCOPE, MemoryDraft("a memory of later", "ops"))
    shutil.copyfile(copy, folder.database)
    return folder.follow


def lost_log(folder: Folder) -> Remedy:
    """The loss is accepted, since the newest backup does not have it either."""
    older_copy(folder)
    shutil.rmtree(folder.path / "backups")

    def accept(message: str) -> None:
        folder.follow(message)
        with folder.engine() as engine:
            engine.add(SCOPE, MemoryDraft(TEXT, "ops"))

    return accept


def marker_is_a_folder(folder: Folder) -> Remedy:
    marker = folder.path / "souvenir.db.commit"
    marker.unlink()
    marker.mkdir()
    return lambda _: marker.rmdir()


def index_is_a_file(folder: Folder) -> Remedy:
    shutil.rmtree(folder.path / "index", ignore_errors=True)
    (folder.path / "index").touch()
    return lambda _: (folder.path / "index").unlink()


def reserve_is_a_folder(folder: Folder) -> Remedy:
    reserve = folder.path / "souvenir.db.reserve"
    reserve.unlink()
    reserve.mkdir()
    return lambda _: reserve.rmdir()


def damaged_passage(folder: Folder) -> Remedy:
    """The row is read when the index is built; its memory has its content."""
    assert overwrite(folder.database, "passages", "text", "CAST(x'ff' AS TEXT)", where="id = 1") == 1
    return folder.follow


WARNINGS: dict[str, list[Callable[[Folder], Remedy]]] = {
    "commits_missing": [older_copy, lost_log],
    "commit_marker_unwritable": [marker_is_a_folder],
    "index_unreadable": [index_is_a_file],
    "no_reserve": [reserve_is_a_folder],
    "rows_unreadable": [damaged_passage],
}
"""How each warning in the table of the page is caused."""

WARNED_OF_ELSEWHERE = {
    "disk_full": "tests/api/test_full_disk.py",
    "index_unwritable": "tests/index/test_snapshots.py",
    "index_repaired": "tests/index/test_cross_check.py",
    "database_damaged": "tests/store/test_refusals.py",
    "sync_upload_failed": "tests/sync/test_sync.py",
}


def test_every_warning_of_the_page_is_caused_by_a_test():
    assert {code.strip("`") for code, _ in rows_of("Warnings")} == {*WARNINGS, *WARNED_OF_ELSEWHERE}
    for code, path in WARNED_OF_ELSEWHERE.items():
        assert code in (PAGE.parent.parent / path).read_text(encoding="utf-8"), f"{path} does not cause {code}"


@pytest.mark.parametrize(("code", "cause"), [(code, cause) for code, causes in WARNINGS.items() for cause in causes])
def test_following_the_page_after_a_warning_clears_it(folder: Folder, code: str, cause: Callable[[Folder], Remedy]):
    remedy = cause(folder)
    with folder.engine() as engine:
        found = {warning.code: warning.message for warning in engine.readiness().warnings}
    assert [*found] == [code]
    remedy(found[code])
    folder.require_sound()
