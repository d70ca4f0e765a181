from __future__ import annotations

import logging

import pytest
from django.db import InterfaceError, OperationalError

from tests.hub import eventually
from workspaces import background_loop


class TestRounds:
    def test_go_on_in_turn_until_the_end_and_once_more_then(self) -> None:
        done: list[str] = []
        with background_loop.going(lambda: done.append("a"), lambda: done.append("b")):
            assert background_loop.is_running()
            eventually(lambda: len(done) >= 2)
            before = len(done)
        assert not background_loop.is_running()
        assert len(done) > before
        assert done[:4] == ["a", "b", "a", "b"]

    @pytest.mark.parametrize(
        "trouble", [OperationalError("away"), InterfaceError("closed"), ValueError("ours")]
    )
    def test_one_that_fails_keeps_none_of_the_others_back(
        self, trouble: Exception, caplog: pytest.LogCaptureFixture
    ) -> None:
        done: list[str] = []

        def fail() -> None:
            raise trouble

        with caplog.at_level(logging.WARNING):
            background_loop.run_once([fail, lambda: done.append("went on")])
        assert done == ["went on"]
        assert str(trouble) in caplog.text

    def test_the_same_trouble_is_told_once_and_its_end_once(self, caplog: pytest.LogCaptureFixture) -> None:
        is_full = True

        def fill() -> None:
            if is_full:
                raise OperationalError("the disk is full")

        with caplog.at_level(logging.INFO):
            for _ in range(3):
                background_loop.run_once([fill])
            is_full = False
            for _ in range(2):
                background_loop.run_once([fill])
        assert caplog.text.count("the disk is full") == 1
        assert caplog.text.count("does its work again") == 1
