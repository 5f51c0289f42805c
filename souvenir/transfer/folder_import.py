"""The import of a data folder of the reference service, while no service runs on the store.

Everything is read and checked before anything is stored. The memories become the lines of an import by an admin, which
keeps times, metadata and links, and maps ids. A memory is recognised by its `import_id`, so that a second import adds
nothing, and one that was killed is finished by the next.

Stored vectors are used if they are those of this store's model: by name and dimension, and by a sample of texts that is
embedded again. Texts of several passages are always embedded. Token vectors are made by a job of the service.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from souvenir.core.errors import InvalidRequest, JobFailed
from souvenir.core.settings import Settings
from souvenir.core.types import Embedded, Embedder, FloatVector, PlainEmbedder, Scope
from souvenir.jobs.worker import Jobs
from souvenir.memories.engine import MemoryEngine
from souvenir.store import meta
from souvenir.store import vectors as vector_rows
from souvenir.store.admin import transfers
from souvenir.store.admin.jobs import IMPORT_FOLDER
from souvenir.store.admin.transfers import IMPORT_ID
from souvenir.transfer import reference_store
from souvenir.transfer.import_job import ImportHandler, ImportOrder
from souvenir.transfer.lines import ImportFormat
from souvenir.transfer.reference_store import ForeignMemory, ForeignStore
from souvenir.transfer.spool import Spools

ACTOR = "import-memories"

SAMPLED = 64
"""Number of texts that are embedded again."""

MIN_COSINE, MIN_MEAN_COSINE = 0.99, 0.999
"""Of the sample. The shipped model has 8-bit weights: .9982 at least and .9994 in the mean to the original."""

WAIT_S = 60.0
_LETTERS = str.maketrans("0123456789", "ghijklmnop")
MAX_BYTES = 2**40

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FolderOrder:
    """:param embed: Whether all texts are embedded again, whatever vectors there are."""

    path: Path
    namespace: str
    embed: bool = False
    dry_run: bool = False
    back_up: bool = True


class FolderImportHandler(ImportHandler):
    """Imports of data folders have a queue of their own, so that no other job is run by the command."""

    kind = IMPORT_FOLDER


class GivenVectors(PlainEmbedder):
    """An embedder that looks up the vectors of some texts, and makes no token vectors."""

    def __init__(self, embedder: Embedder, given: Mapping[str, FloatVector]) -> None:
        self._embedder = embedder
        self._given = given
        self.used = 0

    @property
    def model_id(self) -> str:
        return self._embedder.model_id

    @property
    def dim(self) -> int:
        return self._embedder.dim

    @property
    def ready(self) -> bool:
        return self._embedder.ready

    @property
    def max_tokens(self) -> int:
        return self._embedder.max_tokens

    @property
    def scoring(self) -> Mapping[str, Any]:
        return self._embedder.scoring

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        others = [text for text in texts if text not in self._given]
        embedded = iter(self._embedder.embed_documents(others) if others else ())
        self.used += len(texts) - len(others)
        return np.array(
            [self._given[text] if text in self._given else next(embedded) for text in texts], np.float32
        ).reshape(len(texts), self.dim)

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        return Embedded(self.embed_documents(texts), None)

    def embed_query(self, text: str) -> FloatVector:
        return self._embedder.embed_query(text)

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        return self._embedder.token_offsets(text)

    def token_count(self, text: str) -> int:
        return self._embedder.token_count(text)

    def known_share(self, text: str) -> float:
        return self._embedder.known_share(text)


def import_folder(
    settings: Settings,
    embedder: Embedder,
    order: FolderOrder,
    read_as: ImportFormat,
    *,
    model_spec: str | None,
    say: Say,
) -> None:
    """Import a folder, or say what an import would do.

    :param embedder: The loaded model of the store; it is closed by the caller.
    :param say: Gets each line of the report.
    :raises InvalidRequest: If the folder is damaged or of no known layout; nothing was stored.
    :raises StoreUnusable: If the store must not be opened.
    :raises JobFailed: If the import ended early; a second one goes on.
    """
    store = reference_store.read(order.path, with_vectors=not order.embed)
    say(f"{store.path}: {len(store.memories)} memories")
    given = _given(store, embedder, say)
    lines = _lines(store)
    serving = GivenVectors(embedder, given) if given else embedder
    with closing(MemoryEngine.open(settings, serving, model_spec=model_spec)) as engine:
        known = _known(engine, order.namespace)
        new = sum(json.loads(line)["custom_fields"][IMPORT_ID] not in known for line in lines)
        say(f"{new} of them are new in the namespace {order.namespace!r}, {len(lines) - new} were imported before")
        if order.dry_run:
            _say_unusable(lines, read_as, say)
            say("Nothing was stored, since this was a dry run")
        elif new:
            _run(engine, settings, order, read_as, lines, say)
            if isinstance(serving, GivenVectors) and embedder.token_space is not None:
                say("The next start of the service makes the token vectors of the reused vectors in the background")


def _given(store: ForeignStore, embedder: Embedder, say: Say) -> dict[str, FloatVector]:
    """Return the vectors that can be used, by text, and say why others cannot."""
    held = [(one.line["text"], one.vector) for one in store.memories if one.vector is not None]
    reason = store.no_vectors or _not_of(store.model, embedder)
    if reason is None and any(vector.shape != (embedder.dim,) for _, vector in held):
        reason = f"they have the dimension {held[0][1].size}, and those of {embedder.model_id} have {embedder.dim}"
    if reason is None and held:
        reason = _not_alike(held, embedder)
    if reason is not None:
        say(f"The stored vectors are not used, and the texts are embedded again: {reason}")
        return {}
    say(f"{len(held)} stored vectors are those of {embedder.model_id} and are used")
    return {text: vector / np.float32(np.linalg.norm(vector)) for text, vector in held}


def _not_of(model: str | None, embedder: Embedder) -> str | None:
    name = embedder.model_id.rpartition("/")[2].partition("@")[0]
    if model is None or model.rpartition("/")[2].casefold() == name.casefold():
        return None
    return f"they were made by {model}, and this store's model is {embedder.model_id}"


def _not_alike(held: Sequence[tuple[Any, FloatVector]], embedder: Embedder) -> str | None:
    """Embed a sample of the texts again, and return a sentence if the vectors differ."""
    texts = [
        (text, vector)
        for text, vector in held
        if isinstance(text, str) and len(embedder.token_offsets(text)) <= embedder.max_tokens
    ]
    sample = texts[:: max(1, len(texts) // SAMPLED)][:SAMPLED]
    if not sample:
        return "no text fits one passage, so none can be compared"
    rows = np.array([vector / np.linalg.norm(vector) for _, vector in sample], np.float32)
    cosines = (rows * embedder.embed_documents([text for text, _ in sample])).sum(axis=1)
    if cosines.min() >= MIN_COSINE and cosines.mean() >= MIN_MEAN_COSINE:
        return None
    return (
        f"of {len(sample)} texts that were embedded for comparison, the cosines are {cosines.min():.4f} at least and "
        f"{cosines.mean():.4f} in the mean, instead of {MIN_COSINE} and {MIN_MEAN_COSINE}"
    )


def _lines(store: ForeignStore) -> list[bytes]:
    """Return the lines of an import; the id 0, which none has here, comes last and so takes the place of no other."""
    met: Counter[str] = Counter()
    lines = [_named(one, met) for one in store.memories]
    return [json.dumps(line, ensure_ascii=False).encode() for line in sorted(lines, key=lambda line: line["id"] == 0)]


def _say_unusable(lines: Sequence[bytes], read_as: ImportFormat, say: Say) -> None:
    for line in lines:
        try:
            read_as.read(line)
        except InvalidRequest as error:
            say(f"Memory {json.loads(line)['id']} cannot be stored: {error.message}")


def _named(memory: ForeignMemory, met: Counter[str]) -> dict[str, Any]:
    """Return a line with its identity: of memories with the same source, text and time, also the number of it.

    Letters only, because digits may be taken for personal data.
    """
    line = memory.line
    said = json.dumps([line["source"], line["text"], line["created_at"]])
    met[said] += 1
    digest = hashlib.sha256(f"{said}{met[said]}".encode()).hexdigest()[:32].translate(_LETTERS)
    return {**line, "custom_fields": {**line["custom_fields"], IMPORT_ID: digest}}


def _known(engine: MemoryEngine, namespace: str) -> Mapping[str, int]:
    with engine.namespace(Scope(namespace)) as (connection, found):
        return {} if found is None else transfers.imported_ids(connection, found.id)


def _run(
    engine: MemoryEngine,
    settings: Settings,
    order: FolderOrder,
    read_as: ImportFormat,
    lines: Sequence[bytes],
    say: Say,
) -> None:
    spools = Spools(engine, settings.import_dir, max_bytes=MAX_BYTES)
    # Until the service has completed them; it looks for missing ones only then.
    engine.write_rows(lambda connection: meta.forget(connection, vector_rows.TOKEN_SPACE))
    scope = Scope(order.namespace, ACTOR)
    handler = FolderImportHandler(engine, spools, read_as)
    days = settings.job_retention_days
    with closing(
        Jobs(engine, [handler], queue_max=8, retention_days=days, on_end=spools.sweep, lane=IMPORT_FOLDER)
    ) as jobs:
        spool = asyncio.run(spools.receive(_pieces(lines), ACTOR))
        parameters = ImportOrder(back_up=order.back_up, by_admin=True, skip_imported=True).parameters(spool)
        with spools.until_submitted(spool.job_id):
            jobs.submit(IMPORT_FOLDER, scope, parameters, job_id=spool.job_id)
        jobs.start()
        while not (job := jobs.wait(spool.job_id, WAIT_S)).finished:
            say(f"{job.done} of {job.total} lines are stored")
    if job.outcome is None:
        raise JobFailed(
            job.id, f"{job.error or 'The import was cancelled'}; what is stored is kept, run the import again"
        )
    _report(job.outcome, say)


async def _pieces(lines: Sequence[bytes]) -> AsyncIterator[bytes]:
    for line in lines:
        yield line + b"\n"


def _report(report: Mapping[str, Any], say: Say) -> None:
    say(f"{report['imported']} memories imported, {report['skipped']} were there already")
    say(f"{report['links']} links made, {report['links_dropped']} not, as their other ends are not in the folder")
    say(f"{report['changed_id_count']} memories have another id than before")
    for error in report["errors"]:
        say(f"Memory {error['line'] - 1} (counted from 0) was not stored: {error['error']}")
    if report["backup"] is not None:
        say(f"The backup made before is {report['backup']}")
