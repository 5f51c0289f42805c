"""Structural rules: imports between packages, sizes of files and functions, the requirement locks, the container.

Reads the sources only; nothing of the service is imported, so one broken module does not hide the others.
"""

from __future__ import annotations

import ast
import gc
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent

ARROWS: Mapping[str, str] = {
    "souvenir.core": "",
    "souvenir.index": "core",
    "souvenir.store": "core",
    "souvenir.models": "core",
    "souvenir.privacy": "core store",
    "souvenir.retrieval": "core index store",
    "souvenir.jobs": "core store",
    "souvenir.memories": "core index jobs models privacy retrieval store",
    "souvenir.transfer": "core jobs memories models store",
    "souvenir.access": "core memories store",
    "souvenir.learning": "core jobs memories models privacy store",
    "souvenir.knowledge": "core index jobs learning memories models privacy store",
    "souvenir.conversations": "core jobs knowledge learning memories models privacy retrieval store transfer",
    "souvenir.events": "core memories store",
    "souvenir.sync": "core jobs memories store",
    "souvenir.server": "access conversations core events jobs knowledge learning memories models store sync transfer",
    "souvenir.api": "access conversations core events jobs knowledge learning memories models privacy retrieval server "
    "store transfer",
    "souvenir.compat": "api conversations core events jobs knowledge memories models server store sync",
    "souvenir.mcp": "access api conversations core knowledge memories retrieval server store",
    "souvenir.application": "api compat core mcp memories server",
    "souvenir.command_line": "api application core memories server store sync transfer",
    # The front doors that the design names.
    "app": "application command_line",
    "memory_engine": "memories",
    "onnx_embedder": "models",
    "llm_extract": "learning",
    "llm_provider": "models",
}
"""The import contracts: each package and the packages of `souvenir` that it may import. Enter a new arrow here."""

# Each has a reason: not shipped; too large for the image; runs what it loads; a SQLite too old to trust (design: apsw).
FORBIDDEN = frozenset(
    {"tests", "benchmarks", "scripts", "torch", "transformers", "sentence_transformers", "spacy", "pickle", "sqlite3"}
)
# Not requirements of our own, but part of what FastAPI promises.
COMES_WITH_FASTAPI = frozenset({"anyio", "pydantic", "pydantic_core", "starlette"})

TELEMETRY_OFF = "ORT_DISABLE_TELEMETRY"

MAX_FUNCTION_LINES = 80
MAX_FILE_LINES = 500
MAX_FRONT_DOOR_LINES = 15


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def parsed(paths: Iterator[Path]) -> dict[Path, ast.Module]:
    # The trees stay until the end, and looking for garbage in them takes twice as long as parsing.
    gc.disable()
    try:
        return {path: ast.parse(path.read_text(encoding="utf-8"), str(path)) for path in sorted(paths)}
    finally:
        gc.freeze()
        gc.enable()


def shipped_paths() -> Iterator[Path]:
    yield from ROOT.glob("*.py")
    yield from (ROOT / "souvenir").rglob("*.py")


def own_paths() -> Iterator[Path]:
    yield from shipped_paths()
    for folder in ("client", "scripts", "benchmarks", "tests"):
        yield from (ROOT / folder).rglob("*.py")


@cache
def shipped() -> dict[Path, ast.Module]:
    return {path: own()[path] for path in sorted(shipped_paths())}


@cache
def own() -> dict[Path, ast.Module]:
    return parsed(own_paths())


@cache
def imports_of(path: Path) -> list[tuple[int, str]]:
    """Line and full name of everything imported: at the top, inside functions, for types only, or by name as a string.

    ``from a.b import c`` is ``a.b.c``, since c may be a module.
    """
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package.pop()
    imports: list[tuple[int, str]] = []
    for node in ast.walk(own()[path]):
        match node:
            case ast.Import(names=names):
                imports += [(node.lineno, alias.name) for alias in names]
            case ast.ImportFrom(module=module, names=names, level=level):
                start = package[: len(package) - level + 1] if level else []
                start += [module] if module else []
                imports += [(node.lineno, ".".join([*start, alias.name])) for alias in names]
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                imports.append((node.lineno, name))
    return imports


def package_of(name: str) -> str | None:
    """The package of ARROWS that a dotted name belongs to."""
    parts = name.split(".")
    package = ".".join(parts[:2]) if parts[0] == "souvenir" else parts[0]
    return package if package in ARROWS else None


def arrows() -> Iterator[tuple[str, str, str]]:
    """Importing package, imported package and place of every import between two packages."""
    for path in shipped():
        importer = package_of(module_name(path))
        for line, name in imports_of(path):
            imported = package_of(name)
            if importer is not None and imported is not None and imported != importer:
                yield importer, imported, at(path, line)


