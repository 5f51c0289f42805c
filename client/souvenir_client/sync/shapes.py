"""The verbs that memory SDKs share, in the shapes that their users know."""

from __future__ import annotations


class Shapes:
    """add, search, get, get_all, update, delete, delete_all and history."""
