"""The rules file: the form that other systems write is read, and what cannot be used is refused by its name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from souvenir.core.errors import PrivacyRulesUnusable
from souvenir.core.files import RESOURCES
from souvenir.core.settings import Settings
from souvenir.privacy.checks import CHECK_NAMES
from souvenir.privacy.policy import Action, PrivacyPolicy
from souvenir.privacy.rules import PrivacyRules
from souvenir.privacy.rules_file import read_rules_file
from tests.privacy.conftest import LoadRules

REDACT_ALL = PrivacyPolicy(Action.REDACT, Action.REDACT)
SEED = Path(__file__).with_name("seed_privacy.yaml")


def test_the_file_of_the_seed_works_unchanged():
    rules = PrivacyRules.load(SEED)
    assert rules.default_policy == PrivacyPolicy(secrets=Action.REDACT, pii=Action.REDACT)
    assert rules.categories == ("general", "preference", "fact", "contact", "location", "routine")
    text = "Ann (ann@x.org, 555-123-4567, 123-45-6789, 4111 1111 1111 1111) lives at 12 Long Street, Springfield."
    screened = rules.screen(text, rules.default_policy)
    assert screened.text == (
        "Ann ([EMAIL_REDACTED], [PHONE_REDACTED], [SSN_REDACTED], [CARD_REDACTED]) lives at [ADDRESS_REDACTED]."
    )
    assert screened.found == {"email": 1, "phone": 1, "ssn": 1, "credit_card": 1, "address": 1}
    assert rules.topics("my password, my health") == ("health", "password")


def test_a_file_without_secret_patterns_keeps_the_shipped_ones_and_an_empty_section_has_none(load_rules: LoadRules):
    text = "postgres://app:s3cret@db/x"
    assert [span.kind for span in PrivacyRules.load(SEED).spans(text)] == ["url_credentials"]
    assert load_rules("secret_patterns: {}").spans(text) == []


def test_the_page_on_privacy_names_every_kind_and_check_and_its_example_works(load_rules: LoadRules):
    page = (RESOURCES / "docs" / "privacy.md").read_text(encoding="utf-8")
    kinds = [rule.name for rule in read_rules_file(Settings().privacy_rules_path).patterns]
    assert [name for name in (*kinds, *CHECK_NAMES) if f"`{name}`" not in page] == []
    [example] = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert load_rules(example).screen("E-123456 needs a visa", REDACT_ALL).text == "E-[STAFF_ID_REDACTED] needs a visa"


def test_the_shipped_rules_redact_secrets_and_leave_personal_data(rules):
    assert rules.default_policy == PrivacyPolicy(secrets=Action.REDACT, pii=Action.ALLOW)
    screened = rules.screen("ann@x.org, password: hunter2", rules.default_policy)
    assert screened.text == "ann@x.org, password: [PASSWORD_REDACTED]"


def test_a_relative_path_is_a_shipped_file_or_one_below_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Settings().privacy_rules_path == RESOURCES / "config" / "privacy.yaml"
    assert Settings(privacy_config=Path("own.yaml")).privacy_rules_path == tmp_path / "own.yaml"
    assert Settings(privacy_config=tmp_path / "own.yaml").privacy_rules_path == tmp_path / "own.yaml"


def test_an_empty_mapping_is_a_file_of_no_rules_but_the_shipped_secrets(load_rules: LoadRules):
    rules = load_rules("{}")
    assert rules.spans("ann@x.org") == []
    assert rules.topics("password") == ()
    assert rules.categories == ()


PATTERN = "pii_patterns: {{staff_id: {{regex: '{regex}', redaction: '[ID]'{more}}}}}"


@pytest.mark.parametrize("regex", [r"(\d)\1", "(?=a)b", "(?<!a)b", "a(", "[", r"\Z", "a{1001}"])
def test_a_pattern_that_re2_cannot_run_is_refused_by_its_name(load_rules: LoadRules, regex, capfd):
    with pytest.raises(PrivacyRulesUnusable, match="'staff_id' does not run in RE2"):
        load_rules(PATTERN.format(regex=regex, more=""))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("regex", ["a*", "(?:)", "x?"])
def test_a_pattern_that_matches_the_empty_text_is_refused(load_rules: LoadRules, regex):
    with pytest.raises(PrivacyRulesUnusable, match="'staff_id' matches the empty text"):
        load_rules(PATTERN.format(regex=regex, more=""))


def test_an_unknown_check_is_refused_with_those_that_there_are(load_rules: LoadRules):
    with pytest.raises(PrivacyRulesUnusable, match=r"'staff_id' asks for the check 'lunh'; there are .*luhn.*phone"):
        load_rules(PATTERN.format(regex="a", more=", check: lunh"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("colour: red", "colour is not known"),
        ("memory_rules: {redact: true}", "memory_rules.redact is not known"),
        ("pii_patterns: {a: {regex: x, redaction: y, flags: i}}", "pii_patterns.a.flags is not known"),
        ("pii_patterns: {a: {regex: x}}", "pii_patterns.a.redaction"),
        ("pii_patterns: {a: {regex: 1, redaction: y}}", "pii_patterns.a.regex"),
        ("pii_patterns: {a: {regex: x, redaction: ''}}", "pii_patterns.a.redaction"),
        ("pii_patterns: {a b: {regex: x, redaction: y}}", "pii_patterns.a b"),
        ("pii_patterns: [x]", "pii_patterns"),
        ("memory_rules: {redact_before_storage: 'yes'}", "memory_rules.redact_before_storage"),
        ("memory_rules: {sensitive_topics: health}", "memory_rules.sensitive_topics"),
        ("memory_rules: {sensitive_topics: ['_']}", "sensitive_topics"),
        ("phone_regions: [NO]", "phone_regions.0"),
        ("phone_regions: [XX]", "no region 'XX'"),
        (
            "pii_patterns: {a: {regex: x, redaction: y}}\nsecret_patterns: {a: {regex: z, redaction: y}}",
            "'a' is the name of two",
        ),
        ("pii_patterns: {a: {regex: x, redaction: max}}", "redaction text of 'a' is found by the pattern 'a'"),
        ("- a list", "the file"),
        ("", "the file"),
        ("a: [", "not YAML in UTF-8 in line 1"),
        ("!!python/object/apply:os.getcwd []", "not YAML"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_refused_with_the_place(load_rules: LoadRules, text, reason):
    with pytest.raises(PrivacyRulesUnusable) as refused:
        load_rules(text)
    assert reason in refused.value.message


def test_more_words_than_re2_can_hold_are_refused(load_rules: LoadRules):
    words = ", ".join(f"{number}{'x' * 150}" for number in range(4000))
    with pytest.raises(PrivacyRulesUnusable, match="sensitive_topics has too many words"):
        load_rules(f"memory_rules: {{sensitive_topics: {{all: [{words}]}}}}")


def test_a_file_that_is_not_there_is_refused_with_the_setting(tmp_path):
    with pytest.raises(PrivacyRulesUnusable, match="PRIVACY_CONFIG"):
        PrivacyRules.load(tmp_path / "none.yaml")


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(PrivacyRulesUnusable, match="UTF-8"):
        PrivacyRules.load(path)
