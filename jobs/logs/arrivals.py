"""What is known of when the bytes of a log arrived, in records that follow each other."""

from __future__ import annotations

from typing import NamedTuple

RECORD_INTERVAL_MS = 250
YEAR_MS = 366 * 24 * 3600 * 1000


class Arrival(NamedTuple):
    """The bytes between the previous arrival's end and `end` arrived from `first_ms` to `last_ms`.

    `late`: the bytes had to wait because node and hub could not reach each other, so it is unknown when they
    were written."""

    end: int
    first_ms: int
    last_ms: int
    late: bool = False

    def words(self) -> tuple[int, int, int]:
        return self.end, self.first_ms, 2 * self.last_ms + self.late


def thin_out(arrivals: list[Arrival], max_count: int) -> list[Arrival]:
    """Returns at most `max_count` arrivals: merges neighbours so that the longest silences remain."""
    width = RECORD_INTERVAL_MS
    while len(arrivals) > max_count:
        width *= 2
        merged: list[Arrival] = []
        for item in arrivals:
            # Late and punctual arrivals are only merged when nothing else is left, so that the loop ends.
            alike = merged and (merged[-1].late == item.late or width > YEAR_MS)
            if alike and item.last_ms - merged[-1].first_ms <= width:
                merged[-1] = Arrival(item.end, merged[-1].first_ms, item.last_ms, item.late)
            else:
                merged.append(item)
        arrivals = merged
    return arrivals


def arrivals_after(last: tuple[int, int], arrivals: list[Arrival]) -> list[Arrival]:
    """Returns the arrivals of bytes that the last record does not have yet, none earlier than it."""
    end, at_ms = last
    return [
        item._replace(first_ms=max(item.first_ms, at_ms), last_ms=max(item.last_ms, at_ms))
        for item in arrivals
        if item.end > end
    ]
