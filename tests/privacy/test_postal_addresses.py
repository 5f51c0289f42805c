"""Postal addresses: found whole with flat, city and postal code, and sentences that only look like one are left."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "address",
    [
        "12 Long Street, Springfield",
        "742 Evergreen Terrace",
        "1600 Pennsylvania Ave NW, Washington, DC 20500",
        "500 Main St, Apt 4B, Boston, MA 02110",
        "350 5th Avenue, New York, NY 10118",
        "221B Baker Street, London NW1 6XE",
        "Hauptstraße 5, 10115 Berlin",
        "Berliner Straße 10",
        "Kerkstraat 12, 1017 GA Amsterdam",
        "12 rue de Rivoli, 75001 Paris",
        "Via Roma 12, 00184 Roma",
        "Calle Mayor 5",
        "P.O. Box 123, Austin, TX 78701",
        "Postfach 12 34",
    ],
)
def test_an_address_is_found_whole(found_in, address):
    assert found_in(f"Write to {address}.") == [("address", address)]


@pytest.mark.parametrize(
    ("before", "address"), [("I live at ", "12 long street"), ("my address is ", "5 elm st, springfield, il 62701")]
)
def test_an_address_in_lower_case_is_found_after_a_word_for_one(found_in, before, address):
    assert found_in(f"{before}{address} now") == [("address", address)]


@pytest.mark.parametrize(
    "text",
    [
        "We walked 5 miles down the road.",
        "I read 12 books on Main Street.",
        "We moved 5 miles down the road.",
        "Two streets in Spring 2023",
        "Send 7 via Google Docs",
        "2 Dr Smith",
        "12 long street",
        "the 3 court cases",
    ],
)
def test_a_sentence_that_only_looks_like_an_address_is_left(found_in, text):
    assert found_in(text) == []
