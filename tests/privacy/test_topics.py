"""Topics are found by the words that stand for them, as whole words."""

from __future__ import annotations

import pytest

from tests.privacy.conftest import LoadRules


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("She was diagnosed with Diabetes.", ("health",)),
        ("my salary and my lawyers", ("financial", "legal")),
        ("the API-Key, the api key and the apikey", ("api_key",)),
        ("db_password", ("password",)),
        ("two tokens", ("token",)),
        ("healthy, tokenize, illegal", ()),
        ("", ()),
    ],
)
def test_the_shipped_topics_are_found_by_their_words(rules, text, topics):
    assert rules.topics(text) == topics


def test_the_topics_of_the_shipped_rules_are_those_of_the_file(rules):
    assert rules.topic_names == ("health", "financial", "legal", "password", "api_key", "token")


def test_an_unknown_topic_of_a_list_is_its_own_word(load_rules: LoadRules):
    rules = load_rules("memory_rules: {sensitive_topics: [chess club]}")
    assert rules.topics("We met at the Chess-Club.") == ("chess club",)
    assert rules.topics("We played chess.") == ()


def test_a_mapping_gives_topics_their_words_and_known_ones_keep_theirs_without(load_rules: LoadRules):
    rules = load_rules("memory_rules: {sensitive_topics: {travel: [visa, 签证], health: null, legal: [court]}}")
    assert rules.topics("a VISA") == ("travel",)
    assert rules.topics("我的签证快到期了") == ("travel",)
    assert rules.topics("the hospital") == ("health",)
    assert rules.topics("the lawyer at court") == ("legal",)
    assert rules.topics("the lawyer") == ()


def test_redaction_texts_are_of_no_topic(rules):
    assert rules.topics("https://[CREDENTIALS_REDACTED]@host and [PASSWORD_REDACTED]") == ()
