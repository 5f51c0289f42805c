"""A set from a seeded generator: kinds of personal data that are rare in data sets, and text that resembles them.

Keys and URLs with credentials have the forms that their makers document, so finding them says that the rules know these
forms, not that keys in the wild have no others. What is not labelled is there to be left alone.
"""

from __future__ import annotations

import string
import uuid
from collections.abc import Callable
from random import Random

from benchmarks.privacy.data_sets import IBAN, SECRET, URL, Label, LabelledText

SEED = 20260731
TEXTS = 2000

Make = Callable[[Random], str]

_MIXED = string.ascii_letters + string.digits
_URL_SAFE = _MIXED + "-_"
_HEX = "0123456789abcdef"
_UPPER = string.ascii_uppercase + string.digits


def synthetic_texts() -> list[LabelledText]:
    """Half of the texts with one secret or account, half with something that is none; the same on every run."""
    random = Random(SEED)
    return [_labelled(random) if number % 2 else LabelledText(_negative(random), []) for number in range(TEXTS)]


def _labelled(random: Random) -> LabelledText:
    kind, make, frames = random.choice(_POSITIVES)
    whole, _, inner = make(random).partition("\0")
    before, _, after = random.choice(frames).partition("{}")
    start = len(before) + whole.index(inner)
    return LabelledText(before + whole + after, [Label(start, start + len(inner or whole), kind)])


def _negative(random: Random) -> str:
    frame = random.choice(["{}", "We saw {} again.", "Note: {}; nothing else.", "我们看到{}。", "see {} (thanks)"])
    return frame.replace("{}", random.choice(_NEGATIVES)(random))


def _some(random: Random, alphabet: str, count: int) -> str:
    return "".join(random.choices(alphabet, k=count))


def _digits(random: Random, *counts: int) -> str:
    """Numbers of so many digits, with hyphens between them."""
    return "-".join(_some(random, string.digits, count) for count in counts)


def _dotted(random: Random, *limits: int) -> str:
    return ".".join(str(random.randrange(limit)) for limit in limits)


def _day(random: Random, form: str) -> str:
    return form.format(y=random.randrange(1950, 2040), m=random.randrange(1, 13), d=random.randrange(1, 29))


def _token(prefix: str, alphabet: str, *counts: int) -> Make:
    """A prefix and parts of so many characters, with points between them."""
    return lambda random: prefix + ".".join(_some(random, alphabet, count) for count in counts)


def _sk_key(prefix: str, count: int) -> Make:
    """With a digit and a letter at least, as a key of that length has."""
    return lambda random: f"{prefix}7a{_some(random, _URL_SAFE, count - 3)}{random.choice(_MIXED)}"


def _private_key(random: Random) -> str:
    body = f"{_some(random, _MIXED, 64)}\n{_some(random, _MIXED, 40)}=="
    return f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"


_KEYS: tuple[Make, ...] = (
    _token("AKIA", string.ascii_uppercase + "234567", 16),
    _token("ghp_", _MIXED, 36),
    lambda r: f"github_pat_{_some(r, _MIXED, 22)}_{_some(r, _MIXED, 59)}",
    _sk_key("glpat-", 20),
    lambda r: f"xoxb-{_digits(r, 12, 13)}-{_some(r, _MIXED, 24)}",
    _token("sk_live_", _MIXED, 24),
    _sk_key("sk-proj-", 48),
    _sk_key("sk-ant-api03-", 95),
    _token("AIza", _MIXED, 35),
    _token("SG.", _MIXED, 22, 43),
    _token("SK", _HEX, 32),
    lambda r: f"{_some(r, _HEX, 32)}-us{r.randrange(1, 21)}",
    _token("npm_", _MIXED, 36),
    _token("hf_", string.ascii_letters, 34),
    _token("dop_v1_", _HEX, 64),
    _token("shpat_", _HEX, 32),
    lambda r: f"{_some(r, string.digits[1:], 10)}:AA{_some(r, _URL_SAFE, 32)}{r.choice(_MIXED)}",
    lambda r: f"eyJ{_some(r, _MIXED, 33)}.eyJ{_some(r, _MIXED, 60)}.{_some(r, _MIXED, 43)}",
    _private_key,
)
_KEY_FRAMES = (
    "{}",
    "The key is {} and it works.",
    'api_key = "{}"',
    "export TOKEN={}\nmake deploy",
    "请用这个密钥：{}。",
    "curl -H 'Authorization: Bearer {}' https://api.example.com/v1",
)


def _password(random: Random) -> str:
    word = random.choice(["hunter", "Winter", "s3cret", "correct-horse"])
    return f"{word}{_digits(random, 3)}{random.choice('!$%x')}"


_PASSWORD_FRAMES = ("password = {}", "DB_PASSWORD: '{}'", '{"password": "{}"}', "my password is {} since May")
_SCHEMES = ("postgres", "postgresql+asyncpg", "mysql", "mongodb+srv", "redis", "amqp", "https", "ftp")


