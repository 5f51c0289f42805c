"""Sensitive topics: which of them a text touches, by the words that stand for them.

Words are compared without case; their parts may be joined by spaces, hyphens or underscores, or not at all. A word is
found as a whole or in a plural with s, not inside of another; in scripts without spaces it is found anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import re2

from souvenir.privacy.prefilter import Prefilter

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

_JOINTS = re.compile(r"[\s_-]+")


def words_of(topic: str) -> Sequence[str]:
    """The words of a topic that the rules name without words: known ones, or the name itself."""
    return KNOWN_TOPICS.get(topic.lower(), (topic,))


class Topics:
    """Finds topics in texts, all in one pass. Safe for many threads."""

    def __init__(self, words: Mapping[str, Sequence[str]]) -> None:
        self.names = tuple(words)
        self._any_word = Prefilter([_pattern(words[name]) for name in self.names])

    def in_text(self, data: bytes) -> tuple[str, ...]:
        """Names of the topics, in the order of the rules.

        :param data: The text in UTF-8.
        """
        return tuple(self.names[index] for index in self._any_word.candidates(data))


def _pattern(words: Sequence[str]) -> str:
    return "(?i)" + "|".join(map(_word_pattern, words))


def _word_pattern(word: str) -> str:
    whole = r"[\s_-]*".join(re2.escape(part) for part in _JOINTS.split(word) if part)
    before = "(?:^|[^A-Za-z])" if _is_western(word[0]) else ""
    after = "(?:'?s)?(?:$|[^A-Za-z])" if _is_western(word[-1]) else ""
    return f"{before}{whole}{after}"


def _is_western(letter: str) -> bool:
    return letter.isascii() and letter.isalpha()
