"""Recognises TensorBoard's event files. Nodes send them like logs, and the hub reads them as metrics instead
of showing them."""

from __future__ import annotations

# TensorBoard recognises its event files by this part of their names, too.
MARK = "tfevents"


def is_event_file(path: str) -> bool:
    return MARK in path.rpartition("/")[2]
