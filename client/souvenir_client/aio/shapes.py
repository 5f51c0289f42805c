"""The verbs that memory SDKs share, in the shapes that their users know."""

from __future__ import annotations


class AsyncShapes:
    """add, search, get, get_all, update, delete, delete_all and history."""
