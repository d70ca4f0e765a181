"""Runs blocking work, such as database queries, in threads beside the event loop of the web server."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

import anyio
import anyio.to_thread
from django.db import close_old_connections

from workspaces.database.outages import refuse_if_away

P = ParamSpec("P")
T = TypeVar("T")
# Reports of nodes, and their claims: each has lanes of its own, so that a report never waits behind claims,
# which take longer, nor either of them behind pages.
_reports, _claims = anyio.CapacityLimiter(2), anyio.CapacityLimiter(1)


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs blocking work in a thread of the pool."""
    return await anyio.to_thread.run_sync(partial(_with_connections, partial(function, *args, **kwargs)))


async def in_turn(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Ingests a report of a node, of which hundreds may arrive at once: two at a time, in the order of their
    arrival.

    SQLite admits one writer and lets the others retry at random: of forty threads the unlucky ones gave up
    after 20 s. Raises DatabaseAway while the database is away."""
    refuse_if_away()
    return await in_limited_threads(_reports, function, *args, **kwargs)


async def in_turn_of_claims(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Answers a claim of a node: one at a time, in the order of their arrival, beside the reports. Raises
    DatabaseAway while the database is away."""
    refuse_if_away()
    return await in_limited_threads(_claims, function, *args, **kwargs)


async def in_limited_threads(
    limiter: anyio.CapacityLimiter, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Runs blocking work that takes long in threads beside the pool, as many at once as `limiter` admits."""
    work = partial(_with_connections, partial(function, *args, **kwargs))
    return await anyio.to_thread.run_sync(work, limiter=limiter)


def waiting_in_turn() -> int:
    """Returns how many reports and claims wait now."""
    return _reports.statistics().tasks_waiting + _claims.statistics().tasks_waiting


def _with_connections(work: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return work()
    finally:
        close_old_connections()
