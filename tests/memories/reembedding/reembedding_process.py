"""A process for kill tests: changes the model of a folder, writes meanwhile, and prints acknowledged writes.

python -m tests.memories.reembedding.reembedding_process DATA_DIR ROUND
"""

from __future__ import annotations

import logging
import os
import sys
from itertools import count
from pathlib import Path

import structlog

from souvenir.core.settings import Settings
from souvenir.core.stored_json import to_json
from souvenir.core.types import MemoryDraft, Scope
from souvenir.jobs.worker import Jobs
from souvenir.memories import reembedding as reembedding
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.reembedding import Reembedding, chosen_model
from souvenir.store.admin.jobs import REEMBED
from tests.memories.reembedding.embedders import FAKE, OTHER, make_any


def opened(data_dir: Path) -> MemoryEngine:
    settings = Settings(data_dir=data_dir, embed_model="fake")
    embedder, spec = chosen_model(settings, make_any)
    return MemoryEngine.open(settings, embedder, model_spec=to_json(spec.to_json()))


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    reembedding.PASSAGES_AT_ONCE = reembedding.REMOVED_AT_ONCE = 4
    engine = opened(Path(sys.argv[1]))
    engine.warm_up()
    jobs = Jobs(
        engine, [Reembedding(engine, make_any, lambda embedder: None)], queue_max=100, retention_days=1, lane=REEMBED
    )
    for _ in range(3):
        for spec in (OTHER, FAKE):
            jobs.submit("reembed", Scope(), {"spec": spec.to_json()})
    jobs.start()
    for number in count():
        text = f"{sys.argv[2]} said this as number {number}"
        engine.add(Scope(), MemoryDraft(text, "kill"))
        os.write(1, f"{text}\n".encode())
