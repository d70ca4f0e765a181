"""How much slower others are served while 2,000 connections send their requests' heads byte by byte, or not
at all.

The hub must answer others in at most twice the time. Slow and quiet rounds alternate, so a busy machine slows
both."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx

from bench.support.stack import stack, summary

CONNECTIONS = 2000
ROUNDS, REQUESTS = 6, 100
ALLOWED_RATIO = 2.0
HALF_A_HEAD = b"GET / HTTP/1.1\r\nX-A: "


def attacker(address: tuple[str, int], stopped: threading.Event) -> None:
    """Keep that many connections open, each a byte further each second; whatever the hub closes is opened
    again."""
    lines: list[socket.socket] = []
    while not stopped.is_set():
        while len(lines) < CONNECTIONS and not stopped.is_set():
            with contextlib.suppress(OSError):
                line = socket.create_connection(address, 5)
                line.sendall(HALF_A_HEAD)
                line.setblocking(False)
                lines.append(line)
        kept = []
        for line in lines:
            try:
                line.send(b"a")
                kept.append(line)
            except OSError:
                line.close()
        lines = kept
        stopped.wait(1)
    for line in lines:
        line.close()


@contextlib.contextmanager
def attack(address: tuple[str, int]) -> Iterator[None]:
    stopped = threading.Event()
    thread = threading.Thread(target=attacker, args=(address, stopped), daemon=True)
    thread.start()
    time.sleep(3)  # until the connections are there
    try:
        yield
    finally:
        stopped.set()
        thread.join(30)


def latencies(client: httpx.Client, url: str) -> list[float]:
    taken = []
    for _ in range(REQUESTS):
        begun = time.perf_counter()
        client.get(f"{url}/api/v1/runs/").raise_for_status()
        taken.append(time.perf_counter() - begun)
    return taken


def main() -> int:
    quiet: list[float] = []
    slow: list[float] = []
    with stack() as hub:
        parts = urlsplit(hub.url)
        address = (parts.hostname or "", parts.port or 0)
        latencies(hub.client, hub.url)
        for _ in range(ROUNDS):
            quiet += latencies(hub.client, hub.url)
            with attack(address):
                slow += latencies(hub.client, hub.url)
    print(summary("GET /api/v1/runs/ without the attack", quiet))
    print(summary(f"the same beside {CONNECTIONS} slow connections", slow))
    ratio = sorted(slow)[len(slow) // 2] / sorted(quiet)[len(quiet) // 2]
    print(f"ratio of the medians {ratio:.2f}, allowed {ALLOWED_RATIO}")
    return int(ratio > ALLOWED_RATIO)


if __name__ == "__main__":
    sys.exit(main())
