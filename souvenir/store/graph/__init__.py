"""Tables of concepts, mentions, claims, topics and entity relations."""
