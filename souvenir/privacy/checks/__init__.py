"""Checks of pattern matches, by their names in the rules file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from souvenir.privacy.checks import addresses, numbers, secrets
from souvenir.privacy.checks.numbering import NumberingPlans
from souvenir.privacy.checks.phones import PhoneCheck
from souvenir.privacy.checks.surroundings import Check

PHONE = "phone"

CHECKS: Mapping[str, Check] = {
    "credentials": secrets.credentials,
    "email": addresses.email,
    "iban": numbers.iban,
    "ip": addresses.ip,
    "luhn": numbers.luhn,
    "opaque": secrets.opaque,
    "password": secrets.password,
    "ssn": numbers.ssn,
}
CHECK_NAMES = tuple(sorted([*CHECKS, PHONE]))


def check_named(name: str, phone_regions: Sequence[str]) -> Check:
    """:raises KeyError: If there is no such check."""
    return PhoneCheck(NumberingPlans(phone_regions)) if name == PHONE else CHECKS[name]
