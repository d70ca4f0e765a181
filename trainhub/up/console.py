"""The output of `up`: its few lines, and the sentence with which it fails."""

from __future__ import annotations

import json
import sys
import time

from trainhub.env import EnvError
from trainhub.logs import log_configuration
from trainhub.logs.json_format import json_fields


class Stop(Exception):
    """`up` cannot continue. The message is the sentence for the person at the console."""


def say(line: str = "") -> None:
    try:
        sys.stdout.write(f"{_formatted('INFO', line)}\n")
        sys.stdout.flush()
    except OSError:
        pass  # the terminal is gone; the services are not


def complain(line: str) -> None:
    sys.stderr.write(f"{_formatted('ERROR', line)}\n")


def _formatted(level: str, line: str) -> str:
    try:
        is_json = log_configuration.is_json()
    except EnvError:
        is_json = False  # the sentence about that very setting
    return json.dumps(json_fields(level, "trainhub.up", line, time.time())) if is_json else line
