"""Print figures of the structure of a checkout: its size, its names, and what requests pass.

    python -m scripts.measure_structure            this checkout
    python -m scripts.measure_structure ROOT       another one; needs an environment with its requirements
    python -m scripts.measure_structure --paths    also the files of each request, in the order of their first call

The static figures come from the syntax trees; the requests are traced by `scripts/request_paths.py`, which says how it
counts. Nothing here depends on module names below `souvenir/`, so checkouts with different layouts can be compared. The
package is ROOT/souvenir and ROOT/*.py.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import table

FOLDERS = ("souvenir", "client", "tests", "benchmarks", "scripts")
ROOT_FILES = "*.py"
SHORT_LINES = 60
COLLISIONS_SHOWN = 10
TRACER = Path(__file__).with_name("request_paths.py")


@dataclass(frozen=True, slots=True)
class Size:
    files: int
    lines: int
    short_files: int
    """Below 60 lines."""


@dataclass(frozen=True, slots=True)
class AnyUse:
    annotations: int
    """Number of parameters, variables and results with `Any` in them."""
    rows: int
    """Number of those that are named `row` or `rows`."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The static figures.

    `used_once_in_file` counts private functions and methods whose name is defined once in its file and used there in
    exactly one place; `used_once` those of which this holds for the whole package.
    """

    sizes: Mapping[str, Size]
    private_functions: int
    used_once_in_file: int
    used_once: int
    collisions: Mapping[str, int]
    """Class names defined in two files or more, most files first, with the number of files."""
    any_uses: Mapping[str, AnyUse]
    """By package; only those that use it."""


def structure_of(root: Path) -> Structure:
    """:raises SyntaxError: If a file of the package is no Python."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8"), str(path)) for path in _package(root)}
    defined, named = Counter[str](), Counter[str]()
    used_once_in_file = 0
    files_of: dict[str, int] = Counter()
    any_uses: dict[str, list[AnyUse]] = defaultdict(list)
    for path, tree in trees.items():
        own, names = Counter(_private_functions(tree)), Counter(_names(tree))
        used_once_in_file += sum(count == 1 and names[name] == 1 for name, count in own.items())
        defined += own
        named += names
        for name in {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}:
            files_of[name] += 1
        any_uses[_package_name(root, path)].append(_any_use(tree))
    totals = {
        package: AnyUse(sum(one.annotations for one in uses), sum(one.rows for one in uses))
        for package, uses in sorted(any_uses.items())
    }
    return Structure(
        sizes=_sizes(root),
        private_functions=defined.total(),
        used_once_in_file=used_once_in_file,
        used_once=sum(count == 1 and named[name] == 1 for name, count in defined.items()),
        collisions={name: count for name, count in Counter(files_of).most_common() if count > 1},
        any_uses={package: use for package, use in totals.items() if use.annotations},
    )


def _package(root: Path) -> Iterator[Path]:
    yield from sorted(root.glob(ROOT_FILES))
    yield from sorted((root / "souvenir").rglob("*.py"))


def _package_name(root: Path, path: Path) -> str:
    """The folder below `souvenir` that holds a file; `souvenir` for its own files, and for those of the root `*.py`."""
    folders = path.relative_to(root).parts[:-1]
    return folders[min(1, len(folders) - 1)] if folders else ROOT_FILES


def _sizes(root: Path) -> dict[str, Size]:
    paths = {folder: list((root / folder).rglob("*.py")) for folder in FOLDERS}
    paths[ROOT_FILES] = list(root.glob(ROOT_FILES))
    sizes = {}
    for folder, files in paths.items():
        lines = [len(path.read_text(encoding="utf-8").splitlines()) for path in files]
        sizes[folder] = Size(len(files), sum(lines), sum(count < SHORT_LINES for count in lines))
    return sizes


