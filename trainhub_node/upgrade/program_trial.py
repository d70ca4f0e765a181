"""The trial of a new program: it runs below this process until the hub has answered one of its reports. If it
ends before, or takes too long, it is stopped, and the program of before goes on."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from trainhub_node.isolation import syscalls
from trainhub_node.upgrade.program_record import ProgramRecord, read_record, write_record
from trainhub_node.upgrade.programs import has_program

log = logging.getLogger(__name__)
# Together with a stop and two starts this is less than the 60 s (NODE_LOST_AFTER) for which a node may be
# silent before the hub gives up its runs.
TRIAL_S, FAILED_STOP_S = 30.0, 5.0
# More than an agent takes to stop (see agent.CLOSE_TIMEOUT_S).
STOP_S = 28.0
LOOK_S = 0.1
# A trial that was cut off, as by a power failure, is repeated once.
MAX_STARTS = 2
MAX_WHY = 500


class ProgramTrial:
    """`command` and `variables` start the program."""

    def __init__(
        self, folder: Path, record: ProgramRecord, command: Sequence[str], variables: Mapping[str, str]
    ) -> None:
        self._folder = folder
        self._record = record
        self._command = command
        self._variables = variables
        self._last_lines: deque[str] = deque(maxlen=1)
        self._signal = 0

    def run(self) -> ProgramRecord:
        """Returns the record once the trial is over. Ends this process if it is told to end. Raises
        OSError."""
        name = self._record.trial
        if self._record.starts >= MAX_STARTS:
            return self._fail(f"{name} was started {MAX_STARTS} times and did not report to the hub.")
        if not has_program(self._folder, name):
            return self._fail(f"{name} is not whole.")
        self._write(replace(self._record, starts=self._record.starts + 1))
        log.info("Trying the program %s", name)
        process = self._start()
        pump = threading.Thread(target=self._pass_on, args=(process.stderr,), name="pump", daemon=True)
        pump.start()
        why = self._watch(process)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        pump.join(1.0)
        if self._signal:
            sys.exit(128 + self._signal)
        if why:
            last = f" Its last line: {self._last_lines[0]}" if self._last_lines else ""
            return self._fail(f"{name} {why}.{last}")
        return self._record

    def _start(self) -> subprocess.Popen[bytes]:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        # A killed launcher must not leave an agent behind, beside which the next start would start another.
        return subprocess.Popen(
            self._command,
            env=dict(self._variables),
            stderr=subprocess.PIPE,
            # Nothing has started a thread here yet.
            preexec_fn=syscalls.end_with_parent,  # noqa: PLW1509
        )

    def _end(self, number: int, _frame: object) -> None:
        self._signal = number

    def _watch(self, process: subprocess.Popen[bytes]) -> str:
        """Returns why the trial has failed, "" if it has not or this process has to end. The program has
        ended then."""
        deadline = time.monotonic() + TRIAL_S
        code = None
        while code is None:
            time.sleep(LOOK_S)
            code = _reap(process)
            self._record = read_record(self._folder)
            if not self._record.trial or self._signal:
                _stop(process, STOP_S)
                return ""
            if time.monotonic() > deadline:
                _stop(process, FAILED_STOP_S)
                self._record = read_record(self._folder)
                # It may have reported at the last moment.
                return f"did not report to the hub within {TRIAL_S:.0f} s" if self._record.trial else ""
        return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"

    def _pass_on(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            text = line.decode(errors="replace")
            sys.stderr.write(text)
            sys.stderr.flush()
            if text.strip():
                self._last_lines.append(text.strip())

    def _fail(self, why: str) -> ProgramRecord:
        log.error("The program of before goes on: %s", why)
        self._write(self._record.with_failure(why[:MAX_WHY]))
        return self._record

    def _write(self, record: ProgramRecord) -> None:
        write_record(self._folder, record)
        self._record = record


def _reap(process: subprocess.Popen[bytes]) -> int | None:
    """Returns the code of the process if it has ended. This process also has the children of attempts that an
    agent has started in it: those that have ended are forgotten, too."""
    try:
        while process.returncode is None and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == process.pid:
                process.returncode = os.waitstatus_to_exitcode(ended[1])
    except ChildProcessError:
        return process.returncode
    return process.returncode


def _stop(process: subprocess.Popen[bytes], within_s: float) -> None:
    """Stops the program, and kills it after so many seconds. The runs that it has started go on."""
    deadline = time.monotonic() + within_s
    if _reap(process) is None:
        process.terminate()
    while _reap(process) is None:
        if time.monotonic() > deadline:
            process.kill()
        time.sleep(LOOK_S)
