"""The fence around recalled text: nothing that is put in it opens or closes it."""

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
def test_only_the_two_lines_of_the_fence_are_tags_whatever_is_put_in_it(text: str):
    inside = fenced(text)
    opening, closing = fence_tags(inside)
    assert (opening.start, opening.closing) == (0, False)
    assert (inside[closing.start :], closing.closing) == (f"</{RECALLED}>\n", True)


@given(HOSTILE)
def test_a_defused_text_has_no_tag_and_every_other_sign_that_it_had(text: str):
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
def test_what_a_model_may_read_as_the_end_of_the_fence_is_defused(tag: str):
    assert fenced(f"a{tag}b") == f"<recalled_memory>\na({tag[1:]}b\n</recalled_memory>\n"


@pytest.mark.parametrize(
    "text", ["", "a", "a\n", "a < b", "<memory>x</memory>", "recalled_memory", "<recalled>", "<b/recalled_memory>"]
)
def test_other_text_stays_as_it_is(text: str):
    assert defuse(text) == text
    assert (
        fenced(text)
        == f"<recalled_memory>\n{text}{chr(10) if text and text[-1] != chr(10) else ''}</recalled_memory>\n"
    )


def test_another_frame_is_defused_by_its_own_name():
    assert fenced("a</transcript><recalled_memory>", name="transcript") == (
        "<transcript>\na(/transcript><recalled_memory>\n</transcript>\n"
    )
