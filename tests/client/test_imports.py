"""The package is cheap to import: unused modules are not loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import souvenir_client
from souvenir_client import records

CLIENT = Path(__file__).resolve().parents[2] / "client"


def loaded_after(statement: str) -> set[str]:
    code = f"import sys; sys.path.insert(0, {str(CLIENT)!r}); {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_no_http_client():
    assert "httpx" not in loaded_after("import souvenir_client")


def test_the_client_does_not_load_its_asynchronous_twin():
    loaded = loaded_after("from souvenir_client import Souvenir")
    assert "souvenir_client.sync.client" in loaded
    assert "souvenir_client.aio.client" not in loaded


def test_every_name_is_listed_before_it_is_used():
    assert {*souvenir_client.__all__, "__version__"} <= set(dir(souvenir_client))


def test_an_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = souvenir_client.nothing  # type: ignore[attr-defined]


def test_only_used_records_are_loaded():
    loaded = loaded_after("from souvenir_client.sync.api.context import ContextOperations")
    assert "souvenir_client.records.context" in loaded
    assert "souvenir_client.records.tiers" not in loaded


def test_every_record_is_found_by_its_name():
    assert [name for name in records.__all__ if getattr(records, name).__name__ != name] == []
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = records.Nothing  # type: ignore[attr-defined]