def allowed(package: str) -> set[str]:
    return {f"souvenir.{name}" for name in ARROWS[package].split()}


def at(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def test_every_shipped_module_belongs_to_a_listed_package():
    unlisted = [name for path in shipped() if (name := module_name(path)) != "souvenir" and package_of(name) is None]
    assert unlisted == [], "list the package in ARROWS"


def test_packages_import_only_what_their_contract_lists():
    violations = [
        f"{place}: {importer} must not import {imported}"
        for importer, imported, place in arrows()
        if imported not in allowed(importer)
    ]
    assert not violations, "\n".join(violations)


def test_every_listed_arrow_is_used():
    used = {(importer, imported) for importer, imported, _ in arrows()}
    unused = {(importer, imported) for importer in ARROWS for imported in allowed(importer)} - used
    assert unused == set(), "remove the arrow from ARROWS"


def test_packages_form_no_cycle():
    # Raises CycleError, which names the cycle.
    order = list(TopologicalSorter({package: allowed(package) for package in ARROWS}).static_order())
    assert set(order) == set(ARROWS)


def test_front_doors_are_small():
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in ROOT.glob("*.py")}
    assert {name: length for name, length in lengths.items() if length > MAX_FRONT_DOOR_LINES} == {}


def test_shipped_modules_import_nothing_forbidden():
    violations = [
        f"{at(path, line)}: {name}"
        for path in shipped()
        for line, name in imports_of(path)
        if name.split(".")[0] in FORBIDDEN
    ]
    assert not violations, "\n".join(violations)


def test_shipped_modules_import_only_the_standard_library_and_declared_requirements():
    ours = {module_name(path).split(".")[0] for path in shipped()}
    distributions = packages_distributions()
    declared = {
        canonicalize_name(requirement.name)
        for extra in (None, "sync")
        for requirement in requirements_of_pyproject(extra)
    }
    violations = []
    for path in shipped():
        for line, name in imports_of(path):
            top = name.split(".")[0]
            if top in sys.stdlib_module_names | ours | COMES_WITH_FASTAPI:
                continue
            if not declared & {canonicalize_name(distribution) for distribution in distributions.get(top, [])}:
                violations.append(f"{at(path, line)}: {top} is not a requirement in pyproject.toml")
    assert not violations, "\n".join(violations)


CLIENT = ROOT / "client" / "souvenir_client"
# What a part of the client may import beside the standard library, httpx and the client itself.
CLIENT_EXTRAS: Mapping[str, frozenset[str]] = {
    "adapters": frozenset(
        "agents anthropic autogen_core langchain_core langgraph llama_index pydantic pydantic_ai".split()
    ),
    "cli": frozenset({"click", "rich"}),
    "interception": frozenset({"anthropic", "openai"}),
    # The SDK, and the packages whose types its transports take and return.
    "mcp": frozenset({"mcp", "mcp_types", "httpx2", "anyio", "pydantic"}),
}


def test_the_client_imports_httpx_and_nothing_else_that_has_to_be_installed():
    violations = []
    for path in own():
        if not path.is_relative_to(CLIENT):
            continue
        extras = [CLIENT_EXTRAS.get(part, frozenset()) for part in path.relative_to(CLIENT).parts]
        allowed = frozenset({"httpx", "souvenir_client"}).union(*extras)
        violations += [
            f"{at(path, line)}: {name}"
            for line, name in imports_of(path)
            if name.split(".")[0] not in sys.stdlib_module_names | allowed
        ]
    assert not violations, "\n".join(violations)


def test_onnx_runtime_telemetry_is_disabled_before_its_import():
    """Its official builds report to their maker from the import on; the variable is the only full way out."""
    violations = []
    for path, tree in shipped().items():
        lines = [line for line, name in imports_of(path) if name.split(".")[0] == "onnxruntime"]
        if not lines:
            continue
        told = [
            node.lineno for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value == TELEMETRY_OFF
        ]
        violations += [
            f"{at(path, line)}: set os.environ[{TELEMETRY_OFF!r}] above"
            for line in lines
            if not any(earlier < line for earlier in told)
        ]
    assert not violations, "\n".join(violations)


def test_no_function_is_longer_than_the_house_allows():
    violations = [
        f"{at(path, node.lineno)}: {node.name} has {length} lines"
        for path, tree in own().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > MAX_FUNCTION_LINES
    ]
    assert not violations, "\n".join(violations)


def test_no_file_is_longer_than_the_house_allows():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in own()}
    assert {path: length for path, length in lengths.items() if length > MAX_FILE_LINES} == {}


