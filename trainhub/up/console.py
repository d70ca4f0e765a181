"""The few calm lines that `up` prints, and the one sentence with which it gives up."""

from __future__ import annotations

import sys


class Stop(Exception):
    """`up` cannot go on; the message is the sentence for the person at the console."""


def say(line: str = "") -> None:
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError:
        pass  # the terminal is gone; the services are not


def complain(line: str) -> None:
    sys.stderr.write(f"{line}\n")
