"""Log latency: a line written by the script -> its WebSocket message, at 100 lines/s; beside Ray's log
tail."""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import websockets

from bench.sockets import bare
from bench.support.limits import Limits, median
from bench.support.stack import Stack, stack, summary

# A line goes through a pipe, two files, a report and the hub before it is a message.
MAX_RATIO = 15.0
SCRIPT = """
import time
next_at = time.time() + 1.5
for number in range({lines}):
    next_at += 0.01
    time.sleep(max(0, next_at - time.time()))
    print(f"line {{number}} at={{time.time():.6f}}", flush=True)
"""
STAMP = re.compile(rb"at=(\d+\.\d+)\n")
RAY = """
import asyncio, re, sys, time
from ray.job_submission import JobSubmissionClient
async def main():
    client = JobSubmissionClient("http://127.0.0.1:8265")
    job = client.submit_job(entrypoint=f"{sys.executable} {sys.argv[1]}")
    async for text in client.tail_job_logs(job):
        now = time.time()
        for stamp in re.findall(r"at=(\\d+\\.\\d+)", text):
            print("SECONDS", now - float(stamp), flush=True)
asyncio.run(main())
"""


async def follow(hub: Stack, run: str, lines: int) -> list[float]:
    out: list[float] = []
    rest = b""
    url = f"{hub.url.replace('http', 'ws', 1)}/ws/runs/{run}/"
    headers = {"Authorization": f"Bearer {hub.token}"}
    async with (
        asyncio.timeout(60),
        websockets.connect(url, additional_headers=headers, max_size=None) as socket,
    ):
        async for text in socket:
            now, message = time.time(), json.loads(text)
            if message["type"] == "log.appended" and message.get("data"):
                # An unbuffered print writes its newline by itself: a line counts once it is whole.
                whole, _, rest = (rest + base64.b64decode(message["data"])).rpartition(b"\n")
                out += [now - float(stamp) for stamp in STAMP.findall(whole + b"\n")]
            if len(out) >= lines or (message["type"] == "run.changed" and message["state"] == "Completed"):
                return out
    return out


def trainhub(lines: int) -> list[float]:
    with stack() as hub:
        run = hub.submit(hub.snapshot({"main.py": SCRIPT.format(lines=lines)}), "main.py")
        return asyncio.run(follow(hub, run, lines))


def ray(python: str, lines: int) -> list[float]:
    binary = str(Path(python).parent / "ray")
    script = Path("/tmp/th-bench-ray-lines.py")
    script.write_text(SCRIPT.format(lines=lines))
    subprocess.run(
        [binary, "start", "--head", "--disable-usage-stats", "--num-cpus", "2"],
        check=True,
        capture_output=True,
    )
    try:
        done = subprocess.run([python, "-c", RAY, str(script)], check=True, capture_output=True, text=True)
    finally:
        subprocess.run([binary, "stop"], check=True, capture_output=True)
        script.unlink()
    return [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("SECONDS")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--ray-python", help="a python with ray[default]")
    options = parser.parse_args()
    seconds = trainhub(options.lines)
    print(summary("TrainHub: line written -> WebSocket message", seconds))
    if len(seconds) < options.lines:
        sys.exit(f"only {len(seconds)} of {options.lines} lines came as messages")
    beside = bare(1, 200)
    print(summary("bare uvicorn, one socket", beside))
    limits = Limits()
    limits.at_most("the medians", median(seconds) / median(beside), MAX_RATIO)
    if options.ray_python:
        print(summary("Ray: line written -> tail_job_logs", ray(options.ray_python, options.lines)))
    return limits.exit_code()


if __name__ == "__main__":
    sys.exit(main())
