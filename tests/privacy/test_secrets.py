"""Keys, tokens and passwords. Those here are made up, and put together so that no scanner takes them for lost ones."""

from __future__ import annotations

import pytest

HEX = "0123456789abcdef" * 8
MIXED = "a1B2c3D4e5F6g7H8i9J0" * 8
UPPER = "ABCDEFGHIJKLMNOP" * 2
JWT = ".".join(["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0NTY3ODkwIn0", MIXED[:43]])


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("aws_key", "AKIA" + UPPER[:16]),
        ("google_key", "AIza" + MIXED[:35]),
        ("github_token", "ghp_" + MIXED[:36]),
        ("github_token", "github_pat_" + MIXED[:22] + "_" + MIXED[:59]),
        ("gitlab_token", "glpat-" + MIXED[:20]),
        ("slack_token", "xoxb-123456789012-" + MIXED[:24]),
        ("stripe_key", "sk_live_" + MIXED[:24]),
        ("sk_key", "sk-proj-" + MIXED[:48]),
        ("sk_key", "sk-ant-api03-" + MIXED[:95]),
        ("telegram_token", "123456789:AA" + MIXED[:33]),
        ("sendgrid_key", f"SG.{MIXED[:22]}.{MIXED[:43]}"),
        ("twilio_key", "SK" + HEX[:32]),
        ("mailchimp_key", HEX[:32] + "-us12"),
        ("pypi_token", "pypi-AgEI" + MIXED[:60]),
        ("huggingface_token", "hf_" + MIXED[:34]),
        ("shopify_token", "shpat_" + HEX[:32]),
        ("vendor_token", "npm_" + MIXED[:36]),
        ("vendor_token", "dop_v1_" + HEX[:64]),
        ("vendor_token", "gsk_" + MIXED[:52]),
        ("vendor_token", "mem_" + HEX[:32]),
        ("jwt", JWT),
        ("webhook", "https://hooks.slack.com/services/T00000000/B00000000/" + MIXED[:24]),
    ],
)
def test_keys_of_the_well_known_vendors_are_found(found_in, kind, key):
    assert found_in(f"we use {key} for it") == [(kind, key)]
    assert found_in(f'KEY="{key}"') == [(kind, key)]


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn-something-long-name",
        "xoxb-your-slack-token",
        "ghp_short",
        "AKIAlowercase1234567",
        "eyJhbGciOiJIUzI1NiJ9",
        HEX[:40],
        f"sha256:{HEX[:64]}",
        f"key-{HEX[:31]}",
    ],
)
def test_hashes_names_and_examples_are_no_keys(found_in, text):
    assert found_in(text) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("postgres://app:s3cret@db:5432/x", "app:s3cret"),
        ("https://user:p%40ss@example.com/", "user:p%40ss"),
        ("redis://:pw@cache:6379", ":pw"),
        ("https://a1b2c3d4e5f6g7h8i9j0@github.com/o/r", "a1b2c3d4e5f6g7h8i9j0"),
    ],
)
def test_user_and_password_of_a_url_are_found_and_nothing_else_of_it(found_in, text, value):
    assert found_in(text) == [("url_credentials", value)]


@pytest.mark.parametrize(
    "text",
    [
        "http://host:8080/a@b",
        "https://github.com/o/r@v1",
        "https://${U}:${P}@h",
        "https://u:<password>@h",
        "ssh://git@h/r",
    ],
)
def test_ports_paths_and_placeholders_are_no_credentials(found_in, text):
    assert found_in(text) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("password = hunter2", "hunter2"),
        ("PASSWORD=swordfish", "swordfish"),
        ("DB_PASSWORD: 'a b c'", "a b c"),
        ('{"password": "x y z"}', "x y z"),
        ("Password: swordfish\n", "swordfish"),
        ("my password is hunter2!", "hunter2"),
        ("with password 'B@nZes'", "B@nZes"),
        ("?user=a&password=testpass&x=1", "testpass"),
        ("Passwort: geheim1", "geheim1"),
        ("密码：abc12345", "abc12345"),
    ],
)
def test_passwords_are_found_where_they_are_assigned_or_told(found_in, text, value):
    assert found_in(text) == [("password", value)]


@pytest.mark.parametrize(
    "text",
    [
        "the password is wrong",
        "password required",
        "password: the one that you know",
        "password: str = None",
        'password = os.environ["X"]',
        "password = getpass()",
        "login(password=hashed, salt=salt)",
        "PASSWORD=${DB_PASSWORD}",
        "password: ********",
        "password: <your password>",
        "**Password Hashing**",
        '<label for="password" class="x">',
        "check_password(password)\n    @staticmethod",
    ],
)
def test_prose_code_and_placeholders_are_no_passwords(found_in, text):
    assert found_in(text) == []


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("secret_assignment", "api_key = abcd1234efgh5678", "abcd1234efgh5678"),
        ("secret_assignment", 'client_secret: "xK9d8f7g6h5j"', "xK9d8f7g6h5j"),
        ("secret_assignment", f"AWS_SECRET_ACCESS_KEY={MIXED[:40]}", MIXED[:40]),
        ("secret_assignment", "my api key is abcd1234efgh5678.", "abcd1234efgh5678"),
        ("bearer_token", f"Authorization: Bearer {MIXED[:40]}", MIXED[:40]),
        ("basic_auth", "Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("azure_key", f"AccountName=x;AccountKey={MIXED[:86]}==;", f"{MIXED[:86]}=="),
    ],
)
def test_other_secrets_are_found_by_the_text_before_them(found_in, kind, text, value):
    assert found_in(text) == [(kind, value)]


@pytest.mark.parametrize(
    "text",
    [
        "token: 4096000000",
        "max_tokens=4096",
        "API key: your-api-key-here",
        "bearer of bad news",
        "secret = settings.secret1",
    ],
)
def test_numbers_words_and_code_are_no_secrets(found_in, text):
    assert found_in(text) == []


PRIVATE_KEY = (
    f"-----BEGIN RSA PRIVATE KEY-----\n{MIXED[:64]}\n{MIXED[:64]}\n{MIXED[:20]}==\n-----END RSA PRIVATE KEY-----"
)


def test_a_private_key_is_found_whole(found_in):
    assert found_in(f"my key:\n{PRIVATE_KEY}\nkeep it") == [("private_key", PRIVATE_KEY)]


def test_a_private_key_that_was_cut_off_is_found_to_its_end(found_in):
    cut = PRIVATE_KEY[:120]
    assert found_in(cut) == [("private_key", cut)]


def test_a_public_key_is_none(found_in):
    assert found_in(PRIVATE_KEY.replace("RSA PRIVATE", "PUBLIC")) == []
