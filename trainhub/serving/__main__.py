"""`python -m trainhub.serving`: the web server that `manage.py up` keeps running. It is configured by
environment variables."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE

from trainhub import installation
from trainhub.serving import preload
from trainhub.serving.limits import ConnectionLimits, max_open_connections, raise_file_limit
from trainhub.serving.protocol import CountedWebSocket, GuardedHttp
from trainhub.serving.proxies import TrustedProxies, trusted_proxies
from trainhub.serving.server import HubServer
from trainhub.serving.tls import GuardedLoop

MAX_SOCKET_MESSAGE_BYTES = 2**20


def configuration(
    app: Any, limits: ConnectionLimits, proxies: TrustedProxies, **options: Any
) -> uvicorn.Config:
    """Returns a configuration of uvicorn. `options` are uvicorn's own, for example host, port or
    ssl_certfile."""
    return uvicorn.Config(
        app,
        http=partial(GuardedHttp, limits=limits, proxies=proxies),  # type: ignore[arg-type]
        ws=partial(CountedWebSocket, limits=limits),  # type: ignore[arg-type]
        ws_max_size=MAX_SOCKET_MESSAGE_BYTES,
        # Small messages to many sockets: packing each costs more than it saves.
        ws_per_message_deflate=False,
        # Without a named proxy, X-Forwarded-For is what anybody on this machine may write.
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies.words,
        # Django's own handler writes what uvicorn has to say, too.
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
        **options,
    )


def run(server: uvicorn.Server, limits: ConnectionLimits, proxies: TrustedProxies) -> None:
    """Serves until a signal requests the stop."""
    with asyncio.Runner(loop_factory=partial(GuardedLoop, limits, proxies)) as runner:
        runner.run(server.serve())


def main() -> int:
    raise_file_limit()
    preload.load_application()
    preload.wait_for_start()
    host, port = installation.bind()
    certificate = installation.certificate()
    tls_options = (
        {} if certificate is None else {"ssl_certfile": certificate.chain, "ssl_keyfile": certificate.key}
    )
    limits, proxies = ConnectionLimits(max_open_connections()), trusted_proxies()
    app = "trainhub.asgi:application"
    address = host or "0.0.0.0"  # noqa: S104 - the owner asked for all interfaces by a BIND without a host
    config = configuration(app, limits, proxies, host=address, port=port, lifespan="on", **tls_options)
    server = HubServer(config)
    run(server, limits, proxies)
    return 0 if server.started else STARTUP_FAILURE


if __name__ == "__main__":
    sys.exit(main())
