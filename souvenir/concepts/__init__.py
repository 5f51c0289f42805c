"""What a text mentions: names, phrases, dates, quantities, hashtags and code, found by rules, without a model.

Pure functions of the text: no database, no vectors, no history of an agent.
"""
