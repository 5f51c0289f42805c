"""Ask a language model for claims about the concepts and topics of a conversation, and check its answer.

The model gets messages of one session, after hygiene and redaction, the names of the concepts that they mention, and
their topics. A claim is accepted if its quote occurs in one of these messages (for a topic, in one of its own), if its
concepts are mentioned in the session, and if the message supports it as far as that can be verified. Invariant: each
item of an answer is either a claim or counted as dropped under a reason.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from souvenir.core.errors import PersonalDataRejected
from souvenir.core.text import defuse, fenced, sentences
from souvenir.core.types import ClaimKind, JsonObject, MessageRole, TopicClaimKind
from souvenir.knowledge.claim_types import ProposedClaim, type_name
from souvenir.knowledge.recognition.extraction import mentioned
from souvenir.knowledge.recognition.spelling import MAX_KEY_CHARS, key_of
from souvenir.learning.proposals import WINDOW_CHARS, shortened
from souvenir.learning.questions import Text, ask
from souvenir.learning.quotes import find_quote
from souvenir.learning.transcripts.transcript import screened_turn
from souvenir.learning.transcripts.turns import Piece, Transcript, TranscriptTurn, TurnRole
from souvenir.learning.transcripts.windows import FRAME, windows
from souvenir.memories.similarity import figures
from souvenir.models.llm.prompts import Prompt, prompt_of
from souvenir.models.llm.provider import LLMProvider
from souvenir.privacy.screening import AppliedPolicy
from souvenir.store.graph.claims import MessageRange, TopicClaimDraft
from souvenir.store.graph.description_queue import Undescribed

PROMPT = "describe"

NAMES, TOPICS = "names", "topics"
"""The frames of the names and topics; that of the transcript is `FRAME`."""

MAX_MESSAGE_CHARS = 12_000
"""Longer messages are cut."""

HEAD_CHARS = 130
"""Approximate overhead of a message in a window."""

MAX_NAMES = 150
"""Maximum number of names in a prompt: those that the session mentions most."""

MAX_CLAIMS = 40
"""Maximum number of claims in one answer; further ones are dropped."""

MAX_DESCRIPTION_CHARS = 300

MAX_NAME_WORDS, MAX_NAME_CHARS = 5, 60
MAX_SUMMARY_SENTENCES, MAX_SUMMARY_CHARS = 3, 400
"""Limits of a topic's name and summary."""

MALFORMED = "malformed"

_FOLDER = Path(__file__).with_name("prompts")
_TOPIC_NUMBER = re.compile(r"\[?t?(\d{1,4})\]?", re.IGNORECASE)
_ROLES = {MessageRole.USER: TurnRole.USER, MessageRole.ASSISTANT: TurnRole.ASSISTANT}


