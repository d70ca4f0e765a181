"""A hash of many rows that does not depend on their order, so that neither side has to sort."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from trainhub.database_move.column_types import Conversion

_BYTES = 16


class RowHash:
    """Counts rows, and adds up the hashes of each in a number of 128 bits."""

    def __init__(self, conversions: Sequence[tuple[int, Conversion]], count: int = 0, total: int = 0) -> None:
        self.count = count
        self._total = total
        self._conversions = conversions

    def add(self, row: Sequence[Any]) -> None:
        values = list(row)
        for at, convert in self._conversions:
            if values[at] is not None:
                values[at] = convert(values[at])
        text = repr(values).encode()
        self._total += int.from_bytes(blake2b(text, digest_size=_BYTES).digest(), "little")
        self.count += 1

    @property
    def total(self) -> int:
        return self._total % (1 << 8 * _BYTES)
