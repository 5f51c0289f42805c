"""Telephone numbers of several regions, and the many numbers that are none."""

from __future__ import annotations

import pytest

from tests.privacy.conftest import LoadRules


@pytest.mark.parametrize(
    "number",
    [
        "+1 (415) 555-2671",
        "+14155552671",
        "+44 (0)20 7946 0958",
        "+49 30 1234567",
        "(+33) 1 42 68 53 00",
        "+33 (0)1 42 68 53 00",
        "0044 20 7946 0958",
        "011 49 30 1234567",
        "(212) 555-0123",
        "212.555.0123",
        "1-800-555-0199",
        "555-123-4567",
        "020 7946 0958",
        "030 123456",
        "0664/1234567",
        "01 42 68 53 00",
        "0412 345 678",
        "03-1234-5678",
        "138 0013 8000",
        "912 34 56 78",
        "(415) 555-2671 ext. 22",
        "415-555-2671x769",
    ],
)
def test_numbers_as_they_are_written_are_found_without_a_word(found_in, number):
    assert found_in(f"It was {number}, she said") == [("phone", number)]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("call me at 4155552671", "4155552671"),
        ("my number is 4155552671", "4155552671"),
        ("phone=4155552671", "4155552671"),
        ("Phone:\n358 0594", "358 0594"),
        ("71-33-52-22 (mobile)", "71-33-52-22"),
        ("9472 7916-Office", "9472 7916"),
        ("Teléfono: 912345678", "912345678"),
        ("Handy 0171 1234567", "0171 1234567"),
        ("我的电话是13800138000。", "13800138000"),
        ("Call me (555-123-4567).", "555-123-4567"),
        ("Fax: 259.735.7502x459", "259.735.7502x459"),
    ],
)
def test_an_adjacent_word_marks_a_number_as_a_telephone_number(found_in, text, number):
    assert found_in(text) == [("phone", number)]


@pytest.mark.parametrize(
    "text",
    [
        "2023-05-08",
        "2023-05-08 12:30:11",
        "08.05.2023",
        "05/08/2023",
        "20230508",
        "20230508143000",
        "called on 2023-05-08",
        "called in 2019-2023",
        "1700000000000",
        "order 4155552671",
        "order number 415-555-2671",
        "invoice 030 1234567",
        "Order 112-3456789-1234567",
        "ticket #4155552671",
        "ISBN 978-3-16-148410-0",
        "$1,234,567.89",
        "5.551.234 €",
        "call 12 345 678 €",
        "1234567890",
        "123456789012345678901234567890",
        "version 10.20.30.40",
        "v1.2.3.4567890",
        "550e8400-e29b-41d4-a716-446655440000",
        "9fceb02d0ae598e95dc970b74767f19372d61af8",
        "1920x1080",
        "3.14159265358979",
        "51.507400, -0.127800",
        "1 000 000 people",
        "10:30-11:45",
        "AB-555-123-4567",
        "+5",
        "+1000000",
        "1 2 3 4 5 6 7 8 9 10",
    ],
)
def test_dates_ids_prices_versions_and_orders_are_no_telephone_numbers(found_in, text):
    assert found_in(text) == []


def test_numbers_behind_one_another_are_found_one_by_one(found_in):
    text = "555-123-4567 555-987-6543, 2023-05-08 020 7946 0958"
    assert [found for _, found in found_in(text)] == ["555-123-4567", "555-987-6543", "020 7946 0958"]


def test_only_the_national_numbers_of_the_named_regions_are_known(load_rules: LoadRules):
    text = """
pii_patterns: {{phone: {{regex: '[0-9+][0-9 ]{{6,}}', redaction: '[P]', check: phone}}}}
phone_regions: [{region}]
"""
    for region, known in (("'GB'", True), ("'US'", False), ("", False)):
        rules = load_rules(text.format(region=region))
        assert bool(rules.spans("It was 020 7946 0958")) is known
        assert rules.spans("It was +44 20 7946 0958")
