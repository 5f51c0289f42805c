"""Search of an agent's memories, for adapters that return them as documents."""

from __future__ import annotations

from souvenir_client.adapters.texts import MAX_QUERY_CHARACTERS
from souvenir_client.aio.client import AsyncSouvenir
from souvenir_client.calls import NOT_SENT
from souvenir_client.records.common import SearchHit


class AsyncRetrieval:
    """The best memories of an agent for a query.

    :param souvenir: The client; it is not closed.
    :param source: Only memories of this source and below it.
    """

    def __init__(
        self,
        souvenir: AsyncSouvenir,
        *,
        agent: str,
        k: int = 5,
        source: str | None = None,
        min_score: float | None = None,
    ) -> None:
        self._memories = souvenir.in_namespace(agent).memories
        self._k = k
        self._source = NOT_SENT if source is None else source
        self._min_score = min_score

    async def search(self, query: str, k: int | None = None) -> list[SearchHit]:
        """The memories, best first; none for a query without visible characters.

        :param query: Only the first 10,000 characters are used.
        :param k: Replaces the number of the constructor.
        """
        if not query.strip():
            return []
        answer = await self._memories.search(
            query=query[:MAX_QUERY_CHARACTERS],
            k=self._k if k is None else k,
            source_prefix=self._source,
            source_boundary=True,
            min_score=self._min_score,
        )
        return answer.results