def _url(random: Random) -> str:
    """The URL, and after a NUL the part of it that lets somebody in."""
    login = f"{random.choice(['app', 'root', 'ann.lee', 'svc-7'])}:{_password(random)}"
    host = random.choice(["db", "10.example.com", "cache.internal"])
    return f"{random.choice(_SCHEMES)}://{login}@{host}:{random.randrange(1024, 65536)}/x\0{login}"


_URL_FRAMES = ("{}", "DATABASE_URL={}", "connect to {} first", "<{}>")

# Letters, digits and letters or digits, and how many of them.
_ACCOUNTS = {
    "CH": "d5c12",
    "DE": "d18",
    "ES": "d20",
    "FR": "d10c11d2",
    "GB": "a4d14",
    "MT": "a4d5c18",
    "NL": "a4d10",
    "NO": "d11",
}


def _iban(random: Random) -> str:
    """Of a country by its form, with the right check digits, in one piece or in fours."""
    country = random.choice(list(_ACCOUNTS))
    alphabets = {"a": string.ascii_uppercase, "c": _UPPER, "d": string.digits}
    parts = "".join(f" {letter}" if letter in alphabets else letter for letter in _ACCOUNTS[country]).split()
    account = "".join(_some(random, alphabets[part[0]], int(part[1:])) for part in parts)
    number = int("".join(str(int(letter, 36)) for letter in f"{account}{country}00"))
    whole = f"{country}{98 - number % 97:02}{account}"
    return whole if random.random() < 0.5 else " ".join(whole[at : at + 4] for at in range(0, len(whole), 4))


_IBAN_FRAMES = ("{}", "Please send it to {}.", "IBAN: {}\nBIC: XXXXDEFF", "konto {}, danke")

_POSITIVES: tuple[tuple[str, Make, tuple[str, ...]], ...] = (
    *((SECRET, key, _KEY_FRAMES) for key in _KEYS),
    *(((SECRET, _password, _PASSWORD_FRAMES),) * 4),
    *(((URL, _url, _URL_FRAMES),) * 6),
    *(((IBAN, _iban, _IBAN_FRAMES),) * 8),
)


def _isbn(random: Random) -> str:
    digits = [9, 7, 8, *random.choices(range(10), k=9)]
    digits.append(-sum(digit * (3 if at % 2 else 1) for at, digit in enumerate(digits)) % 10)
    text = "".join(map(str, digits))
    return f"ISBN {text[:3]}-{text[3]}-{text[4:7]}-{text[7:12]}-{text[12]}"


def _moment(random: Random) -> str:
    return f"{_day(random, 'on {y}-{m:02}-{d:02}')} at {random.randrange(24):02}:{random.randrange(60):02}"


def _dollars(random: Random) -> str:
    return f"it costs ${random.randrange(1, 10)},{_digits(random, 3)},{_digits(random, 3)}.{_digits(random, 2)}"


_NEGATIVES: tuple[Make, ...] = (
    _moment,
    lambda r: _day(r, "am {d:02}.{m:02}.{y}"),
    lambda r: _day(r, "{m}/{d}/{y}"),
    lambda r: f"order {_digits(r, r.randrange(8, 15))} was shipped",
    lambda r: f"Order number {_digits(r, 3, 7, 7)}",
    lambda r: f"invoice {r.randrange(2015, 2030)}-{_digits(r, 6)}",
    lambda r: f"version {_dotted(r, 20, 20, 20, 200)}",
    lambda r: f"numpy=={_dotted(r, 3, 30, 9)}, v{_dotted(r, 9, 20, 9)}-rc{r.randrange(9)}",
    lambda r: f"commit {_some(r, _HEX, 40)}",
    lambda r: f"fixed in {_some(r, _HEX, 7)} and {_some(r, _HEX, 12)}",
    lambda r: f"sha256:{_some(r, _HEX, 64)}",
    lambda r: str(uuid.UUID(int=r.getrandbits(128), version=4)),
    _isbn,
    _dollars,
    lambda r: f"{r.randrange(1, 1000)} {_digits(r, 3)} {_digits(r, 3)} EUR",
    lambda r: f"at {r.randrange(10**9, 2 * 10**9)} or {r.randrange(10**12, 2 * 10**12)} ms",
    lambda r: f"{r.uniform(-90, 90):.6f}, {r.uniform(-180, 180):.6f}",
    lambda r: f"pages {r.randrange(100, 500)}-{r.randrange(500, 999)} of {r.randrange(1000, 9999)}",
    lambda r: f"localhost:{r.randrange(1024, 65536)} and 127.0.0.1, mask 255.255.255.0",
    lambda r: "std::vector<a::b>, x[1::2], icon@2x.png, git@github.com:o/r.git",
    lambda r: "password = os.environ['DB_PASSWORD'], password: str, the password is wrong, password=${PASSWORD}",
    lambda r: f"max_tokens={r.randrange(10**6, 10**7)}, token count: {r.randrange(10**7, 10**8)}",
)
