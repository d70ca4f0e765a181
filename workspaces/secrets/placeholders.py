"""Named secrets inside a text, such as the address of a webhook:
`https://hooks.example.org/{secret:hook}`."""

from __future__ import annotations

import re
from collections.abc import Mapping

PLACEHOLDER = re.compile(r"\{secret:([^{}]*)\}")


def names_in(*texts: str) -> set[str]:
    """Returns the names of all secrets that the texts use."""
    return {name for text in texts for name in PLACEHOLDER.findall(text)}


def fill(text: str, values: Mapping[str, str]) -> str:
    """Returns `text` with the values in place of the names. `values` must have all of them."""
    return PLACEHOLDER.sub(lambda match: values[match[1]], text)


def blank(text: str) -> str:
    """Returns `text` with a word in place of each secret, to check the rest of it."""
    return PLACEHOLDER.sub("secret", text)
