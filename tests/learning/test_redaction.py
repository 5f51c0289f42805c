"""Transcripts are screened by their decoded text, whatever the JSON escapes, and keep their structure."""

from __future__ import annotations

import json

import pytest

from souvenir.core.settings import Settings
from souvenir.learning.transcripts.json_form import redacted
from souvenir.learning.transcripts.transcript import read_transcript
from souvenir.privacy.policy import Action, PrivacyPolicy
from souvenir.privacy.rules import PrivacyRules
from souvenir.privacy.screening import AppliedPolicy

KEY_ID = "AKIA" + "IOSFODNN7EXAMPLE"
POLICY = AppliedPolicy(
    PrivacyRules.load(Settings().privacy_rules_path),
    PrivacyPolicy(secrets=Action.REDACT, pii=Action.REDACT),
)
SAID = [
    f"the key is\n{KEY_ID} ok",
    f"the key is:\t{KEY_ID}",
    "write to\nbob@example.com please",
    'password = "hunter2secret99"',
    "call me\n+49 30 901820 please",
    "Zürich, \U0001f600, and nothing else",
]


def said(text: str) -> list[str]:
    return [turn.text for turn in read_transcript(text, document_at=None).turns]


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("indent", [None, 2])
def test_json_values_are_screened_decoded(ascii_only: bool, indent: int | None):
    messages = [{"role": "user", "content": text} for text in SAID]
    whole = json.dumps(messages, ensure_ascii=ascii_only, indent=indent)
    lines = "\n".join(json.dumps(message, ensure_ascii=ascii_only) for message in messages)
    expected = [POLICY.text(text) for text in SAID]
    assert said(redacted(whole, POLICY)) == expected
    assert said(redacted(lines, POLICY)) == expected


def test_escaped_text_is_screened():
    written = f'[{{"role": "user", "content": "mail bob\\u0040example.com, \\u0041{KEY_ID[1:]}"}}]'
    [text] = said(redacted(written, POLICY))
    assert "bob" not in text
    assert KEY_ID not in text


def test_the_name_of_a_field_is_context_of_its_value():
    call = {"role": "user", "content": "log in", "arguments": [{"password": "hunter2secret99"}], "count": 3}
    assert json.loads(redacted(json.dumps(call), POLICY)) == {
        **call,
        "arguments": [{"password": "[PASSWORD_REDACTED]"}],
    }


@pytest.mark.parametrize(
    "text",
    [
        ' [ {"role":"user" , "content" : "Z\\u00fcrich\\n\\"now\\"" , "ts" : 1712345678.5e0, "seen": true} ]\n',
        '{"role": "user", "content": "one"}\n{"role": "assistant", "content": "two"}\n',
        "User: we moved.\n\n{ this is no JSON",
        "[" * 5000,
    ],
)
def test_a_transcript_without_findings_is_unchanged(text: str):
    assert redacted(text, POLICY) == text


def test_characters_that_no_text_may_hold_are_removed_from_json():
    written = (
        '[{"role": "user", "content": "one\\u0000two\\ud800 bob@example.com"}, {"role": "user", "content": "a\\u0000"}]'
    )
    assert said(redacted(written, POLICY)) == ["one\ufffdtwo\ufffd [EMAIL_REDACTED]", "a\ufffd"]


def test_a_truncated_line_is_screened_too():
    lines = [json.dumps({"role": "user", "content": text}) for text in SAID]
    cut = "\n".join([*lines, f'{{"role": "user", "content": "cut {KEY_ID}'])
    assert KEY_ID not in redacted(cut, POLICY)
