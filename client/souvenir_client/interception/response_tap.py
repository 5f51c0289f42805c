"""Captures the body of a response while the caller reads it, in any way.

The result of an SDK keeps its type and identity: only the stream of its HTTP response is wrapped, from which the
response reads in all cases (iterating, parsing, reading lines, closing). No SDK is imported: the response is found by
its public name. Bytes are kept unchanged; decompressing and parsing are done by `turns_of`, in the background.

    if not tap(answer, ended):  # ended gets a Tapped, once
        turns = wire.answer(answer)  # the SDK has read and parsed it itself
"""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from souvenir_client.interception.answers import turns_in
from souvenir_client.interception.wires import Turn, Wire

MAX_KEPT_BYTES = 16 * 2**20
"""Limit of a captured body. Answers in text are far smaller; the rest is passed on without being captured."""

_log = logging.getLogger("souvenir_client")


@dataclass(frozen=True, slots=True)
class Tapped:
    """The captured part of a body.

    :param chunks: The bytes as received, compressed as `content_encoding` says.
    :param complete: The body was read to its end and kept. A caller may stop after the last event of a stream, before
        the end of its body; the events tell whether an answer was interrupted.
    """

    chunks: tuple[bytes, ...]
    content_encoding: str
    content_type: str
    complete: bool

    @property
    def raw(self) -> bytes:
        return b"".join(self.chunks)


Ended = Callable[[Tapped], None]


def tap(answer: object, ended: Ended) -> bool:
    """Call `ended` once when the body behind an answer ends, is interrupted, closed or dropped.

    It runs in the caller's thread, or in a finaliser if the caller drops the answer: it may only pass on its argument,
    and
    must take no lock (`queue.SimpleQueue.put` is suitable). Its exceptions are logged. For a body that was already read
    it is called immediately.

    :returns: False if there is no body, because the answer is the object that the SDK parsed; then nothing is called.
    """
    response = _response_of(answer)
    if response is None:
        return False
    headers = response.headers
    content_type = headers.get("content-type", "")
    if response.is_closed:
        content = _content_of(response)
        # The response has decompressed it.
        heard = _Heard("", content_type, ended)
        heard.add(content or b"")
        heard.end(whole=content is not None)
    else:
        response.stream = _Tee(response.stream, _Heard(headers.get("content-encoding", ""), content_type, ended))
    return True


def _response_of(answer: object) -> Any:
    """Return the HTTP response of an SDK result, which is its attribute or the result itself."""
    for found in (getattr(answer, "http_response", None), getattr(answer, "response", None), answer):
        if all(hasattr(found, name) for name in ("stream", "headers", "is_closed")):
            return found
    return None


def _content_of(response: Any) -> bytes | None:
    try:
        content: bytes = response.content
    except RuntimeError:  # closed before it was read
        return None
    return content


class _Heard:
    """The captured bytes, and the callback that waits for them."""

    def __init__(self, content_encoding: str, content_type: str, ended: Ended) -> None:
        self._content_encoding = content_encoding
        self._content_type = content_type
        self._chunks: list[bytes] = []
        self._room = MAX_KEPT_BYTES
        # Removed by the first call that ends it; a list, because `pop` is atomic and a finaliser can run in any thread.
        self._waiting = [ended]

    def add(self, chunk: bytes) -> None:
        if self._room > 0:
            self._chunks.append(chunk[: self._room])
        self._room -= len(chunk)

    def end(self, *, whole: bool) -> None:
        if sys.is_finalizing():
            return
        try:
            ended = self._waiting.pop()
        except IndexError:
            return
        complete = whole and self._room >= 0
        try:
            ended(Tapped(tuple(self._chunks), self._content_encoding, self._content_type, complete))
        except Exception:  # noqa: BLE001 - the border to the caller's stream, which must not break; it is reported
            _log.warning("An answer could not be captured", exc_info=True)


class _Tee:
    """Wraps the stream of a response, and passes on what it reads.

    Its class is that of the stream, because a response checks for the classes of its own library, of which there are
    two. All other attributes are those of the stream: both SDKs and responses use some.
    """

    def __init__(self, stream: Any, heard: _Heard) -> None:
        self._stream = stream
        self._heard = heard

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_stream"), name)

    def __iter__(self) -> Iterator[bytes]:
        whole = False
        try:
            for chunk in self._stream:
                # Before it is passed on: a caller that has the last event may never return.
                self._heard.add(chunk)
                yield chunk
            whole = True
        finally:
            self._heard.end(whole=whole)

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self._heard.end(whole=False)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Iterate; may resume after a stop, because OpenAI's SDK reads the rest after the last event."""
        chunks = self._stream.__aiter__()
        whole = False
        try:
            async for chunk in chunks:
                self._heard.add(chunk)
                yield chunk
            whole = True
        finally:
            self._heard.end(whole=whole)
            # In the reading task; the event loop would close it later in another task.
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._heard.end(whole=False)

    def __del__(self) -> None:
        self._heard.end(whole=False)


def turns_of(wire: Wire, tapped: Tapped) -> list[Turn]:
    """The messages of a captured answer. None for streams in another framing, such as Bedrock's."""
    return turns_in(wire, text_of(tapped), tapped.content_type)


def text_of(tapped: Tapped) -> str:
    """Return the decompressed text of a captured body, as far as it was received."""
    return _unpacked(tapped).decode("utf-8", errors="replace")


def _unpacked(tapped: Tapped) -> bytes:
    """Decompress the chunks received so far, with the encodings that httpx supports."""
    if not tapped.content_encoding:
        return tapped.raw
    packed = httpx.Response(200, headers={"Content-Encoding": tapped.content_encoding}, content=iter(tapped.chunks))
    unpacked = bytearray()
    try:
        for chunk in packed.iter_bytes():
            unpacked += chunk
    except httpx.DecodingError:
        _log.debug("The compressed body of a response is truncated")
    return bytes(unpacked)
