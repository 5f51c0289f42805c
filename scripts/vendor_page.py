"""Copies the modules and styles that the page loads from node_modules to souvenir/page/vendor, with a manifest.

python -m scripts.vendor_page

A browser cannot resolve the name of a package, and an import map would be an inline script, which the page's Content
Security Policy forbids: names in import statements become paths. The manifest has the version, licence and SHA-256 of
each file, `LICENCES.txt` the texts. The `.d.ts` next to a module gives the type check the package's own declarations.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NODE_MODULES = ROOT / "node_modules"
VENDOR = ROOT / "souvenir" / "page" / "vendor"

MODULES = {
    "preact": ("preact", "dist/preact.module.js"),
    "preact/hooks": ("preact", "hooks/dist/hooks.module.js"),
    "@preact/signals-core": ("@preact/signals-core", "dist/signals-core.module.js"),
    "@preact/signals": ("@preact/signals", "dist/signals.module.js"),
    "htm": ("htm", "dist/htm.module.js"),
    "cytoscape": ("cytoscape", "dist/cytoscape.esm.min.mjs"),
    "uplot": ("uplot", "dist/uPlot.esm.js"),
}
"""The package of each imported name, and its module there."""

STYLES = {"uplot": ("uplot", "dist/uPlot.min.css")}

DEFAULT_EXPORTS = {"htm", "cytoscape", "uplot"}

_IMPORTED = re.compile(rf'(\bfrom ?)"({"|".join(map(re.escape, MODULES))})"')
_SOURCE_MAP = re.compile(r"\n?//# sourceMappingURL=.*\s*$")


def vendored() -> dict[str, str]:
    """The files of the folder by name.

    :raises FileNotFoundError: If the packages of package.json are not installed.
    """
    files: dict[str, str] = {}
    manifest = {}
    for name, (package, path) in MODULES.items():
        source = (NODE_MODULES / package / path).read_text(encoding="utf-8")
        content = _IMPORTED.sub(lambda found: f'{found[1]}"./{file_of(found[2])}"', _SOURCE_MAP.sub("\n", source))
        files[file_of(name)] = content
        files[file_of(name).replace(".js", ".d.ts")] = _declarations(name)
        manifest[file_of(name)] = _origin(package, path, content)
    for name, (package, path) in STYLES.items():
        content = (NODE_MODULES / package / path).read_text(encoding="utf-8")
        files[f"{name}.css"] = content
        manifest[f"{name}.css"] = _origin(package, path, content)
    files["manifest.json"] = json.dumps(manifest, indent=2) + "\n"
    files["LICENCES.txt"] = "\n".join(
        f"{package}\n\n{(NODE_MODULES / package / 'LICENSE').read_text(encoding='utf-8').strip()}\n"
        for package in dict.fromkeys(package for package, _ in MODULES.values())
    )
    return files


def _origin(package: str, path: str, content: str) -> dict[str, str]:
    described = json.loads((NODE_MODULES / package / "package.json").read_text(encoding="utf-8"))
    return {
        "package": package,
        "version": described["version"],
        "licence": described["license"],
        "module": path,
        "sha256": hashlib.sha256(content.encode()).hexdigest(),
    }


def file_of(name: str) -> str:
    return f"{name.removeprefix('@').replace('/', '-')}.js"


def _declarations(name: str) -> str:
    exported = "{ default }" if name in DEFAULT_EXPORTS else "*"
    return f'export {exported} from "{name}";\n'


if __name__ == "__main__":
    VENDOR.mkdir(parents=True, exist_ok=True)
    for name, content in vendored().items():
        (VENDOR / name).write_text(content, encoding="utf-8")
