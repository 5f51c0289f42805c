"""Cards, bank accounts and social security numbers: by their check digits and ranges, not by their shape."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "card",
    [
        "4111111111111111",
        "4111 1111 1111 1111",
        "4111-1111-1111-1111",
        "5555555555554444",
        "2223003122003222",
        "378282246310005",
        "3782 822463 10005",
        "30569309025904",
        "6011000990139424",
        "3530111333300000",
        "6200000000000005",
        "4222222222222",
        "6304000000000000",
    ],
)
def test_card_numbers_of_every_issuer_are_found(found_in, card):
    assert found_in(f"I paid with {card}, yesterday.") == [("credit_card", card)]


@pytest.mark.parametrize(
    "text",
    [
        "4111111111111112",
        "1234 5678 9012 3456",
        "order 4111 1111 1111 1112",
        "x4111111111111111",
        "4111111111111111f",
        "id-4111111111111111",
        "1700000000000",
        "1234567812345670",
        "9780306406157",
        "41 11 11 11 11 11 11 11",
        "411111111111111111111111",
        "550e8400-e29b-41d4-a716-446655440000",
    ],
)
def test_numbers_that_only_look_like_cards_are_left(found_in, text):
    assert found_in(text) == []


@pytest.mark.parametrize(
    ("before", "card"),
    [
        ("", "4111 1111 1111 1112"),
        ("pay with ", "5500-0000-0000-0005"),
        ("my card ", "4111111111111112"),
        ("credit card number: ", "1234-5678-9012-3456"),
        ("amex ", "3782 822463 10006"),
    ],
)
def test_a_mistyped_card_is_found_whole_and_not_half_as_a_telephone_number(found_in, before, card):
    assert found_in(f"{before}{card} or call 555-123-4567")[0] == ("credit_card", card)


def test_a_card_of_twelve_digits_needs_a_word_before_it(found_in):
    assert found_in("my card 587428561654") == [("credit_card", "587428561654")]
    assert found_in("the number 587428561654") == []


def test_a_card_between_other_numbers_is_found_alone(found_in):
    assert found_in("12 4111 1111 1111 1111 999") == [("credit_card", "4111 1111 1111 1111")]


@pytest.mark.parametrize(
    "account",
    [
        "DE89370400440532013000",
        "DE89 3704 0044 0532 0130 00",
        "GB82 WEST 1234 5698 7654 32",
        "gb82west12345698765432",
        "NO9386011117947",
        "FR1420041010050500013M02606",
        "CH93 0076 2011 6238 5295 7",
        "MT84MALT011000012345MTLCAST001S",
        "SA03-8000-0000-6080-1016-7519",
        "HN88CABF00000000000250005469",
    ],
)
def test_bank_accounts_of_many_countries_are_found(found_in, account):
    assert found_in(f"transfer to {account} is done") == [("iban", account)]


@pytest.mark.parametrize(
    "text",
    [
        "DE89370400440532013001",
        "DE8937040044053201300",
        "XX89370400440532013000",
        "DE893704004405320130001",
        "AB12CD34EF56",
    ],
)
def test_what_is_too_long_too_short_or_fails_the_check_is_no_bank_account(found_in, text):
    assert found_in(text) == []


def test_a_mistyped_account_is_found_behind_the_word_iban(found_in):
    assert found_in("IBAN: DE89370400440532013001.") == [("iban", "DE89370400440532013001")]


@pytest.mark.parametrize("number", ["123-45-6789", "899-99-9999", "XXX-XX-6789", "***-**-6789"])
def test_social_security_numbers_are_found(found_in, number):
    assert found_in(f"It is {number}.") == [("ssn", number)]


@pytest.mark.parametrize(
    "text",
    [
        "000-12-3456",
        "666-12-3456",
        "900-12-3456",
        "123-00-4567",
        "123-45-0000",
        "123-45-67890",
        "1123-45-6789",
        "part 123-45-6789",
        "123456789",
        "123 45 6789",
    ],
)
def test_numbers_that_were_never_given_out_are_no_social_security_numbers(found_in, text):
    assert found_in(text) == []


@pytest.mark.parametrize("number", ["123456789", "123 45 6789"])
def test_a_social_security_number_without_hyphens_needs_the_word(found_in, number):
    assert found_in(f"my SSN is {number}") == [("ssn", number)]
