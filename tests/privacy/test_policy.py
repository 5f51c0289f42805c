"""A policy goes through JSON unchanged, and one that cannot be is refused with a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.errors import InvalidRequest
from souvenir.privacy.policy import Action, PrivacyPolicy

ACTIONS = st.sampled_from(Action)


@given(st.builds(PrivacyPolicy, ACTIONS, ACTIONS, st.lists(st.text(), unique=True).map(tuple)))
def test_a_policy_comes_back_from_json_as_it_was(policy):
    assert PrivacyPolicy.of_json(policy.to_json()) == policy


def test_what_json_leaves_out_is_the_default():
    assert PrivacyPolicy.of_json({}) == PrivacyPolicy(Action.REDACT, Action.ALLOW, ())


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ({"pii": "delete"}, "pii"),
        ({"secrets": None}, "secrets"),
        ({"secrets": ["redact"]}, "secrets"),
        ({"hidden_topics": "health"}, "hidden_topics"),
        ({"hidden_topics": [1]}, "hidden_topics"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_policy_that_cannot_be_used_is_refused_by_the_name_of_the_field(value, names):
    with pytest.raises(InvalidRequest, match=names):
        PrivacyPolicy.of_json(value)
