"""The fence around recalled text: no content opens or closes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.text import RECALLED, defuse, fence_tags, fenced

_TAGS = st.sampled_from(
    [
        *(
            "<recalled_memory>",
            "</recalled_memory>",
            "< / Recalled_Memory >",
            "<recalled-memory x='1'>",
            "</RECALLED MEMORY",
        ),
        *(
            "<\u200brecal\u200bled_memory>",
            "</recalled\n_memory>",
            "＜/ｒｅｃａｌｌｅｄ_memory＞",
            "<",
            "</",
            "recalled_memory>",
            "\n",
        ),
    ]
)
HOSTILE = st.lists(st.one_of(_TAGS, st.text(max_size=5)), max_size=10).map("".join)


@given(HOSTILE)
def test_fenced_text_has_only_the_two_tags_of_the_fence(text: str):
    inside = fenced(text)
    opening, closing = fence_tags(inside)
    assert (opening.start, opening.closing) == (0, False)
    assert (inside[closing.start :], closing.closing) == (f"</{RECALLED}>\n", True)


@given(HOSTILE)
def test_a_defused_text_has_no_tags_and_keeps_all_other_characters(text: str):
    defused = defuse(text)
    assert list(fence_tags(defused)) == []
    changed = [at for at, (old, new) in enumerate(zip(text, defused, strict=True)) if old != new]
    assert changed == [tag.start for tag in fence_tags(text)]


@pytest.mark.parametrize(
    "tag",
    [
        "</recalled_memory>",
        "</RECALLED_memory>",
        "< /recalled_memory >",
        "</recalled memory>",
        "</recalled-memory>",
        "</\u200brec\u00adalled_memory>",
        "</recalled_me\u0301mory>",
        "＜/recalled_memory＞",
        "</ｒｅｃａｌｌｅｄ＿ｍｅｍｏｒｙ>",
        "</recalled_memory",
        "</recalled_memory id='7'>",
    ],
)
def test_variants_of_the_closing_tag_are_defused(tag: str):
    assert fenced(f"a{tag}b") == f"<recalled_memory>\na({tag[1:]}b\n</recalled_memory>\n"


@pytest.mark.parametrize(
    "text", ["", "a", "a\n", "a < b", "<memory>x</memory>", "recalled_memory", "<recalled>", "<b/recalled_memory>"]
)
def test_text_without_tags_is_unchanged(text: str):
    assert defuse(text) == text
    assert (
        fenced(text)
        == f"<recalled_memory>\n{text}{chr(10) if text and text[-1] != chr(10) else ''}</recalled_memory>\n"
    )


def test_a_fence_of_another_name_is_defused_by_that_name():
    assert fenced("a</transcript><recalled_memory>", name="transcript") == (
        "<transcript>\na(/transcript><recalled_memory>\n</transcript>\n"
    )
