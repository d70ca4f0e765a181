"""200 browser sockets that watch one node second by second: sample sent by the node -> received by each
socket."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from urllib.parse import urlsplit

import websockets

from bench.idle import cpu_s
from bench.scale import enrolled
from bench.sockets import bare
from bench.support.limits import Limits, median
from bench.support.reporting_fleet import Road, Teller, Told
from bench.support.stack import Stack, stack, summary

BEGIN_WITHIN_S = 20.0
# A sample of 8 GPUs is 30 times as long as a message of the reference, and is checked first.
MAX_RATIO = 8.0


class SpyingTeller(Teller):
    """Notes when each second's samples left."""

    def __init__(self, name: str, token: str, gpus: int, due: float) -> None:
        super().__init__(name, token, gpus, due)
        self.left: dict[int, float] = {}

    def request(self) -> bytes:
        body = super().request()
        now = time.time()
        self.left[int(now) - 1] = now
        return body


async def measure(hub: Stack, sockets: int, seconds: float, gpus: int) -> list[float]:
    told, place = Told(), urlsplit(hub.url)
    ((name, token),) = enrolled(hub, 1).items()
    node = SpyingTeller(name, token, gpus, time.monotonic())
    await asyncio.get_running_loop().create_connection(
        lambda: Road([node], told), place.hostname or "", place.port or 0
    )
    await asyncio.sleep(2)
    delays: list[float] = []
    gate, begin = asyncio.Semaphore(25), time.time() + BEGIN_WITHIN_S
    web = int((hub.data / "run" / "web.pid").read_text())
    before = cpu_s(web)
    await asyncio.gather(*(_one(hub, node, gate, (begin, begin + seconds), delays) for _ in range(sockets)))
    print(
        f"web server: {(cpu_s(web) - before) / (BEGIN_WITHIN_S + seconds) * 100:.0f} % CPU; refused: "
        f"{told.refused or 'none'}"
    )
    return delays


async def _one(
    hub: Stack, node: SpyingTeller, gate: asyncio.Semaphore, span: tuple[float, float], delays: list[float]
) -> None:
    since, until = span
    address = f"{hub.url.replace('http', 'ws', 1)}/ws/telemetry/?nodes={node.name}"
    headers = {"Authorization": f"Bearer {hub.token}"}
    async with gate:
        socket = await websockets.connect(
            address, additional_headers=headers, max_size=None, open_timeout=60, compression=None
        )
    async with socket:
        async for text in socket:
            now, message = time.time(), json.loads(text)
            left = node.left.get(message.get("start", 0))
            if left is not None and now >= since:
                delays.append(now - left)
            if now > until:
                break


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sockets", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--gpus", type=int, default=8)
    options = parser.parse_args()
    with stack() as hub:
        delays = asyncio.run(measure(hub, options.sockets, options.seconds, options.gpus))
    print(summary(f"sample sent -> {options.sockets} sockets", delays))
    beside = bare(options.sockets, 100)
    print(summary("bare uvicorn fan-out of short messages", beside))
    limits = Limits()
    limits.at_most("the medians", median(delays) / median(beside), MAX_RATIO)
    return limits.exit_code()


if __name__ == "__main__":
    sys.exit(main())
