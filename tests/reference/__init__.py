"""Search worked out slowly, one passage at a time, which the service's search must equal.

Nothing here is incremental, cut off or in float32, and no passage knows another but by walking over all of them. Terms,
vectors and windows come from the service's own analyser, embedder and cutting, dates and framing of a question from its
own pure functions, which all have tests of their own. Everything after them is written again, from the formulas.
"""
