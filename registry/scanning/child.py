"""The process that reads strangers' files: little memory, little time, no secrets. One JSON line per file, as
asked for on stdin.

In: one line, {"files": [[path, name], …], "seconds" (each), "memory_bytes"}. Out: [index, {"verdict",
"findings", "note"}]."""

from __future__ import annotations

import json
import resource
import signal
import sys
from pathlib import Path
from types import FrameType

from registry.scanning.file_scan import verdict_of
from registry.scanning.verdict_names import NOT_SCANNED, Verdict


def main() -> None:
    told = json.loads(sys.stdin.readline())
    resource.setrlimit(resource.RLIMIT_AS, (told["memory_bytes"], told["memory_bytes"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, _stop)
    for index, (path, name) in enumerate(told["files"]):
        sys.stdout.write(json.dumps([index, _within(path, name, told["seconds"]).to_json()]) + "\n")
        sys.stdout.flush()


def _within(path: str, name: str, seconds: int) -> Verdict:
    signal.alarm(seconds)
    try:
        return verdict_of(Path(path), name)
    except TooLong:
        return Verdict(NOT_SCANNED, note=f"The scanner gave up after {seconds} seconds.")
    finally:
        signal.alarm(0)


class TooLong(BaseException):
    """Not an Exception: no parser may swallow it."""


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise TooLong


if __name__ == "__main__":
    main()
