"""Server-sent events as a service of MCP writes them: the data of each message, as soon as it is whole.

Lines end with LF or CRLF. What is no data (comments that keep a connection open, ids, times) is passed over.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

MAX_EVENT_BYTES = 64 * 1024 * 1024


class EventTooLong(ValueError):
    """An event is longer than is taken."""

    def __init__(self) -> None:
        super().__init__(f"it is longer than {MAX_EVENT_BYTES} bytes")


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of the messages in a stream.

    :raises EventTooLong: If one does not end.
    """
    data: list[bytes] = []
    size, is_message = 0, True
    async for line in _lines(chunks):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if data and is_message:
                yield b"\n".join(data)
            data, size, is_message = [], 0, True
        elif name == b"data":
            data.append(value)
            size += len(value)
            if size > MAX_EVENT_BYTES:
                raise EventTooLong
        elif name == b"event":
            is_message = value == b"message"


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    begun = bytearray()
    async for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            yield bytes(begun + piece).removesuffix(b"\r")
            begun.clear()
        begun += rest
        if len(begun) > MAX_EVENT_BYTES:
            raise EventTooLong
