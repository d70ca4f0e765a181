"""The process that reads strangers' files: little memory, little time, no secrets. One JSON line per file, as asked for on stdin.

In: one line of JSON, [[path, name], …]. Out: [index, {"verdict", "findings", "note"}].
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from pathlib import Path
from types import FrameType

from registry.scanning.reading import Verdict, verdict_of
from registry.scanning.words import UNSCANNED

MOST_MEMORY_BYTES = 2 * 1024**3
FILE_S = 60
TOO_LONG = f"The scanner gave up after {FILE_S} seconds."


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, _stop)
    for index, (path, name) in enumerate(json.loads(sys.stdin.readline())):
        sys.stdout.write(json.dumps([index, _within(path, name).to_json()]) + "\n")
        sys.stdout.flush()


def _within(path: str, name: str) -> Verdict:
    signal.alarm(FILE_S)
    try:
        return verdict_of(Path(path), name)
    except TooLong:
        return Verdict(UNSCANNED, note=TOO_LONG)
    finally:
        signal.alarm(0)


class TooLong(BaseException):
    """Not an Exception: no parser may swallow it."""


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise TooLong


if __name__ == "__main__":
    main()
