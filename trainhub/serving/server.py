"""The hub's server: uvicorn, which ends requests that wait when it begins to stop."""

from __future__ import annotations

import socket

import uvicorn

from live import server_state


class HubServer(uvicorn.Server):
    """Ends requests that wait for bytes of a log before it waits for their answers. Otherwise they would last
    as long as uvicorn lets them, and be cut off with a traceback for each."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        server_state.begin_stop()
        await super().shutdown(sockets)
