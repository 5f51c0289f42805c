"""The proxy reads and writes requests exactly as the client's `learning()` does."""

from __future__ import annotations

from scripts.build_proxy_wires import WIRES, copy_of, sources


def test_the_wires_are_those_of_the_client():
    """Run `python -m scripts.build_proxy_wires` after a change of the client's modules."""
    found = {path: path.read_text(encoding="utf-8") for path in WIRES.glob("*.py")}
    assert found == {path: copy_of(source) for path, source in sources().items()}
