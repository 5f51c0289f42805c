"""Write the software bill of materials of the service, as CycloneDX JSON: build/souvenir.cdx.json.

    python -m scripts.build_sbom

It lists what requirements.txt pins, with the hashes of all files of each release that pip accepts and with the
dependency graph, and the embedding model. It is made from files of the checkout only, and the same checkout gives the
same bytes: there is no serial number, and a timestamp only if SOURCE_DATE_EPOCH gives one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType, Pedigree
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "build" / "souvenir.cdx.json"
MODEL = "models/all-MiniLM-L6-v2"
MODEL_LICENSE = "Apache-2.0"  # its NOTICE


@dataclass(frozen=True, slots=True)
class Pin:
    """An entry of the lock.

    :param required_by: Names of packages, and that of the project for its own requirements.
    """

    name: str
    version: str
    marker: str | None
    sha256: tuple[str, ...]
    required_by: frozenset[str]

    @property
    def purl(self) -> PackageURL:
        return PackageURL("pypi", name=self.name, version=self.version)


def pins_of(lock: str) -> Iterator[Pin]:
    entries = re.split(r"^(?=\w)", lock, flags=re.MULTILINE)[1:]
    for entry in entries:
        requirement = Requirement(entry.partition("\\")[0])
        [specifier] = requirement.specifier
        _, _, comment = entry.partition("# via")
        yield Pin(
            name=requirement.name,
            version=specifier.version,
            marker=str(requirement.marker) if requirement.marker else None,
            sha256=tuple(re.findall(r"--hash=sha256:(\w+)", entry)),
            required_by=frozenset(re.findall(r"^[\s#]*([\w.-]+)", comment, flags=re.MULTILINE)),
        )


def library(pin: Pin) -> Component:
    return Component(
        type=ComponentType.LIBRARY,
        name=pin.name,
        version=pin.version,
        bom_ref=pin.purl.to_string(),
        purl=pin.purl,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in pin.sha256],
        properties=[Property(name="python:environment-marker", value=pin.marker)] if pin.marker else [],
    )


def model(folder: Path) -> Component:
    """The ONNX file, with the weights that it was built from as its ancestor."""
    source = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["source"]
    licenses = [LicenseExpression(MODEL_LICENSE)]
    weights = Component(
        type=ComponentType.MACHINE_LEARNING_MODEL,
        name=source["model"],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=source["weights_sha256"])],
        licenses=licenses,
    )
    return Component(
        type=ComponentType.MACHINE_LEARNING_MODEL,
        name=folder.name,
        bom_ref=folder.name,
        description="Sentence embeddings; 8-bit weights in an ONNX graph",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sha256_of(folder / "model.onnx"))],
        licenses=licenses,
        pedigree=Pedigree(ancestors=[weights]),
    )


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def bill(root: Path = ROOT) -> str:
    """The bill of materials of a checkout."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = list(pins_of((root / "requirements.txt").read_text(encoding="utf-8")))
    libraries = {pin: library(pin) for pin in pins}
    service = Component(
        type=ComponentType.APPLICATION,
        name=project["name"],
        version=project["version"],
        bom_ref=project["name"],
        description=project["description"],
        licenses=[LicenseExpression(project["license"])],
    )
    embedding = model(root / MODEL)
    bom = Bom(components=[*libraries.values(), embedding])
    bom.metadata.component = service

    def required_by(name: str) -> list[Component]:
        return [component for pin, component in libraries.items() if name in pin.required_by]

    bom.register_dependency(service, [*required_by(project["name"]), embedding])
    for pin, component in libraries.items():
        bom.register_dependency(component, required_by(pin.name))
    # The library gives every bill a random number and the time.
    bom.serial_number = None  # type: ignore[assignment]
    bom.metadata.timestamp = build_time()  # type: ignore[assignment]
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def build_time() -> datetime | None:
    """The time that reproducible builds state by convention."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.fromtimestamp(int(seconds), UTC) if seconds else None


def main() -> None:
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(bill(), encoding="utf-8")
    print(OUTPUT.relative_to(ROOT))


if __name__ == "__main__":
    main()
