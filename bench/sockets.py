"""500 sockets watching one run at 20 messages/s, beside a bare uvicorn WebSocket fan-out in the same run."""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import subprocess
import sys
import time

import websockets

from bench.support.limits import Limits, median
from bench.support.stack import free_port, stack, summary

SCRIPT = """
import time
next_at = time.time() + {wait}
for number in range({lines}):
    next_at += 0.05
    time.sleep(max(0, next_at - time.time()))
    print(f"line {{number}} at={{time.time():.6f}}", flush=True)
"""
BARE = """
import asyncio, json, sys, time, base64, uvicorn
queues = set()
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    await receive()
    await send({"type": "websocket.accept"})
    queues.add(send)
    if len(queues) == int(sys.argv[2]):
        asyncio.get_running_loop().create_task(pump())
    await receive()
    queues.discard(send)
async def pump():
    await asyncio.sleep(float(sys.argv[4]))
    for number in range(int(sys.argv[3])):
        await asyncio.sleep(0.05)
        data = base64.b64encode(f"line {number} at={time.time():.6f}\\n".encode()).decode()
        text = json.dumps({"type": "log.appended", "data": data})
        for send in list(queues):
            await send({"type": "websocket.send", "text": text})
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", ws="websockets", loop="uvloop")
"""
WAIT_S = 12.0
MAX_RATIO = 2.0


async def watch(url: str, token: str, sockets: int, lines: int) -> list[float]:
    async with asyncio.timeout(WAIT_S + lines * 0.05 + 60), asyncio.TaskGroup() as group:
        gate = asyncio.Semaphore(25)
        tasks = [group.create_task(_one(url, token, lines, gate)) for _ in range(sockets)]
    return [seconds for task in tasks for seconds in task.result()]


async def _one(url: str, token: str, lines: int, gate: asyncio.Semaphore) -> list[float]:
    out: list[float] = []
    async with gate:
        socket = await websockets.connect(
            url,
            additional_headers={"Authorization": f"Bearer {token}"},
            max_size=None,
            open_timeout=60,
            compression=None,
        )
    async with socket:
        async for text in socket:
            now, message = time.time(), json.loads(text)
            if message["type"] != "log.appended" or not message.get("data"):
                continue
            told = base64.b64decode(message["data"]).decode().split()
            out += [now - float(word[3:]) for word in told if word.startswith("at=")]
            if f"{lines - 1}" in told:
                break
    return out


def trainhub(sockets: int, lines: int) -> list[float]:
    with stack() as hub:
        run = hub.submit(hub.snapshot({"main.py": SCRIPT.format(wait=WAIT_S, lines=lines)}), "main.py")
        return asyncio.run(
            watch(f"{hub.url.replace('http', 'ws', 1)}/ws/runs/{run}/", hub.token, sockets, lines)
        )


def bare(sockets: int, lines: int) -> list[float]:
    port = free_port()
    server = subprocess.Popen([sys.executable, "-c", BARE, str(port), str(sockets), str(lines), "1"])
    try:
        time.sleep(2)
        return asyncio.run(watch(f"ws://127.0.0.1:{port}/", "", sockets, lines))
    finally:
        server.terminate()
        server.wait(10)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sockets", type=int, default=500)
    parser.add_argument("--lines", type=int, default=200)
    options = parser.parse_args()
    ours = trainhub(options.sockets, options.lines)
    print(summary(f"TrainHub: script's line -> {options.sockets} sockets", ours))
    beside = bare(options.sockets, options.lines)
    print(summary("bare uvicorn fan-out", beside))
    limits = Limits()
    limits.at_most("the medians", median(ours) / median(beside), MAX_RATIO)
    return limits.exit_code()


if __name__ == "__main__":
    sys.exit(main())
