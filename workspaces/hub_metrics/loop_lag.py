"""Measures how late the web server's event loop is: what blocks it delays every request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from workspaces.hub_metrics.instruments import LOOP_LAG_SECONDS

PAUSE_S = 1.0


@asynccontextmanager
async def loop_lag_measured() -> AsyncIterator[None]:
    """Measures once a second, until its body ends."""
    task = asyncio.create_task(_measure())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _measure() -> None:
    loop = asyncio.get_running_loop()
    while True:
        planned = loop.time() + PAUSE_S
        await asyncio.sleep(PAUSE_S)
        LOOP_LAG_SECONDS.observe(max(0.0, loop.time() - planned))
