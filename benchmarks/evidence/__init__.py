"""How well `relevance` predicts that a result is an answer, and the fit of its coefficients."""
