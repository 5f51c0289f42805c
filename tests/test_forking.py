"""The programs that tests fork: they import nothing that the process did not which they are forked from."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.forking import PipedPython, completed

LATE = "import sys\nfrom tests.started_once import KNOWN\nprint(*sorted(set(sys.modules) - KNOWN))\n"


def test_a_fork_imports_nothing_before_its_program_begins(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(LATE, encoding="utf-8")
    done = completed([str(program)], os.environ)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [], "")


MADE_ONCE = """\
from souvenir.api import page
from souvenir.store.sqlite import schema
print(schema._new_database.cache_info().currsize, page.digest.cache_info().currsize)
"""


def test_a_fork_has_a_migrated_database_and_the_compressed_page_when_it_begins(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(MADE_ONCE, encoding="utf-8")
    assert completed([str(program)], os.environ).stdout.split() == ["1", "1"]


def test_a_fork_with_pipes_reads_writes_and_ends_as_a_process_does(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text("import os, sys\nprint(open(0).read(), os.getcwd())\nsys.exit('a reason')\n", encoding="utf-8")
    process = PipedPython([str(program)], os.environ, tmp_path)
    with process.stdin, process.stdout, process.stderr:
        process.stdin.write("ä".encode())
        process.stdin.close()
        assert process.stdout.read().decode(sys.getfilesystemencoding()) == f"ä {tmp_path}\n"
        assert process.stderr.read() == b"a reason\n"
        assert process.wait(60) == 1


def test_a_killed_fork_with_pipes_says_so(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text("print(open(0).read())\n", encoding="utf-8")
    process = PipedPython([str(program)], os.environ, tmp_path)
    with process.stdin, process.stdout, process.stderr:
        assert process.poll() is None
        process.kill()
        assert process.wait(60) == -9
        assert process.stdout.read() == b""
