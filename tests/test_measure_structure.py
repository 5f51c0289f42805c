"""The static figures of a small made-up checkout, counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.measure_structure import AnyUse, Size, Structure, structure_of

FILES = {
    "app.py": "from souvenir.store.rows import _shared\n",
    "souvenir/__init__.py": "",
    "souvenir/settings.py": "x: Any = 1\n" + "\n" * 59,
    "souvenir/store/rows.py": """\
class Turn:
    limit: Any

    def _once(self, row: Any, *rows: list[Any]) -> dict[str, Any]:
        return self._twice()

    def _twice(self) -> None:
        self._once(1)
        self._twice()

    def __len__(self) -> int:
        return 0


def _shared() -> None: ...


def _unused() -> None: ...
""",
    "souvenir/store/deep/names.py": "class Turn: ...\n\n\nasync def _same(): ...\n\n\n_same\n",
    "souvenir/api/names.py": "class Step: ...\n\n\ndef _same(): ...\n\n\nprint(_same)\n",
    "client/sdk.py": "class Step: ...\n",
    "tests/test_it.py": "def _once(): ...\n",
}


@pytest.fixture
def structure(tmp_path: Path) -> Structure:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return structure_of(tmp_path)


def test_files_lines_and_short_files_are_counted_by_folder(structure: Structure):
    assert structure.sizes == {
        "souvenir": Size(5, 0 + 60 + 18 + 7 + 7, 4),
        "client": Size(1, 1, 1),
        "tests": Size(1, 1, 1),
        "benchmarks": Size(0, 0, 0),
        "scripts": Size(0, 0, 0),
        "*.py": Size(1, 1, 1),
    }


def test_private_functions_named_in_one_other_place_are_counted_by_file_and_by_package(structure: Structure):
    # _once, _twice, _shared, _unused and _same in two files; __len__ is not private.
    assert structure.private_functions == 6
    # _once and both _same.
    assert structure.used_once_in_file == 3
    # _once, and _shared, which another file imports; tests and client are other packages.
    assert structure.used_once == 2


def test_class_names_in_two_files_of_the_package_collide(structure: Structure):
    assert structure.collisions == {"Turn": 2}


def test_annotations_with_any_are_counted_by_package(structure: Structure):
    # limit, row, *rows and the result of _once.
    assert structure.any_uses == {"souvenir": AnyUse(1, 0), "store": AnyUse(4, 2)}