def _lower(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


class ClaimItem(BaseModel):
    """A confidence out of range is clamped."""

    kind: Annotated[
        Literal["relation", "description", "alias", "kind", "topic_name", "topic_summary"], BeforeValidator(_lower)
    ]
    concept: Text
    text: Text
    other: str | None = None
    quote: str = ""
    confidence: Annotated[float, Field(allow_inf_nan=False)] = 0.5


class ClaimItems(BaseModel):
    claims: list[ClaimItem]


@dataclass(frozen=True, slots=True)
class ShownTopic:
    """:param messages: Ids of its messages."""

    id: int
    name: str
    messages: Set[int]


@dataclass(frozen=True, slots=True)
class ClaimMaterial:
    """:param messages: Messages that no model has read yet. :param context: The messages just before them.

    :param names: Key and form of the session's concepts, the most mentioned first.
    :param mentioned: The keys that each message mentions, by message id.
    :param topics: The topics of the messages. :param shown: Where messages and context stand.
    :param digest: That of all texts between the first and the last of them.
    """

    messages: Sequence[Undescribed]
    context: Sequence[Undescribed]
    names: Sequence[tuple[str, str]]
    mentioned: Mapping[int, Sequence[str]]
    topics: Sequence[ShownTopic]
    shown: MessageRange
    digest: str


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """:param dropped: Number of dropped claims by kind and reason. :param call: The usage of the call."""

    found: tuple[ProposedClaim, ...]
    topics: tuple[TopicClaimDraft, ...]
    dropped: Mapping[tuple[str, str], int]
    call: JsonObject


def first_of(messages: Sequence[Undescribed]) -> list[Undescribed]:
    """Return as many of the first messages as fit into one prompt, at least one."""
    chosen, budget = list[Undescribed](), WINDOW_CHARS
    for message in messages:
        budget -= min(len(message.content), MAX_MESSAGE_CHARS) + HEAD_CHARS
        if chosen and budget < 0:
            break
        chosen.append(message)
    return chosen


def question(material: ClaimMaterial, policy: AppliedPolicy) -> tuple[Prompt, Sequence[TranscriptTurn]] | None:
    """Return the prompt, and the turns of the messages; None if they mention nothing.

    :param policy: A policy that refuses nothing.
    """
    if not any(material.mentioned.get(message.id) for message in material.messages):
        return None
    context = [_turn(message, policy) for message in material.context]
    turns = [_turn(message, policy) for message in material.messages]
    if not any(turn.pieces for turn in turns):
        return None
    transcript = Transcript("", (*context, *turns), ())
    [window] = windows(transcript, max_chars=100 * WINDOW_CHARS, overlap_turns=0)
    forms = list(dict.fromkeys(policy.text(form) for _, form in material.names))[:MAX_NAMES]
    parts = [_framed("\n".join(" ".join(form.split()) for form in forms), NAMES)]
    if material.topics:
        parts.append(_framed(_listed(material, policy), TOPICS))
    parts.append(defuse(defuse(window.text, name=NAMES), name=TOPICS))
    return prompt_of(_FOLDER, PROMPT, "".join(parts)), turns


def _framed(text: str, frame: str) -> str:
    for other in {NAMES, TOPICS, FRAME} - {frame}:
        text = defuse(text, name=other)
    return fenced(text, name=frame)


def _listed(material: ClaimMaterial, policy: AppliedPolicy) -> str:
    """Return the topics, one on a line, each with its number, name and turns."""
    lines = []
    for number, topic in enumerate(material.topics, 1):
        turns = [
            str(len(material.context) + place)
            for place, message in enumerate(material.messages)
            if message.id in topic.messages
        ]
        lines.append(f"T{number}: {' '.join(policy.text(topic.name).split())} (turns {', '.join(turns)})")
    return "\n".join(lines)


def asked(
    provider: LLMProvider,
    material: ClaimMaterial,
    strict: AppliedPolicy,
    lenient: AppliedPolicy,
    before_request: Callable[[], None],
) -> ClaimAnswer | None:
    """Ask about some messages and check the answer; None if there is nothing to ask.

    :param strict: The policy that may refuse a claim. :param lenient: The policy for the prompt, which refuses nothing.
    :param before_request: Called if there is something to ask; it may raise.
    :raises LLMError: If there is no usable answer.
    """
    made = question(material, lenient)
    if made is None:
        return None
    prompt, turns = made
    before_request()
    answer = ask(provider, PROMPT, prompt, ClaimItems, "claims", ClaimItem)
    reader = _ClaimReader(material, turns, strict)
    found: dict[Any, ProposedClaim | TopicClaimDraft] = {}
    dropped = Counter[tuple[str, str]]()
    for at, item in enumerate(answer.items):
        claim = "over_limit" if at >= MAX_CLAIMS else reader.believed(item)
        if not isinstance(claim, str):
            same: Any = (claim.kind, claim.topic_id) if isinstance(claim, TopicClaimDraft) else _statement(claim)
            if same not in found:
                found[same] = claim
                continue
            claim = "repeated"
        dropped[item.kind, claim] += 1
    if answer.broken or "faults" in answer.call:
        # An answer that does not match the schema has lost something, even if no broken item can be counted.
        dropped["", MALFORMED] = max(1, len(answer.broken))
    return ClaimAnswer(
        tuple(one for one in found.values() if isinstance(one, ProposedClaim)),
        tuple(one for one in found.values() if isinstance(one, TopicClaimDraft)),
        dropped,
        answer.call,
    )


def _statement(claim: ProposedClaim) -> tuple[ClaimKind, str, str | None, str]:
    return claim.kind, claim.concept, claim.other, claim.text.casefold()


def _turn(message: Undescribed, policy: AppliedPolicy) -> TranscriptTurn:
    said = policy.text(message.content)[:MAX_MESSAGE_CHARS]
    speaker = None if message.speaker is None else policy.text(message.speaker)
    whole = TranscriptTurn(_ROLES[message.role], speaker, message.at, (Piece(0, len(said), said),))
    return screened_turn(whole)


class _ClaimReader:
    """Checks the items of an answer against the messages."""

    def __init__(self, material: ClaimMaterial, turns: Sequence[TranscriptTurn], strict: AppliedPolicy) -> None:
        self._material = material
        self._turns = turns
        self._strict = strict
        self._figures = {figure for turn in turns for figure in figures(turn.text)}
        self._keys = {key: key for key, _ in material.names}
        for key, form in material.names:
            self._keys.setdefault(key_of(form), key)
        self._forms: dict[str, list[str]] = {}
        for key, form in material.names:
            self._forms.setdefault(key, []).append(form)

    def believed(self, item: ClaimItem) -> ProposedClaim | TopicClaimDraft | str:
        """Return the claim, or the reason why it is dropped."""
        if item.kind in {kind.value for kind in TopicClaimKind}:
            return self._topic(item, TopicClaimKind(item.kind))
        concept = self._key(item.concept)
        if concept is None:
            return "unknown_concept"
        quote = find_quote(self._turns, item.quote) if item.quote.strip() else None
        if quote is None:
            return "quote_not_found"
        found = self._found(item, concept, quote.turn)
        if isinstance(found, str):
            return found
        kind, concept, other, text = found
        try:
            text = self._strict.text(text)
        except PersonalDataRejected as rejected:
            return rejected.code
        confidence = min(max(item.confidence, 0.0), 1.0)
        return ProposedClaim(kind, concept, other, text, confidence, self._material.messages[quote.turn].id)

    def _topic(self, item: ClaimItem, kind: TopicClaimKind) -> TopicClaimDraft | str:
        number = _TOPIC_NUMBER.fullmatch(item.concept)
        if number is None or not 1 <= int(number[1]) <= len(self._material.topics):
            return "unknown_topic"
        topic = self._material.topics[int(number[1]) - 1]
        own = [
            (one, turn)
            for one, turn in zip(self._material.messages, self._turns, strict=True)
            if one.id in topic.messages
        ]
        turns = [turn for _, turn in own]
        quote = find_quote(turns, item.quote) if item.quote.strip() else None
        if quote is None:
            return "quote_not_found"
        text = " ".join(item.text.split())
        if kind is TopicClaimKind.SUMMARY:
            spans = sentences(text)[:MAX_SUMMARY_SENTENCES]
            text = shortened(text[: spans[-1][1]].strip(), MAX_SUMMARY_CHARS)
        elif len(text.split()) > MAX_NAME_WORDS or len(text) > MAX_NAME_CHARS:
            return "too_long"
        if figures(text).keys() - {figure for turn in turns for figure in figures(turn.text)}:
            return "other_figures"
        try:
            text = self._strict.text(text)
        except PersonalDataRejected as rejected:
            return rejected.code
        message_id = own[quote.turn][0].id
        return TopicClaimDraft(kind, topic.id, text, message_id, self._material.shown, self._material.digest)

    def _found(self, item: ClaimItem, concept: str, turn: int) -> tuple[ClaimKind, str, str | None, str] | str:
        match item.kind:
            case "relation":
                return self._relation(item, concept, turn)
            case "alias":
                return self._alias(item, concept, turn)
            case "kind":
                named = type_name(item.text)
                return "no_type" if named is None else (ClaimKind.KIND, concept, None, named)
            case _:
                text = " ".join(item.text.split())
                if figures(text).keys() - self._figures:
                    return "other_figures"
                return ClaimKind.DESCRIPTION, concept, None, shortened(text, MAX_DESCRIPTION_CHARS)

    def _relation(self, item: ClaimItem, concept: str, turn: int) -> tuple[ClaimKind, str, str, str] | str:
        other, named = self._key(item.other or ""), type_name(item.text)
        if other is None:
            return "unknown_concept"
        if named is None:
            return "no_type"
        if other == concept:
            return "same_concept"
        if not self._says(turn, concept) and not self._says(turn, other):
            return "not_said_there"
        return ClaimKind.RELATION, concept, other, named

    def _alias(self, item: ClaimItem, concept: str, turn: int) -> tuple[ClaimKind, str, str | None, str] | str:
        """An alias merges two concepts, so the message itself must contain both names."""
        name = " ".join(item.text.split())
        known = self._keys.get(key_of(name))
        if known == concept:
            return "same_concept"
        if len(name) > MAX_KEY_CHARS:
            return "too_long"
        if not self._says(turn, concept) or not self._contains(turn, name):
            return "not_said_there"
        return (ClaimKind.ALIAS, concept, None, name) if known is None else (ClaimKind.ALIAS, known, concept, name)

    def _key(self, name: str) -> str | None:
        """Return the concept of the session that a name refers to."""
        key = key_of(name)
        if key in self._keys:
            return self._keys[key]
        within = {said.key for said in mentioned(name)} & self._keys.keys()
        return within.pop() if len(within) == 1 else None

    def _says(self, turn: int, key: str) -> bool:
        """Return True if the message of a turn mentions a concept."""
        if key in self._material.mentioned.get(self._material.messages[turn].id, ()):
            return True
        return any(self._contains(turn, form) for form in self._forms.get(key, ()))

    def _contains(self, turn: int, name: str) -> bool:
        return find_quote([self._turns[turn]], name) is not None


def digest_of(texts: Iterable[str]) -> str:
    """Return a digest of texts, which differs if one of them changed."""
    return hashlib.sha256("\x1f".join(texts).encode()).hexdigest()[:32]
