"""Query framing: the words of a query around its subject, and what they ask for.

`without_framing` removes the words of a query that only pull its vector towards lists and conversations ("Can you list
the order in which I brought up ..."). The patterns are English and linear in the length of the query.
"""

from __future__ import annotations

import re

_LEAST_WORDS = 3
"""If fewer words are left, the query had no framing around a subject."""

_OUR = r"(?:all )?(?:of )?(?:our|my|these|the|this)"
_PAST = r"(?:(?:past|previous|earlier|various|different) )?"
_TALKS = r"(?:conversation|chat|discussion|session|message)s?"
_FULL = r"(?:(?:clear|comprehensive|complete|detailed|brief|short|full|thorough|quick|concise) ?)?"
_RAISED = r"(?:brought up|discussed|mentioned|talked about|asked about|covered|raised)"
_THINGS = r"(?:aspect|part|topic|feature|concept|element|thing)s"
_ORDERS = (
    r"list|tell me|give me|provide(?: me)?|write|walk me through|show me|remind me|recap|summari[sz]e|describe|explain|"
    r"outline|help me understand|help me"
)

# The order matters: removing one frame moves the next one to the beginning.
_FRAMES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bmention only(?: and only)?\b[^.?!]*[.?!]?",
        r"^(?:hey|hi|hello|ok|okay|so|please)[, ]+",
        r"^(?:can|could|would|will) you(?: please| also)?\b",
        r"\bplease\b",
        rf"^\s*(?:{_ORDERS})\b(?: (?:in order|of|about))?",
        rf"\b(?:with )?(?:an? )?{_FULL}(?:summary|overview|recap|rundown) of\b",
        r"\b(?:(?:the|what|in what|in which|in) )?order (?:in which|of how|of|that|did|how)\b",
        rf"\b(?:how )?(?:i|we)(?:'ve| have)? {_RAISED}\b",
        rf"\bdifferent {_THINGS}(?: (?:of|related to))?\b",
        rf"\b(?:throughout|across|in|over|during|from|of|through) {_OUR} {_PAST}{_TALKS}\b",
        r",? in (?:chronological )?order\b",
        r"\b(?:so far|over time|throughout|along the way)\b",
        r"\bhow (?:my|our|the)\b",
    )
)
_SPACES = re.compile(r"\s+")

_SUMMARY = re.compile(r"\bsummar|\boverview\b|\brecap", re.IGNORECASE)
_REQUEST = re.compile(r"\b(?:can|could|would|will) you\b(?: please)?", re.IGNORECASE)
_SAYING = (
    "recommend|suggest|advis|propos|expla|describ|told|tell|said|say|mention|outlin|list|provid|gave|give|show|walk|help|"
    "includ|compar|structur|organi|calculat|estimat|use|cover|come up"
)
_YOU_SAID = re.compile(rf"\byou(?:'ve| have)?\b(?! ask)(?: \w+){{0,2}} ?\b(?:{_SAYING})", re.IGNORECASE)
_YOUR_WORDS = re.compile(
    r"\byour (?:suggest|recommend|advice|expla|answer|respon|example|previous|earlier|step|guid)|\bdid you\b",
    re.IGNORECASE,
)


def without_framing(question: str) -> str:
    """Return the subject of a query; the query itself if it has no framing, or little would be left."""
    left = question
    for frame in _FRAMES:
        left = frame.sub(" ", left)
    left = _SPACES.sub(" ", left).strip(" ,.?!")
    framed = left != _SPACES.sub(" ", question).strip(" ,.?!")
    return left if framed and len(left.split()) >= _LEAST_WORDS else question


def asks_the_assistant(question: str) -> bool:
    """Return whether it asks what the assistant said, or for a summary; "can you suggest" asks for something new."""
    asked = _REQUEST.sub("", question)
    return bool(_YOU_SAID.search(asked) or _YOUR_WORDS.search(asked) or _SUMMARY.search(asked))
