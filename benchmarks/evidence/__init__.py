"""How well `relevance` says whether an answer is one, and the coefficients that it is worked out with."""
