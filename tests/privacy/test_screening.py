"""Screening: exact spans in any script, findings whole, the same text when done twice, no text in errors."""

from __future__ import annotations

import sys
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from souvenir.core.errors import PersonalDataRejected
from souvenir.core.settings import Settings
from souvenir.privacy.checks.surroundings import CHARS_BEFORE_MATCH
from souvenir.privacy.policy import Action, PrivacyPolicy
from souvenir.privacy.rules import PrivacyRules
from souvenir.privacy.rules_file import read_rules_file
from tests.cases import for_all

ALLOW = PrivacyPolicy(Action.ALLOW, Action.ALLOW)
FLAG = PrivacyPolicy(Action.FLAG, Action.FLAG)
REDACT = PrivacyPolicy(Action.REDACT, Action.REDACT)
REJECT = PrivacyPolicy(Action.REJECT, Action.REJECT)

RULES = PrivacyRules.load(Settings().privacy_rules_path)
FOUND = {
    "email": "jörg@example.org",
    "phone": "+49 30 1234567",
    "credit_card": "4111 1111 1111 1111",
    "iban": "DE89 3704 0044 0532 0130 00",
    "ssn": "123-45-6789",
    "ip_address": "2001:db8::1",
    "github_token": "ghp_" + "a1B2c3D4e5F6" * 3,
}
QUIET = st.text(st.characters(exclude_categories=["Nd"], exclude_characters="@:+*=")) | st.sampled_from(
    ["👩‍👩‍👧‍👦", "我昨天去了公园。", "e\u0301e\u0301", "\U0001f600 ", "ß", "\ud800", "\x00", "नमस्ते", "\r\n"]
)


@for_all("before", ["", "👩‍👩‍👧‍👦 ", "我的。", "e\u0301 ", "\ud800 ", "naïve ", "\U0001f600\U0001f600 ", "नमस्ते "])
@for_all("found", list(FOUND.items()))
def test_spans_are_exact_after_any_text(before, found):
    kind, text = found
    [span] = RULES.spans(f"{before}{text}。 end")
    assert (span.kind, span.start, span.end) == (kind, len(before), len(before) + len(text))


@given(st.lists(st.tuples(QUIET, st.sampled_from(list(FOUND.values()))), max_size=6), QUIET)
def test_redaction_takes_out_exactly_the_spans(pieces, end):
    text = "".join(f"{quiet} {found} " for quiet, found in pieces) + end
    redactions = {rule.name: rule.redaction for rule in read_rules_file(Settings().privacy_rules_path).patterns}
    expected, position = "", 0
    for span in RULES.spans(text):
        expected += text[position : span.start] + redactions[span.kind]
        position = span.end
    expected += text[position:]
    # Else a second look finds more, as the next test lets it.
    assume(not RULES.spans(expected))
    screened = RULES.screen(text, REDACT)
    assert screened.text == expected
    assert screened.found == Counter(span.kind for span in RULES.spans(text))
    assert all(found not in screened.text for _, found in pieces)


FRAGMENTS = st.sampled_from(
    [
        *FOUND.values(),
        *("[EMAIL_REDACTED]", "[PASSWORD_REDACTED]", "-----BEGIN PRIVATE KEY-----", "card 587428561654", "2023-05-08"),
        *(
            "password: ",
            "password ",
            "call ",
            "token = ",
            "order ",
            "IBAN ",
            "https://",
            "u:p4ss@",
            "x.org",
            "eyJ",
            "::",
        ),
        *("555-123-4567", "450 0840", "1.2.3.4", "12 ", "1", "0", "a", "é", "我", " ", "\n"),
        *"-/.,@'=()+[]\"",
    ]
)


@given(st.lists(FRAGMENTS, max_size=24).map("".join))
def test_screening_what_was_screened_changes_nothing(text):
    once = RULES.screen(text, REDACT)
    twice = RULES.screen(once.text, REDACT)
    assert (twice.text, twice.found, twice.topics) == (once.text, {}, once.topics)


@given(st.lists(FRAGMENTS, max_size=24).map("".join))
def test_spans_are_in_order_do_not_overlap_and_lie_in_the_text(text):
    position = 0
    for span in RULES.spans(text):
        assert position <= span.start < span.end <= len(text)
        position = span.end


