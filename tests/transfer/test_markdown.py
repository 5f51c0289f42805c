"""Splitting a Markdown file into sections."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from souvenir.transfer.markdown import MAX_BLOCK_CHARS, MAX_KEY_CHARS, MAX_PART_CHARS, sections


def texts(document: str) -> list[str]:
    return [section.text for section in sections(document)]


def keys(document: str) -> list[str]:
    return [section.key for section in sections(document)]


def test_a_section_is_the_text_under_a_heading_with_its_path():
    document = "intro\n\n# Deploys\n\nOn Fridays.\n\n## Roll back\n\nRun it.\n\n# Team\nAnn and Ben."
    assert texts(document) == [
        "intro",
        "Deploys\n\nOn Fridays.",
        "Deploys > Roll back\n\nRun it.",
        "Team\n\nAnn and Ben.",
    ]
    assert keys(document) == ["#1", "Deploys#1", "Deploys > Roll back#1", "Team#1"]


def test_headings_alone_make_no_section_and_levels_may_be_skipped():
    assert texts("# A\n\n### C\n\nx\n\n## B\n\ny\n\n---\n\n# Empty\n") == ["A > C\n\nx", "A > B\n\ny"]


def test_headings_of_equal_paths_are_distinguished_by_order():
    assert keys("# A\n\nx\n\n# A\n\ny\n\n# A > B\n\nz\n\n# A\n\n## B\n\nv") == ["A#1", "A#2", "A > B#1", "A > B#2"]


def test_front_matter_is_left_out_and_a_line_is_no_front_matter():
    assert texts("---\ntitle: x\n---\n\nbody") == ["body"]
    assert texts("\ufeffbody".removeprefix("\ufeff")) == ["body"]
    assert texts("before\n\n---\n\nafter") == ["before\n\nafter"]


def test_headings_in_code_and_quotations_are_ignored():
    fence = "```sh\n# not a heading\n\nmake\n```"
    assert texts(f"# A\n\n{fence}\n\n> # quoted\n\n- # in a list\n") == [f"A\n\n{fence}\n\n> # quoted\n\n- # in a list"]


def test_a_long_section_is_split_between_its_blocks_and_never_inside_of_code():
    fence = "```\n" + "\n\n".join(f"line {number}" for number in range(600)) + "\n```"
    document = "# A\n\n" + "\n\n".join(["word " * 200] * 12) + f"\n\n{fence}\n\nafter"
    parts = list(sections(document))
    assert len(parts) > 3
    assert [part.key for part in parts] == [f"A#{number}" for number in range(1, len(parts) + 1)]
    assert [fence in part.content for part in parts].count(True) == 1
    assert all(len(part.content) <= MAX_PART_CHARS or part.content == fence for part in parts)


def test_line_ends_of_other_systems_and_nul_are_read():
    assert texts("# A\r\n\r\nx\0y\r\nz\r") == ["A\n\nxy\nz"]


@given(st.text(st.sampled_from("# \n`-a>*\t1.|é\r~"), max_size=400), st.integers(0, 2))
def test_any_document_makes_memories_that_can_be_stored(document: str, blow_up: int):
    found = list(sections(document * 60**blow_up if len(document) < 20 else document))
    assert len({section.key for section in found}) == len(found)
    for section in found:
        assert 1 <= len(section.text) <= 50_000
        assert section.content.strip()
        assert 1 <= len(section.key) <= MAX_KEY_CHARS


def test_a_block_that_no_memory_can_hold_is_cut_between_lines():
    fence = "```\n" + "\n".join("x" * 99 for _ in range(1_000)) + "\n```"
    parts = texts(fence + "\n\n" + "y" * 90_000)
    assert max(map(len, parts)) <= MAX_BLOCK_CHARS
    assert "\n".join(parts[:3]).count("x") == 99_000
    assert "".join(parts[3:]) == "y" * 90_000


def test_headings_of_any_length_have_a_key():
    long = "# " + "h" * 3_000
    [section] = sections(f"{long}\n\n## {'i' * 300}\n\n### {'j' * 300}\n\ntext")
    assert len(section.key) < MAX_KEY_CHARS
