"""Calls to providers run beside the worker: a limited number, one for each machine, and a call that hangs
delays no other."""

from __future__ import annotations

import threading

import pytest
from pytest_django import Settings

from clusters.provisioning import provider_pool
from tests.hub import eventually

WAIT_S = 20


class TestStart:
    def test_at_most_so_many_at_once(self, settings: Settings) -> None:
        settings.PROVIDER_CALLS = 2
        go, done = threading.Event(), threading.Semaphore(0)

        def hang() -> None:
            go.wait(WAIT_S)
            done.release()

        try:
            assert provider_pool.start("a", hang)
            assert provider_pool.start("b", hang)
            assert not provider_pool.start("c", hang), "as many as may be"
            assert not provider_pool.start("a", hang), "one of that name runs"
        finally:
            go.set()
        assert done.acquire(timeout=WAIT_S)
        assert done.acquire(timeout=WAIT_S)
        eventually(lambda: provider_pool.start("c", done.release), WAIT_S, "there is room again")

    def test_one_that_breaks_gives_its_place_back(
        self, settings: Settings, caplog: pytest.LogCaptureFixture
    ) -> None:
        settings.PROVIDER_CALLS = 1

        def breaks() -> None:
            raise RuntimeError("of ours")

        assert eventually(lambda: provider_pool.start("a", breaks), WAIT_S)
        assert eventually(lambda: provider_pool.start("a", lambda: None), WAIT_S)
        assert "The provider call for machine a failed" in caplog.text
