"""Reads from the output of podman how far a build is, and tells the user."""

from __future__ import annotations

import os
import re

from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_node.supervisor.gang import Gang

PIECE_BYTES = 262144
MAX_LINE_BYTES = 65536
STEP = re.compile(rb"(\[\d+/\d+\] )?STEP (\d+)/(\d+): (.*)")


class StepProgress:
    """Follows the build log from its present end on. `step`: such as "2 of 5"; `instruction`: what podman
    does in it; both "" before the first one."""

    def __init__(self, gang: Gang) -> None:
        self._gang = gang
        self._log = gang.folder.log(ENVIRONMENT_LOG)
        self._offset = os.stat(self._log).st_size if os.path.exists(self._log) else 0
        self._rest = b""
        self.step = ""
        self.instruction = ""

    def read(self) -> None:
        """Reads what has come since the last call."""
        file = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            while piece := os.pread(file, PIECE_BYTES, self._offset):
                self._offset += len(piece)
                *lines, rest = (self._rest + piece).split(b"\n")
                self._rest = rest[-MAX_LINE_BYTES:]
                for line in lines:
                    self._read_line(line)
        finally:
            os.close(file)

    def _read_line(self, line: bytes) -> None:
        match = STEP.match(line)
        if match is None:
            return
        stage = (match[1] or b"").decode().strip()
        self.step = f"{match[2].decode()} of {match[3].decode()}{f' {stage}' if stage else ''}"
        self.instruction = match[4].decode(errors="replace")
        self._gang.log(f"Step {self.step}: {self.instruction[:200]}")
