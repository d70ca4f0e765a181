"""The output of `up`: its few lines, and the sentence with which it fails."""

from __future__ import annotations

import sys


class Stop(Exception):
    """`up` cannot continue. The message is the sentence for the person at the console."""


def say(line: str = "") -> None:
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError:
        pass  # the terminal is gone; the services are not


def complain(line: str) -> None:
    sys.stderr.write(f"{line}\n")
