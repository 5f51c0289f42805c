"""Markdown: one memory per short file, and one per section of a long file."""

from __future__ import annotations

import pytest

from souvenir_client.importing import Kind, detect, markdown
from tests.client.importing.files import records, skipped, usable

LONG = "This sentence is here to fill the file. " * 60


@pytest.fixture
def folder(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()

    def write(name, content):
        file = notes / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return notes

    return write


def test_each_short_file_is_one_memory_under_its_path(folder):
    folder("a.md", "# Alpha\n\nFirst letter.")
    folder("deep/er/b.MD", "Second letter.")
    folder(".obsidian/workspace.md", "not a note")
    folder("picture.png", b"\x89PNG")
    top = folder(".hidden.md", "not a note either")
    assert detect(top) is Kind.MARKDOWN
    assert [(one.source, one.key, one.text) for one in usable(records(Kind.MARKDOWN, top))] == [
        ("notes/a", "#1", "# Alpha\n\nFirst letter."),
        ("notes/deep/er/b", "#1", "Second letter."),
    ]
    assert [one.source for one in usable(records(Kind.MARKDOWN, top, "me/wiki"))] == ["me/wiki/a", "me/wiki/deep/er/b"]


def test_the_source_of_a_single_file_is_its_name(folder):
    file = folder("todo.md", "Buy milk.") / "todo.md"
    assert detect(file) is Kind.MARKDOWN
    assert [one.source for one in usable(records(Kind.MARKDOWN, file))] == ["todo"]
    assert [one.source for one in usable(records(Kind.MARKDOWN, file, "me"))] == ["me/todo"]


def test_simple_front_matter_becomes_metadata_and_other_lines_stay_text(folder):
    top = folder(
        "a.md",
        '---\ntitle: "Plan: B"\ndate: 2024-03-01\ntags:\n  - x\npinned: true\nlist: [1, 2]\n---\nDo it.\n',
    )
    [memory] = usable(records(Kind.MARKDOWN, top))
    assert memory.metadata == {
        "front_matter": {"title": "Plan: B", "date": "2024-03-01", "pinned": "true"},
        "origin_class": "document",
    }
    assert memory.created_at == "2024-03-01T00:00:00.000000+00:00"
    assert memory.text == "tags:\n  - x\nlist: [1, 2]\n\nDo it."


@pytest.mark.parametrize("text", ["---\ntitle: never closed\n\nText.", "Text.\n\n---\n\nkey: value\n\n---"])
def test_text_similar_to_front_matter_stays_text(text):
    assert markdown.front_matter(text) == ({}, text)


def test_a_long_file_is_split_at_headings_with_their_paths(folder):
    code = f"```sh\n# no heading\n\n{LONG}\n```"
    text = f"Intro.\n\n# Top\n\n{LONG}\n\n## Below #\n\nDetails.\n\n{code}\n\n# Empty\n\n# End\nBye."
    found = usable(records(Kind.MARKDOWN, folder("a.md", text)))
    assert [(one.key, one.metadata.get("heading")) for one in found] == [
        ("#1", None),
        ("Top#1", "Top"),
        ("Top > Below#1", "Top > Below"),
        ("End#1", "End"),
    ]
    assert found[2].text.startswith("Top > Below\n\nDetails.\n\n```sh\n# no heading\n\n")
    assert found[3].text == "End\n\nBye."


def test_a_long_section_is_split_between_blocks_and_a_long_block_between_lines(folder):
    paragraphs = "\n\n".join(f"Paragraph {number}. {LONG}" for number in range(3))
    code = "```\n" + "\n".join(f"line {number}" for number in range(12_000)) + "\n```"
    found = usable(records(Kind.MARKDOWN, folder("a.md", f"# One\n\n{paragraphs}\n\n{code}")))
    assert [one.key for one in found[:3]] == ["#1", "One#2", "One#3"]
    assert all(len(one.text) <= 50_000 for one in found)
    said = "\n".join(one.text for one in found)
    assert all(f"Paragraph {number}." in said for number in range(3))
    assert all(f"line {number}\n" in said for number in (0, 5_999, 11_999))


def test_a_file_that_grows_long_keeps_its_memory(folder):
    [before] = usable(records(Kind.MARKDOWN, folder("a.md", "# Top\n\nShort.")))
    after = usable(records(Kind.MARKDOWN, folder("a.md", f"# Top\n\nShort.\n\n# More\n\n{LONG}\n\n{LONG}")))
    assert (before.source, before.key) == (after[0].source, after[0].key)
    assert after[0].text == "Top\n\nShort."


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(folder):
    unix = f"# Top\n\nText é.\n\n## Low\n\n{LONG}\n\n{LONG}\n"
    plain = usable(records(Kind.MARKDOWN, folder("a.md", unix)))
    windows = usable(records(Kind.MARKDOWN, folder("a.md", b"\xef\xbb\xbf" + unix.replace("\n", "\r\n").encode())))
    assert len(plain) == 3
    assert windows == plain


def test_empty_and_binary_files_are_counted(folder, tmp_path):
    folder("empty.md", "")
    folder("latin.md", "é".encode("latin-1"))
    top = folder("good.md", "Text.")
    (top / "gone.md").symlink_to(tmp_path / "nowhere.md")
    found = records(Kind.MARKDOWN, top)
    assert [one.text for one in usable(found)] == ["Text."]
    assert skipped(found) == [("empty.md", "it has no text"), ("latin.md", "it is not UTF-8")]
