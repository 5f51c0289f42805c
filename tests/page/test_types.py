"""The types of the API that the page is checked with."""

from __future__ import annotations

import pytest

from scripts.build_page_types import TYPES, types
from tests.page.requirements import HAS_NODE_MODULES, INSTALL_NODE_MODULES


@pytest.mark.skipif(not HAS_NODE_MODULES, reason=INSTALL_NODE_MODULES)
def test_the_types_of_the_page_are_those_of_the_api():
    assert TYPES.read_text(encoding="utf-8") == types(), "python -m scripts.build_page_types"
