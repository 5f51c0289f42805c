"""The programs that tests of the page need on the machine; tests that miss one are skipped."""

from __future__ import annotations

import shutil
from pathlib import Path

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
INSTALL_CHROMIUM = "tests/page is skipped: apt-get install --no-install-recommends chromium-headless-shell"

NODE_MODULES = Path(__file__).resolve().parent.parent.parent / "node_modules"
HAS_NODE_MODULES = shutil.which("node") is not None and NODE_MODULES.is_dir()
INSTALL_NODE_MODULES = "There is no Node.js or no node_modules: install nodejs and npm, then run make setup"
