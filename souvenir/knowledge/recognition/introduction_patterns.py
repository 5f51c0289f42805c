"""The words by which a sentence introduces or explains a person, in English, German, Spanish and Dutch.

Each pattern is searched in one sentence with a mark before the person, in any case.
"""

from __future__ import annotations

from souvenir.knowledge.recognition import necessary_words as necessary
from souvenir.knowledge.recognition.definition_forms import N
from souvenir.knowledge.recognition.statement_patterns import MONTH
from souvenir.knowledge.recognition.word_patterns import with_one_of

_NEW = r"(?:new|neue[nmrs]?|nuev[oa]|nieuwe?)"
_A = r"\b(?:an?|ein(?:e[nrm]?)?|una?|een)"
_MAN = "(?:man|woman|guy|lad|girl|boy|bloke|lady|person|colleague|mann|frau|hombre|mujer|vrouw)"
_JOINED = (
    r"(?:(?:has |have |just |only )*(?:joined(?! (?:an?|the|my|his|her|their)\b(?! (?:team|company|firm)))"
    r"|start(?:ed|s|ing)(?= (?:with|here|at|on|last|this|next|today|tomorrow|yesterday|properly|in|as)\b|[,.;!]|$"
    rf"| (?:\d{{1,2}}(?:st|nd|rd|th)? {MONTH}|{MONTH} \d))"
    r"|is starting\b)|fängt\b.*\ban\b|(?:empieza|empezó|begint|is begonnen)\b)"
)
INTRODUCED = with_one_of(
    necessary.INTRODUCED,
    rf"\b{_NEW}(?: (?!for\b|from\b|with\b|by\b|and\b|für\b|von\b|und\b|para\b|y\b|voor\b|en\b)[\w’'-]+){{1,5}}?,?"
    rf"(?: (?:is|ist|es|called|named|heißt|heet|namens|se llama|llamad[oa]))* {N}",
    rf"{N}, (?:an?|the|my|our|die|der|unsere?|meine?|la|el|mi|nuestr[oa]|de|onze?|mijn) (?:\w+ )?{_NEW} [\w’' -]+"
    r"(?=[,.;!]|$)",
    rf"{N},? (?:(?:she|he|they)(?: is| are|['’]s|['’]re)|s?hes|is|are) new\b",
    rf"\b(?:hired|recruited|contratado a|eingestellt(?: habe[n]?)?:?|aangenomen:?) (?:\w+ )?{N}",
    rf"{N}(?: [\w’']+){{0,5}},? {_JOINED}",
    rf"\b(?:un|el|mi|nuestro|una|la|nuestra) \w+ nuev[oa],? (?:(?:que )?se llama |es )?{N}",
    rf"(?:\bsomeone|\bjemand|\balguien|\biemand|{_A} (?:\w+ )?{_MAN})(?: \w+){{0,4}} (?:call|nam|llamad)\w+ {N}",
    parts=necessary.PARTS_OF_INTRODUCED,
)
"""A sentence that says of the marked person that they are new in the life of the author: "a man called Bo"."""

BY_ARTICLE = with_one_of(
    "a an ein eine einen einer einem un una een",
    rf"{_A} {N}(?= (?:who|from|at|in|is|comes|für|von|aus|ist|de|del|que|voor|van|uit)\b|[,.;!]|$)",
)
"""An indefinite article before a person whom the reader does not know yet: "a Mrs Lindqvist"."""

EXPLAINED = with_one_of(
    necessary.EXPLAINED,
    rf"{N},? (?:s?he['’]?s|s?he is|they['’]re) (?:the|my|our)\b",
    rf"\b(?:this|that|the|an?) (?:\w+ )?{_MAN}(?: (?:at|from|in) (?:[\w’']+ ){{0,2}}[\w’']+)?,? {N}",
    rf"\bcontact\b[^,.;]{{0,30}} (?:is|ist|es) {N}",
)
"""A sentence that explains who the marked person is: "Kofi, he's the manager of The Heron"."""