def requirements_of_pyproject(group: str | None = None) -> list[Requirement]:
    """The run-time requirements, or those of an extra or a dependency group."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    further = {**content["project"]["optional-dependencies"], **content["dependency-groups"]}
    lines = further[group] if group else content["project"]["dependencies"]
    return [Requirement(line) for line in lines]


def pins_of(lock: str) -> dict[str, set[str]]:
    """The versions that a lock pins with at least one hash; more than one where Python versions need different ones."""
    pinned = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)[^\n]*\\\n    --hash=sha256:[0-9a-f]{64}", re.MULTILINE)
    pins: dict[str, set[str]] = {}
    for name, version in pinned.findall((ROOT / lock).read_text(encoding="utf-8")):
        pins.setdefault(canonicalize_name(name), set()).add(version)
    return pins


@pytest.mark.parametrize(
    ("lock", "group"),
    [
        ("requirements.txt", None),
        ("requirements-otel.txt", None),
        ("requirements-otel.txt", "otel"),
        ("requirements-sync.txt", None),
        ("requirements-sync.txt", "sync"),
        ("requirements-dev.txt", None),
        ("requirements-dev.txt", "dev"),
        ("requirements-slow.txt", "slow"),
    ],
)
def test_every_requirement_is_pinned_with_a_hash_at_a_version_that_it_allows(lock, group):
    pins = pins_of(lock)
    unmet = [
        str(requirement)
        for requirement in requirements_of_pyproject(group)
        if not (versions := pins.get(canonicalize_name(requirement.name)))
        or not all(requirement.specifier.contains(version) for version in versions)
    ]
    assert unmet == [], "make lock"


@pytest.mark.parametrize("lock", ["requirements.txt", "requirements-otel.txt", "requirements-sync.txt"])
def test_tests_run_with_the_versions_that_the_image_holds(lock):
    image, development = pins_of(lock), pins_of("requirements-dev.txt")
    assert {name: development.get(name) for name in image} == image


@pytest.mark.parametrize(("file", "installers"), [("Makefile", 2), ("Dockerfile", 1)])
def test_locked_packages_are_installed_as_wheels_with_hashes(file, installers):
    text = (ROOT / file).read_text(encoding="utf-8").replace("\\\n", " ")
    installs = [line for line in text.splitlines() if re.search(r"\bpip\b.* install ", line)]
    assert len(installs) == installers
    assert all("--only-binary :all:" in line and "--require-hashes" in line for line in installs)


@pytest.mark.parametrize(
    "lock",
    [
        "requirements.txt",
        "requirements-otel.txt",
        "requirements-sync.txt",
        "requirements-dev.txt",
        "requirements-slow.txt",
    ],
)
def test_a_lock_names_no_registry_and_pins_everything_with_hashes(lock):
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert "://" not in text
    assert re.findall(r"^--?[a-z-]+", text, re.MULTILINE) == [], "options such as --index-url"
    named = {canonicalize_name(name) for name in re.findall(r"^([A-Za-z0-9._-]+)", text, re.MULTILINE)}
    assert named == set(pins_of(lock))


def code_in(document: str) -> Iterator[str]:
    """Fenced and indented lines, and what stands in backticks; in prose, people make decisions."""
    fenced = False
    for line in document.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line.strip().removeprefix("$ ")
        else:
            yield from re.findall(r"`([^`]+)`", line)


def test_documents_name_only_make_targets_that_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    unknown = [
        f"{document.relative_to(ROOT)}: {code}"
        for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        for code in code_in(document.read_text(encoding="utf-8"))
        if (command := re.match(r"make ([a-z-]+)", code)) and command[1] not in targets
    ]
    assert not unknown, "\n".join(unknown)


def test_the_example_of_settings_names_only_settings_that_exist():
    fields = {
        node.target.id.upper()
        for name in (
            "settings.py",
            "database_settings.py",
            "load_settings.py",
            "network_settings.py",
            "sync_settings.py",
        )
        for node in ast.walk(shipped()[ROOT / "souvenir" / "core" / name])
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    compose = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "docker-compose.yml").read_text(encoding="utf-8")))
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    named = set(re.findall(r"^#?([A-Z_]+)=", example, re.MULTILINE))
    assert named - fields - compose == set()


def test_the_container_has_no_root_user_no_capabilities_and_no_writable_root():
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]["souvenir"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service.keys() & {"cap_add", "privileged", "user", "network_mode", "pid", "ipc", "devices"} == set()
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8").rpartition("\nFROM ")[2]
    assert re.findall(r"^USER (.+)$", image, re.MULTILINE) == ["10001:10001"]
