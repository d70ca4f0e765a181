"""Listeners of topics: a socket, or the guard that closes a socket whose person has lost access."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol


class Listener(Protocol):
    def offer(self, text: str) -> None:
        """Takes a message of the topic. It must not block, because all listeners of the loop are served in
        turn."""

    def miss(self) -> None:
        """Called when messages of the topic may have been lost."""


class Guard:
    """Calls `still_allowed` whenever a person's access changes, and whenever messages may have been
    missed."""

    def __init__(self, still_allowed: Callable[[], Awaitable[None]]) -> None:
        self._still_allowed = still_allowed
        self._task: asyncio.Task[None] | None = None
        self._is_due = False

    def offer(self, text: str) -> None:  # noqa: ARG002 - a message of this topic has no content
        self._is_due = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._check())

    def miss(self) -> None:
        # A missed message may have been the one that revoked the access.
        self.offer("")

    async def _check(self) -> None:
        # A change while the last answer was on its way may have made that answer wrong.
        while self._is_due:
            self._is_due = False
            await self._still_allowed()
