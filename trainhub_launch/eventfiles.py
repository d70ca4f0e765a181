"""TensorBoard's event files: they travel like logs, and are read as metrics instead of being shown."""

from __future__ import annotations

MARK = "tfevents"
"""What TensorBoard itself knows them by."""


def is_event_file(path: str) -> bool:
    return MARK in path.rpartition("/")[2]
