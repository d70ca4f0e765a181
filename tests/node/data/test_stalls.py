"""A download in which nothing arrives any more ends, but not while a file is being hashed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from trainhub_node.data import fetch
from trainhub_node.data.errors import DataError
from trainhub_node.data.fetch import _Progress
from trainhub_node.data.transfer import Transfer


def poll(monkeypatch: pytest.MonkeyPatch, at_disk: int) -> None:
    """Polls a download that has stood still for longer than is waited."""
    transfer = SimpleNamespace(bytes=0, files=0, at_disk=at_disk)
    progress = _Progress(cast("Transfer", transfer), 1, 1000)
    monkeypatch.setattr(fetch, "STALLED_S", -1.0)
    progress.poll()


def test_a_store_that_sends_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="Nothing has arrived for"):
        poll(monkeypatch, at_disk=0)


def test_the_hash_of_a_large_file_may_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    poll(monkeypatch, at_disk=1)
