"""What all tests share: they see no setting of the machine that they run on, and no network.

Fixtures of one subject stand in the folder or the file of that subject.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings as hypothesis_settings

from scripts.build_config_docs import names_of
from souvenir.settings import Settings

# Timing on a shared machine says nothing about the code, so no example has a deadline.
hypothesis_settings.register_profile("souvenir", deadline=None)
hypothesis_settings.load_profile("souvenir")


@pytest.fixture(scope="session", autouse=True)
def _hermetic_settings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for field_name, field in Settings.model_fields.items():
            for name in names_of(field_name, field):
                patch.delenv(name, raising=False)
        patch.setitem(Settings.model_config, "env_file", None)
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield
