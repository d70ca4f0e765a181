"""A download in which nothing arrives any more ends, but not while a file is being hashed or another run
downloads it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from trainhub_node.data import fetch
from trainhub_node.data.errors import DataError
from trainhub_node.data.fetch import _Progress
from trainhub_node.data.transfer import Transfer


def poll(monkeypatch: pytest.MonkeyPatch, not_at_store: int) -> None:
    """Polls a download that has stood still for longer than is waited."""
    transfer = SimpleNamespace(bytes=0, files=0, not_at_store=not_at_store)
    progress = _Progress(cast("Transfer", transfer), 1, 1000)
    monkeypatch.setattr(fetch, "STALLED_S", -1.0)
    progress.poll()


def test_a_store_that_sends_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="Nothing has arrived for"):
        poll(monkeypatch, not_at_store=0)


def test_a_hash_or_another_run_that_downloads_may_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    poll(monkeypatch, not_at_store=1)
