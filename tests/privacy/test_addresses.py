"""E-mail and IP addresses, and what has their shape."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "address",
    [
        "a@b.co",
        "foo.bar+baz@ex-ample.co.uk",
        "jörg@müller.de",
        "o'neil@example.com",
        "почта@пример.рф",
        "x_1@sub.example.org",
    ],
)
def test_mail_addresses_are_found(found_in, address):
    assert found_in(f"write to {address}, please.") == [("email", address)]


def test_a_mail_address_ends_where_another_script_begins(found_in):
    assert found_in("邮箱是foo@bar.com。") == [("email", "foo@bar.com")]


def test_every_address_of_a_list_is_found(found_in):
    assert found_in("<a@x.org>,b@x.org;mailto:c@x.org?subject=d") == [
        ("email", "a@x.org"),
        ("email", "b@x.org"),
        ("email", "c@x.org"),
    ]


@pytest.mark.parametrize(
    "text",
    ["icon@2x.png", "git@github.com:owner/repository.git", "@handle", "user@host", "a@b..com", "x@@y.com", "a @ b.com"],
)
def test_pictures_remotes_and_handles_are_no_mail_addresses(found_in, text):
    assert found_in(text) == []


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "192.168.1.1",
        "10.0.0.255",
        "2001:db8::8a2e:370:7334",
        "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
        "fe80::1",
        "fd12:3456:789a::1",
        "::ffff:1.2.3.4",
    ],
)
def test_ip_addresses_are_found(found_in, address):
    assert found_in(f"from {address}, again") == [("ip_address", address)]


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("http://8.8.8.8/x", ["8.8.8.8"]),
        ("8.8.8.8:53", ["8.8.8.8"]),
        ("[2001:db8::1]:80", ["2001:db8::1"]),
        ("10.0.0.0/8", ["10.0.0.0"]),
        ("10.0.0.1-10.0.0.9", ["10.0.0.1", "10.0.0.9"]),
        ("It is 2001:db8::1: the first", ["2001:db8::1"]),
    ],
)
def test_an_address_is_found_within_its_notation(found_in, text, addresses):
    assert [found for _, found in found_in(text)] == addresses


@pytest.mark.parametrize(
    "text",
    [
        "256.1.1.1",
        "1.2.3.4.5",
        "version 1.2.3.4",
        "upgraded to release 10.1.2.3",
        "v1.2.3.4",
        "1.2.3.4-rc1",
        "127.0.0.1",
        "0.0.0.0",
        "255.255.255.0",
        "::1",
        "std::vector",
        "a::b",
        "x[1::2]",
        "12:30:45",
        "00:1A:2B:3C:4D:5E",
        "cafe::babe::1",
    ],
)
def test_versions_masks_loopback_times_and_code_are_no_ip_addresses(found_in, text):
    assert found_in(text) == []
