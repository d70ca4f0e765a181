"""`python -m trainhub.gateway ADDRESS PORT SOCKET CERTIFICATE KEY`: runs the broker gateway until SIGTERM."""

from __future__ import annotations

import asyncio
import errno
import logging.config
import resource
import signal
import socket
import ssl
import sys
from pathlib import Path

import uvloop

from trainhub.gateway.admission import MAX_GUESTS, MAX_STRANGERS, Admission
from trainhub.gateway.relay import Relay
from trainhub.logs import log_configuration

log = logging.getLogger("trainhub.gateway")
RESERVED_FILES = 64
# One socket to the client and one to Valkey.
FILES_OF_CONNECTION = 2
BACKLOG = 1024
OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
PAUSE_S = 0.5


def main() -> None:
    host, port, server, chain, key = sys.argv[1:]
    logging.config.dictConfig(log_configuration.logging_settings("INFO"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(chain, key)
    uvloop.run(serve(listen(host, int(port)), Relay(Path(server), context, Admission(room()))))


def room() -> int:
    """Raises this process's limit on open files as far as needed and permitted. Returns how many connections
    fit into it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    required = FILES_OF_CONNECTION * (MAX_GUESTS + MAX_STRANGERS) + RESERVED_FILES
    limit = required if hard == resource.RLIM_INFINITY else min(required, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return (limit - RESERVED_FILES) // FILES_OF_CONNECTION


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket. If `host` is empty or `::`, it listens on every address of both families,
    as far as the machine has them."""
    # The operator has chosen to listen at all addresses.
    if host in ("", "0.0.0.0", "::") and socket.has_dualstack_ipv6():  # noqa: S104
        # `::` with both families also accepts IPv4, which a socket bound to 0.0.0.0 would not do for IPv6.
        listener = socket.create_server(
            ("::", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True
        )
    else:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    listener.setblocking(False)
    return listener


async def serve(listener: socket.socket, relay: Relay) -> None:
    """Accepts connections until SIGTERM or SIGINT. Raises an error that ends the accepting."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    accepting = asyncio.ensure_future(accept(listener, relay))
    log.info("Nodes reach the broker by TLS at port %d", listener.getsockname()[1])
    stop = asyncio.ensure_future(ended.wait())
    await asyncio.wait({accepting, stop}, return_when=asyncio.FIRST_COMPLETED)
    # Accepting only ends with an error, which is raised here so that `up` sees the process fail and restarts
    # it.
    if accepting.done():
        accepting.result()


async def accept(listener: socket.socket, relay: Relay) -> None:
    loop = asyncio.get_running_loop()
    carried: set[asyncio.Task[None]] = set()
    while True:
        try:
            client, address = await loop.sock_accept(listener)
        except OSError as error:
            if error.errno not in OUT_OF_DESCRIPTORS:
                raise
            # The connection waits in the kernel's queue until another one has ended.
            log.warning("No further connection can be accepted now: %s", error.strerror)
            await asyncio.sleep(PAUSE_S)
            continue
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Nodes that vanish without closing would otherwise hold their connections for ever.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
        task = asyncio.ensure_future(relay.carry(client, address[0]))
        # The event loop itself holds only weak references to tasks.
        carried.add(task)
        task.add_done_callback(carried.discard)
        task.add_done_callback(_report)


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("A connection ended with an error", exc_info=error)


if __name__ == "__main__":
    main()
