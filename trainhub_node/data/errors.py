from __future__ import annotations


class DataError(Exception):
    """The data of a run cannot be had. The message is a sentence with the remedy."""
