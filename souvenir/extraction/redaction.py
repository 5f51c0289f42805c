"""A transcript as the privacy rules leave it, in whatever form it was sent.

Rules read characters, and JSON writes some of them otherwise: what begins a line stands behind a letter `n` there, and
an `@` may be a number. So each value of JSON is screened as what it says, and written anew only where that changes it:
what is left is JSON still, and says nothing that was not screened. Linear in the text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from souvenir.engine.screening import AppliedPolicy
from souvenir.extraction.json_form import TOKEN, is_json, read_json, storable


def redacted(text: str, policy: AppliedPolicy) -> str:
    """:raises PersonalDataRejected: If it holds what the policy rejects."""
    if is_json(text):
        return "".join(_values(text, policy))
    if read_json(text) is None:
        return policy.text(text)
    lines = text.splitlines(keepends=True)
    return "".join("".join(_values(line, policy)) if is_json(line) else policy.text(line) for line in lines)


def _values(text: str, policy: AppliedPolicy) -> Iterator[str]:
    """The parts of a JSON text; what stands under a name is read behind it."""
    known: dict[tuple[str, str], str] = {}
    name, done = "", 0
    for token in TOKEN.finditer(text):
        written = token[token.lastindex or 0]
        yield text[done : token.end() - len(written)]
        done = token.end()
        if token[2]:
            name = "" if written in "{}" else name
            yield written
            continue
        is_name = text[done : done + 20].lstrip(" \t\r\n").startswith(":")
        case = ("" if is_name else name, written)
        if case not in known:
            known[case] = _screened(*case, policy)
        yield known[case]
        if is_name:
            name = json.loads(written, strict=False)
    yield text[done:]


def _screened(name: str, written: str, policy: AppliedPolicy) -> str:
    says: str = json.loads(written, strict=False) if written.startswith('"') else written
    safe = policy.value(name, says)
    return written if safe == says else json.dumps(storable(safe), ensure_ascii=False)