@given(QUIET)
def test_a_text_without_findings_is_given_back_as_it_is(text):
    screened = RULES.screen(text, REDACT)
    assert screened.text == text
    assert screened.found == {}


def test_no_redaction_text_of_the_shipped_rules_is_found_by_any_of_them():
    rules = read_rules_file(Settings().privacy_rules_path).patterns
    assert rules
    for rule in rules:
        for text in (
            rule.redaction,
            f"password: {rule.redaction}",
            f"token={rule.redaction} x",
            f"x@{rule.redaction}.org",
        ):
            assert RULES.spans(text) == []
            assert RULES.screen(text, REDACT).text == text


def test_flagging_counts_and_leaves_the_text():
    text = "a@x.org, b@x.org, password=hunter2"
    screened = RULES.screen(text, FLAG)
    assert screened.text == text
    assert screened.found == {"email": 2, "password": 1}


def test_allowing_counts_nothing_and_finds_topics():
    screened = RULES.screen("a@x.org, password=hunter2", ALLOW)
    assert (screened.text, screened.found, screened.topics) == ("a@x.org, password=hunter2", {}, ("password",))


def test_secrets_and_personal_data_have_actions_of_their_own():
    text = "a@x.org, password=hunter2"
    assert RULES.screen(text, PrivacyPolicy(Action.REDACT, Action.FLAG)).found == {
        "email": 1,
        "password": 1,
    }
    assert RULES.screen(text, PrivacyPolicy(Action.REDACT, Action.FLAG)).text == "a@x.org, password=[PASSWORD_REDACTED]"
    assert RULES.screen(text, PrivacyPolicy(Action.ALLOW, Action.REDACT)).text == "[EMAIL_REDACTED], password=hunter2"
    with pytest.raises(PersonalDataRejected):
        RULES.screen(text, PrivacyPolicy(Action.REDACT, Action.REJECT))


def test_a_secret_inside_of_allowed_personal_data_is_redacted_all_the_same(load_rules):
    rules = load_rules(
        "pii_patterns: {line: {regex: 'begin.*end', redaction: '[LINE]'}}\n"
        "secret_patterns: {pin: {regex: '[0-9]{4}', redaction: '[PIN]'}}"
    )
    assert rules.screen("begin 1234 end", PrivacyPolicy()).text == "begin [PIN] end"
    assert rules.screen("begin 1234 end", REDACT).text == "[PIN]"


def test_findings_that_overlap_are_replaced_as_one(load_rules):
    rules = load_rules(
        "pii_patterns:\n  left: {regex: 'aab', redaction: '[L]'}\n  right: {regex: 'bcccc', redaction: '[R]'}\n"
        "secret_patterns: {}"
    )
    assert [(span.kind, span.start, span.end) for span in rules.spans("x aabcccc y")] == [("right", 2, 9)]
    assert rules.screen("x aabcccc y", REDACT).text == "x [R] y"


def test_of_two_findings_of_one_length_the_first_rule_gives_the_kind(load_rules):
    rules = load_rules(
        "pii_patterns:\n  a: {regex: '[0-9]+', redaction: '[A]'}\n  b: {regex: '[0-5]+', redaction: '[B]'}"
    )
    assert rules.screen("x 123 y", REDACT).text == "x [A] y"


def test_of_named_groups_only_the_one_that_took_part_is_replaced(load_rules):
    rules = load_rules(
        "pii_patterns: {id: {regex: 'id (?P<value>[0-9]+)|no (?P<other>[0-9]+)|nr [0-9]+', redaction: '[ID]'}}"
    )
    assert rules.screen("id 12, no 34, nr 56", REDACT).text == "id [ID], no [ID], [ID]"


def test_rejection_names_the_kinds_and_nothing_of_the_text():
    text = f"mail {FOUND['email']} and {FOUND['github_token']}"
    with pytest.raises(PersonalDataRejected, match="email, github_token") as rejected:
        RULES.screen(text, REJECT)
    assert rejected.value.kinds == ("email", "github_token")
    shown = repr(rejected.value) + "".join(traceback.format_exception(rejected.value))
    assert rejected.value.__cause__ is None
    assert "jörg" not in shown
    assert FOUND["github_token"] not in shown


