"""Which values can be masked in logs. The nodes do the masking (`trainhub_node.attempts.log_mask`)."""

from __future__ import annotations

import json
from urllib.parse import quote

# Shorter values are parts of ordinary lines.
MIN_LENGTH = 8
# From this length on a value of letters only is no word.
MIN_LETTERS = 16
MIN_DISTINCT = 4


def is_maskable(value: str) -> bool:
    """Returns whether `value` can be replaced in logs without damage to ordinary lines: not if it is short, a
    word or a number, or one character repeated."""
    if len(value) < MIN_LENGTH or len(set(value)) < MIN_DISTINCT:
        return False
    if value.isdigit():
        return len(value) >= MIN_LETTERS
    if value.isalpha():
        # Upper case in the middle, as in `xK3b`-like tokens, is no word of a log.
        return len(value) >= MIN_LETTERS or not (value[1:].islower() or value.isupper())
    return True


def masked_texts(value: str) -> tuple[str, ...]:
    """Returns the texts to mask for `value`: the whole, its lines, because a log may show them one by one,
    and the whole as JSON and Python print it and as it stands in a URL."""
    quoted = (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe=""))
    texts = [value, *quoted, *(line.strip() for line in value.splitlines())]
    return tuple(dict.fromkeys(text for text in texts if is_maskable(text)))
