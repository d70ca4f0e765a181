"""What can stand behind a topic: a socket, or the guard of one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol


class Listener(Protocol):
    def offer(self, text: str) -> None:
        """A message of the topic; must not wait."""

    def miss(self) -> None:
        """Messages may have been lost."""


class Guard:
    """Asks `still_allowed` anew whenever a person's access changes, and after anything may have been
    missed."""

    def __init__(self, still_allowed: Callable[[], Awaitable[None]]) -> None:
        self._still_allowed = still_allowed
        self._task: asyncio.Task[None] | None = None
        self._is_due = False

    def offer(self, text: str) -> None:  # noqa: ARG002 - that there is a message says it all
        self._is_due = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._ask())

    def miss(self) -> None:
        self.offer("")

    async def _ask(self) -> None:
        # A change while the last answer was on its way may have made that answer wrong.
        while self._is_due:
            self._is_due = False
            await self._still_allowed()
