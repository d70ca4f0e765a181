"""Masks secrets in what leaves the node: with as many stars as the secret has bytes, so that all offsets
stay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MASK = b"*"
# A shorter beginning of a secret at the end of a log is not held back: many ordinary lines end with one.
MIN_PENDING_BYTES = 4
# What opens an address that was signed: the text before it, and what is masked. The text comes first, so that
# a signature is masked byte for byte, however little of it is written yet.
MAX_SIGNATURE = 140
SIGNATURE = re.compile(rb"(X-Amz-Signature=|(?:[?&;]|\\u0026)sig=)([0-9A-Za-z%%+/=]{1,%d})" % MAX_SIGNATURE)
MAX_SIGNATURE_PREFIX = 16


class LogMask:
    """The texts that must not be shown. `masks_signatures`: neither are those of signed addresses. `overlap`:
    bytes before and after a part of a log that can belong to a text that also reaches into the part."""

    def __init__(self, texts: Iterable[str], *, masks_signatures: bool = False) -> None:
        # The longest first, because one text may contain another.
        encoded = {text.encode(errors="surrogateescape") for text in texts if text}
        self._texts = sorted(encoded, key=lambda text: (-len(text), text))
        self._masks_signatures = masks_signatures
        signature = MAX_SIGNATURE_PREFIX + MAX_SIGNATURE if masks_signatures else 0
        self.overlap = max((len(text) - 1 for text in self._texts), default=0)
        self.overlap = max(self.overlap, signature)

    def mask(self, data: bytes) -> bytes:
        """Returns `data` with every text replaced; its length stays the same."""
        for text in self._texts:
            data = data.replace(text, MASK * len(text))
        if self._masks_signatures:
            data = SIGNATURE.sub(lambda match: match[1] + MASK * len(match[2]), data)
        return data

    def mask_sentence(self, sentence: str) -> str:
        masked = self.mask(sentence.encode(errors="surrogateescape"))
        return masked.decode(errors="surrogateescape")

    def pending_bytes(self, data: bytes) -> int:
        """Returns how many bytes at the end of `data` may be the beginning of a text whose rest is not
        written yet."""
        tail = data[-self.overlap :] if self.overlap else b""
        return max((self._pending_length(text, tail) for text in self._texts), default=0)

    @staticmethod
    def _pending_length(text: bytes, tail: bytes) -> int:
        longest = min(len(text) - 1, len(tail))
        for length in range(longest, MIN_PENDING_BYTES - 1, -1):
            if tail.endswith(text[:length]):
                return length
        return 0


def changed_spans(before: bytes, after: bytes) -> Iterator[tuple[int, int]]:
    """Yields (begin, end) of each part in which two byte strings of equal length differ, with stars in
    between joined."""
    position = 0
    while position < len(before):
        # Compared in large steps first: almost all of a log is unchanged.
        step = min(4096, len(before) - position)
        if before[position : position + step] == after[position : position + step]:
            position += step
            continue
        if before[position] == after[position]:
            position += 1
            continue
        end = position + 1
        while end < len(before) and after[end : end + 1] == MASK:
            end += 1
        yield position, end
        position = end
