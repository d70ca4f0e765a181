"""Log latency: a line written by the script -> its WebSocket message, and -> the terminal of
`trainhub logs -f`, at 100 lines/s; beside Ray's log tail."""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import pty
import re
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import websockets

from bench.sockets import bare
from bench.support.limits import Limits, median
from bench.support.stack import ROOT, Stack, stack, summary

# A line goes through a pipe, two files, a report and the hub before it is a message.
MAX_RATIO = 15.0
# What somebody who watches a log takes for at once.
MAX_TERMINAL_MS = 100.0
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


async def follow(
    hub_url: str, token: str, run: str, lines: int, trusted: ssl.SSLContext | None = None
) -> list[float]:
    """Returns for each line how many seconds after it was written its message came."""
    out: list[float] = []
    rest = b""
    url = f"{hub_url.replace('http', 'ws', 1)}/ws/runs/{run}/"
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        asyncio.timeout(60),
        websockets.connect(url, additional_headers=headers, max_size=None, ssl=trusted) as socket,
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


def follow_on_terminal(hub: Stack, run: str, home: str, lines: int) -> list[float]:
    """Returns for each line how many seconds after it was written `trainhub logs -f` had it on a terminal."""
    env = {"HOME": home, "PATH": os.environ["PATH"], "TRAINHUB_URL": hub.url, "TRAINHUB_TOKEN": hub.token}
    terminal, other = pty.openpty()
    argv = [sys.executable, "-m", "trainhub_cli", "logs", "-f", run]
    seconds: list[float] = []
    rest, end = b"", time.monotonic() + 60
    with subprocess.Popen(argv, cwd=ROOT, env=env, stdout=other, stderr=subprocess.DEVNULL) as program:
        os.close(other)
        while len(seconds) < lines and time.monotonic() < end:
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # the program has ended
                break
            now = time.time()
            whole, _, rest = (rest + piece.replace(b"\r\n", b"\n")).rpartition(b"\n")
            seconds += [now - float(stamp) for stamp in STAMP.findall(whole + b"\n")]
        program.terminate()
    os.close(terminal)
    return seconds


def trainhub(lines: int) -> tuple[list[float], list[float]]:
    """Returns the seconds to the messages, and those to the terminal, of two runs."""
    with tempfile.TemporaryDirectory(prefix="th-bench-follow-") as home, stack() as hub:
        snapshot = hub.snapshot({"main.py": SCRIPT.format(lines=lines)})
        run = hub.submit(snapshot, "main.py")
        messages = asyncio.run(follow(hub.url, hub.token, run, lines))
        hub.wait(run)
        run = hub.submit(snapshot, "main.py")
        return messages, follow_on_terminal(hub, run, home, lines)


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
    seconds, on_terminal = trainhub(options.lines)
    print(summary("TrainHub: line written -> WebSocket message", seconds))
    print(summary("TrainHub: line written -> trainhub logs -f", on_terminal))
    if min(len(seconds), len(on_terminal)) < options.lines:
        sys.exit(f"only {len(seconds)} and {len(on_terminal)} of {options.lines} lines came")
    beside = bare(1, 200)
    print(summary("bare uvicorn, one socket", beside))
    limits = Limits()
    limits.at_most("the medians", median(seconds) / median(beside), MAX_RATIO)
    limits.at_most("milliseconds to the terminal", 1000 * median(on_terminal), MAX_TERMINAL_MS)
    if options.ray_python:
        print(summary("Ray: line written -> tail_job_logs", ray(options.ray_python, options.lines)))
    return limits.exit_code()


if __name__ == "__main__":
    sys.exit(main())
