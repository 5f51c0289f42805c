"""Whether a context says rightly that its evidence is strong, weak or none, on labelled conversations."""
