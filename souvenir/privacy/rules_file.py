"""The rules file: YAML written by people, validated, with one sentence for its first error.

`config/privacy.yaml` is an example. A file without `secret_patterns` uses the shipped ones, so that a file about
personal data only does not disable the protection of secrets; an empty section means none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import phonenumbers
import yaml
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from souvenir.core.errors import PrivacyRulesUnusable
from souvenir.core.files import RESOURCES

SHIPPED = RESOURCES / "config" / "privacy.yaml"

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Text = Annotated[str, StringConstraints(min_length=1)]
Word = Annotated[str, StringConstraints(pattern=r"[^\W_]", strip_whitespace=True, max_length=200)]

KNOWN_TOPICS: Mapping[str, Sequence[str]] = {
    topic: [word.strip() for word in words.split(",")]
    for topic, words in {
        "health": """
            health, healthcare, medical, medicine, medication, prescription, doctor, physician, hospital, clinic,
            nurse, illness, sickness, disease, diagnosis, diagnoses, diagnosed, symptom, surgery, therapy,
            therapist, psychiatrist, psychologist, cancer, tumor, tumour, diabetes, diabetic, asthma, depression,
            depressed, anxiety, bipolar, autism, adhd, dementia, heart attack, had a stroke, blood pressure, blood
            type, allergy, allergies, allergic, pregnant, pregnancy, miscarriage, abortion, hiv, vaccine,
            vaccinated, disability, disabled, chronic pain, insulin, antidepressant, addiction, rehab""",
        "financial": """
            financial, finances, bank account, bank balance, salary, salaries, wage, payroll, income, mortgage,
            loan, debt, overdraft, credit card, credit score, credit limit, debit card, iban, routing number, tax
            return, taxes, bankruptcy, bankrupt, investment, pension, savings, net worth, brokerage, shareholding,
            inheritance, alimony, crypto wallet""",
        "legal": """
            legal, lawyer, attorney, solicitor, lawsuit, litigation, court case, court order, court hearing, in
            court, sued, plaintiff, defendant, prosecutor, indictment, subpoena, verdict, convicted, conviction,
            criminal record, arrested, arrest, probation, parole, custody, divorce, restraining order, power of
            attorney, immigration status, asylum, non-disclosure agreement, nda""",
        "password": """
            password, passwd, pwd, passcode, passphrase, pin code, pin number, login credentials, credentials,
            master key, security question, one-time code, 2fa code, recovery code, seed phrase""",
        "api_key": """
            api_key, secret key, access key, private key, client secret, api secret, ssh key, encryption key""",
        "token": """
            token, jwt, bearer, oauth, session cookie""",
    }.items()
}


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class _Pattern(_Section):
    regex: Text
    redaction: Text
    check: str | None = None


class _MemoryRules(_Section):
    redact_before_storage: bool = False
    sensitive_topics: list[Word] | dict[Word, list[Word] | None] = []


class _File(_Section):
    pii_patterns: dict[Name, _Pattern] = {}
    secret_patterns: dict[Name, _Pattern] | None = None
    memory_rules: _MemoryRules = _MemoryRules()
    categories: list[Word] = []
    phone_regions: list[str] | None = None


@dataclass(frozen=True, slots=True)
class PatternRule:
    """A pattern of the file: `name` is the kind of its findings, `rank` its position among all patterns."""

    rank: int
    name: str
    regex: str
    redaction: str
    check: str | None
    is_secret: bool


@dataclass(frozen=True, slots=True)
class RulesFile:
    """Secret patterns come first; otherwise everything is in the order of the file."""

    path: Path
    patterns: Sequence[PatternRule]
    redact_before_storage: bool
    topics: Mapping[str, Sequence[str]]
    categories: tuple[str, ...]
    phone_regions: tuple[str, ...]


def read_rules_file(path: Path) -> RulesFile:
    """:raises PrivacyRulesUnusable: The message names the error."""
    file = _read(path)
    shipped = None
    if file.secret_patterns is None or file.phone_regions is None:
        shipped = _read(SHIPPED)
    secrets = shipped.secret_patterns if shipped and file.secret_patterns is None else file.secret_patterns
    regions = shipped.phone_regions if shipped and file.phone_regions is None else file.phone_regions
    twice = (secrets or {}).keys() & file.pii_patterns.keys()
    if twice:
        raise PrivacyRulesUnusable(path, f"{min(twice)!r} is the name of two patterns; rename one")
    for region in regions or ():
        if region not in phonenumbers.SUPPORTED_REGIONS:
            raise PrivacyRulesUnusable(path, f"phone_regions has no region {region!r}; it takes codes such as US or DE")
    topics = file.memory_rules.sensitive_topics
    return RulesFile(
        path,
        _rules(secrets or {}, file.pii_patterns),
        file.memory_rules.redact_before_storage,
        {name: tuple((topics[name] if isinstance(topics, dict) else None) or words_of(name)) for name in topics},
        tuple(dict.fromkeys(file.categories)),
        tuple(dict.fromkeys(regions or ())),
    )


def _rules(secrets: Mapping[str, _Pattern], pii: Mapping[str, _Pattern]) -> list[PatternRule]:
    return [
        PatternRule(rank, name, pattern.regex, pattern.redaction, pattern.check, is_secret=rank < len(secrets))
        for rank, (name, pattern) in enumerate([*secrets.items(), *pii.items()])
    ]


def _read(path: Path) -> _File:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = f"the file cannot be read ({error.strerror}); correct PRIVACY_CONFIG"
        raise PrivacyRulesUnusable(path, reason) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f" in line {mark.line + 1}" if mark else ""
        raise PrivacyRulesUnusable(path, f"it is not YAML in UTF-8{place}; correct it") from error
    try:
        return _File.model_validate(content)
    except ValidationError as error:
        raise PrivacyRulesUnusable(path, _sentence(error.errors(include_input=False, include_url=False)[0])) from error


def _sentence(error: Any) -> str:
    place = ".".join(str(part) for part in error["loc"]) or "the file"
    if error["type"] == "extra_forbidden":
        return f"{place} is not known; remove it, or correct its name"
    return f"{place}: {error['msg']}"


def words_of(topic: str) -> Sequence[str]:
    """Return the words of a topic that is listed without words: known ones, or the name itself."""
    return KNOWN_TOPICS.get(topic.lower(), (topic,))