def _private_functions(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name = node.name
            if name.startswith("_") and not name.endswith("__"):
                yield name


def _names(tree: ast.Module) -> Iterator[str]:
    """Every place where something is named, other than its definition."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.ImportFrom(names=imported):
                yield from (one.name for one in imported)


def _any_use(tree: ast.Module) -> AnyUse:
    annotations = rows = 0
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name, annotation=annotation):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                pass
            case ast.AnnAssign(target=ast.Attribute(attr=name), annotation=annotation):
                pass
            case ast.FunctionDef(returns=annotation) | ast.AsyncFunctionDef(returns=annotation):
                name = ""
            case _:
                continue
        if annotation is not None and any(
            isinstance(part, ast.Name) and part.id == "Any" for part in ast.walk(annotation)
        ):
            annotations += 1
            rows += name in {"row", "rows"}
    return AnyUse(annotations, rows)


def traced(root: Path) -> Iterator[dict[str, Any]]:
    """Return the output of `scripts/request_paths.py` for a checkout; only code of that checkout is imported.

    :raises subprocess.CalledProcessError: If a request fails, or the application does not start.
    """
    with tempfile.TemporaryDirectory(prefix="souvenir-trace-") as folder:
        saved = Path(folder) / "config.json"
        saved.write_text("{}", encoding="utf-8")
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "PYTHONPATH": str(root),
            "PYTHONDONTWRITEBYTECODE": "1",
            "ORT_DISABLE_TELEMETRY": "1",
            "CONFIG_FILE": str(saved),
            "DATA_DIR": str(Path(folder) / "data"),
            "LOG_LEVEL": "ERROR",
            "EXTRACT_FALLBACK_ADD": "true",
        }
        command = [sys.executable, str(TRACER), str(root)]
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    yield from map(json.loads, done.stdout.splitlines())


def print_structure(structure: Structure) -> None:
    sizes = [
        (name, *(f"{number:,}" for number in (size.files, size.lines, size.short_files)))
        for name, size in structure.sizes.items()
    ]
    print(table(("", "files", "lines", f"files under {SHORT_LINES} lines"), sizes))
    package = [structure.sizes[name] for name in ("souvenir", ROOT_FILES)]
    collisions = structure.collisions
    largest = ", ".join(f"{name} {count}" for name, count in list(collisions.items())[:COLLISIONS_SHOWN])
    figures = {
        "files": sum(size.files for size in package),
        "lines": sum(size.lines for size in package),
        f"files under {SHORT_LINES} lines": sum(size.short_files for size in package),
        "private functions and methods": structure.private_functions,
        "of these used in exactly one place of their file": structure.used_once_in_file,
        "of these used in exactly one place of the package": structure.used_once,
        "class names in two files or more": len(collisions),
        "annotations with Any": sum(use.annotations for use in structure.any_uses.values()),
        "rows typed Any": sum(use.rows for use in structure.any_uses.values()),
    }
    print("\n" + table((f"souvenir and {ROOT_FILES}", ""), [(name, f"{count:,}") for name, count in figures.items()]))
    print(f"\nLargest collisions of class names: {largest}")
    uses = [(name, str(use.annotations), str(use.rows)) for name, use in structure.any_uses.items()]
    print("\n" + table(("package", "annotations with Any", "rows typed Any"), uses))


def print_requests(requests: list[dict[str, Any]], *, with_paths: bool) -> None:
    keys = ("files", "functions", "calls")
    header = ["request", *keys, *(f"{key} before the route" for key in keys), "calls, all rounds"]
    rows = []
    for one in requests:
        fewest, most = one["spread"]
        rows.append([one["request"], *(f"{one[key]:,}" for key in keys), *(f"{one[f'{key}_before']}" for key in keys)])
        rows[-1].append(f"{fewest:,} to {most:,}")
    print("\n" + table(header, rows))
    for one in requests if with_paths else ():
        print(f"\n{one['request']}")
        print("\n".join(f"    {path}" for path in one["paths"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=Path, default=TRACER.parent.parent, help="a checkout")
    parser.add_argument("--paths", action="store_true", help="also print the files of each request")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    print_structure(structure_of(root))
    print_requests(list(traced(root)), with_paths=arguments.paths)
    return 0


if __name__ == "__main__":
    sys.exit(main())
