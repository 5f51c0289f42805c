"""Copies the modules that the page imports from node_modules to souvenir/page/vendor, with a manifest.

python -m scripts.vendor_page

A browser cannot resolve the name of a package, and an import map would be an inline script, which the page's Content
Security Policy forbids: names in import statements become paths. The manifest has the version, licence and SHA-256 of
each file. The `.d.ts` next to a module gives the type check the package's own declarations.
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
}
"""The package of each imported name, and its module there."""

_IMPORTED = re.compile(r'(\bfrom ?)"([^".][^"]*)"')
_SOURCE_MAP = re.compile(r"\n?//# sourceMappingURL=.*\s*$")


def vendored() -> dict[str, str]:
    """The files of the folder by name.

    :raises FileNotFoundError: If the packages of package.json are not installed.
    """
    files: dict[str, str] = {}
    manifest = {}
    for name, (package, path) in MODULES.items():
        described = json.loads((NODE_MODULES / package / "package.json").read_text(encoding="utf-8"))
        source = (NODE_MODULES / package / path).read_text(encoding="utf-8")
        content = _IMPORTED.sub(lambda found: f'{found[1]}"./{file_of(found[2])}"', _SOURCE_MAP.sub("\n", source))
        files[file_of(name)] = content
        files[file_of(name).replace(".js", ".d.ts")] = _declarations(name)
        manifest[file_of(name)] = {
            "package": package,
            "version": described["version"],
            "licence": described["license"],
            "module": path,
            "sha256": hashlib.sha256(content.encode()).hexdigest(),
        }
    files["manifest.json"] = json.dumps(manifest, indent=2) + "\n"
    return files


def file_of(name: str) -> str:
    return f"{name.removeprefix('@').replace('/', '-')}.js"


def _declarations(name: str) -> str:
    default = f'export {{ default }} from "{name}";\n' if name == "htm" else ""
    return f'export * from "{name}";\n{default}'


if __name__ == "__main__":
    VENDOR.mkdir(parents=True, exist_ok=True)
    for name, content in vendored().items():
        (VENDOR / name).write_text(content, encoding="utf-8")
