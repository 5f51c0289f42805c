"""A question and a passage as one row of tokens, cut to the window of the model that reads both together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from souvenir.embedding.model_folder import ModelFolder
from souvenir.embedding.tokens import TokenIds, open_tokenizer

MAX_PAIR_TOKENS = 512
"""Of a pair, also where a model has a longer window: what cross-encoders are trained with, and a bound to the cost."""

MAX_QUERY_SHARE = 0.5
"""Of the window; the rest is the passage's."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Token ids with special tokens, and of each token the part that it belongs to: 0 the question, 1 the passage."""

    ids: TokenIds
    types: TokenIds

    def __len__(self) -> int:
        return len(self.ids)


class PairTokenizer:
    """:raises RerankingUnavailable: If the model's tokenizer cannot be read."""

    def __init__(self, folder: ModelFolder) -> None:
        self._tokenizer = open_tokenizer(folder)
        window = min(folder.max_length, MAX_PAIR_TOKENS)
        self._room = window - self._tokenizer.num_special_tokens_to_add(is_pair=True)
        self._query_room = int(self._room * MAX_QUERY_SHARE)

    def pairs(self, query: str, passages: Sequence[str]) -> list[Pair]:
        """The question with each passage. The end of a passage that does not fit is cut off.

        So is that of a question which takes more than its share.
        """
        asked = self._tokenizer.encode(query, add_special_tokens=False)
        asked.truncate(self._query_room)
        found = []
        for passage in self._tokenizer.encode_batch(list(passages), add_special_tokens=False):
            passage.truncate(self._room - len(asked))
            joined = self._tokenizer.post_process(asked, passage)
            found.append(Pair(joined.ids, joined.type_ids))
        return found