def test_no_repr_shows_a_text():
    screened = RULES.screen(f"secretly {FOUND['email']}", FLAG)
    json = RULES.screen_json({"a": f"secretly {FOUND['email']}"}, FLAG)
    shown = repr(screened) + repr(json) + repr(RULES) + repr(RULES.spans(FOUND["email"]))
    assert "secretly" not in shown
    assert "jörg" not in shown


def test_texts_inside_of_json_are_screened_and_keys_and_numbers_stay():
    value = {"a@x.org": ["b@x.org", {"n": 4111111111111111, "t": True, "x": None}], "note": "nothing"}
    screened = RULES.screen_json(value, REDACT)
    assert screened.value == {
        "a@x.org": ["[EMAIL_REDACTED]", {"n": 4111111111111111, "t": True, "x": None}],
        "note": "nothing",
    }
    assert screened.found == {"email": 1}


def test_a_key_says_what_its_text_is():
    screened = RULES.screen_json({"password": "swordfish", "phones": ["450 0840"], "order": "450 0840"}, REDACT)
    assert screened.value == {"password": "[PASSWORD_REDACTED]", "phones": ["[PHONE_REDACTED]"], "order": "450 0840"}
    assert RULES.screen_json(screened.value, REDACT).value == screened.value


def test_topics_of_json_are_those_of_its_texts_in_the_order_of_the_file():
    screened = RULES.screen_json({"a": "my lawyer", "b": ["a hospital"], "password": "x"}, ALLOW)
    assert screened.topics == ("health", "legal")


def test_json_is_rejected_for_one_text_in_it():
    with pytest.raises(PersonalDataRejected, match="email"):
        RULES.screen_json({"a": [[{"b": "x@x.org"}]]}, REJECT)


def test_many_threads_find_what_one_finds():
    texts = [f"{number}: {' '.join(FOUND.values())} https://u:p{number}w@h" for number in range(64)]
    alone = [RULES.screen(text, REDACT) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: RULES.screen(text, REDACT), texts)) == alone


@pytest.mark.parametrize(
    "piece", ["1", "@", "a", "eyJ", "12 ", "a@", "::", "password=", "-----BEGIN PRIVATE KEY-----", "\u0301"]
)
def test_a_long_text_of_one_piece_is_screened_to_its_end(piece):
    """A pattern whose time grew with the square would not come back from this."""
    text = piece * (200_000 // len(piece)) + f" {FOUND['email']}"
    assert RULES.screen(text, REDACT).text.endswith("[EMAIL_REDACTED]")


MAX_CALLS_A_CHARACTER = 80


@pytest.mark.parametrize(
    "piece", ["01100-555-123 4111]sk-", "###4567@#####-###(##[+", "/2024-01-0100_52.//4567(555token=4567IBAN call "]
)
def test_screening_under_the_strictest_policy_takes_few_calls_a_character(piece):
    """Each redaction uncovers another finding, so these texts go through all rounds."""
    random = Random(1)
    text = "".join(str(random.randrange(10)) if character == "#" else character for character in piece * 250)
    RULES.screen(text, REDACT)
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        RULES.screen(text, REDACT)
    finally:
        sys.setprofile(None)
    assert calls < MAX_CALLS_A_CHARACTER * len(text)


PIECE_OF_TEXT = st.sampled_from(
    [
        *FOUND.values(),
        "call ",
        "555-123-4567",
        "0",
        "42",
        "1984",
        "+",
        "(",
        ")",
        "-",
        ".",
        "/",
        " ",
        "a",
        "@",
        "//",
        "::",
        "password: x1",
        "sk-",
        "#",
    ]
)


@given(st.lists(PIECE_OF_TEXT, max_size=60).map("".join), st.integers(0, 200))
def test_a_finding_does_not_depend_on_text_far_away(text, distance):
    """Results of checks are kept by the surroundings of a match."""
    far = "x " * (CHARS_BEFORE_MATCH + distance)
    alone = [(span.kind, span.start, span.end) for span in RULES.spans(f" \n{text} ")]
    moved = [(span.kind, span.start - len(far), span.end - len(far)) for span in RULES.spans(f"{far} \n{text} ")]
    assert moved == alone
