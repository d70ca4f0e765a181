"""Slows submissions down while nodes wait for their answers.

A program submits hundreds of runs as fast as they are taken; each is checked and placed, which takes as much
of the web server as several reports. So those who submit wait before the nodes do."""

from __future__ import annotations

from asyncio import sleep

from starlette.types import ASGIApp, Receive, Scope, Send

from workspaces.http.threads import waiting_in_turn

PATH = "/api/v1/runs/"
# For each report or claim that waits, and at most.
DELAY_S, MAX_DELAY_S = 0.05, 2.0


class SubmissionPace:
    """Delays requests that submit a run. They wait in the event loop, where they hold no thread and no
    connection to the database."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] == PATH:
            seconds = min(MAX_DELAY_S, DELAY_S * waiting_in_turn())
            if seconds:
                await sleep(seconds)
        await self._app(scope, receive, send)
