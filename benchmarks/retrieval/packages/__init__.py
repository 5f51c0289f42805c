"""Other memory packages, measured with the same texts, questions, metrics and embedding model.

Each runs in an environment of its own, in a folder that the user names, and asks an endpoint of this process for
vectors; none of them is a requirement of the project.
"""
