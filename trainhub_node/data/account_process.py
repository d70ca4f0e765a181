"""A process with the account of a run, which looks at its data. It is another process because a file server
that is gone lets nobody go."""

from __future__ import annotations

import os
import select
import signal
import time

from trainhub_node import records
from trainhub_node.supervisor import rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, NoReturn

    from trainhub_node.supervisor.gang import Gang

    # What such a process says, as JSON has it.
    Record = dict[str, Any]
    Say = Callable[[Mapping[str, object]], None]

ANSWER_TIMEOUT_S = 30.0
POLL_S = 1.0
READ_BYTES = 65536


def no_answer() -> str:
    """Returns what is wrong with a path at which a process hangs, as it follows the path."""
    return f"does not answer within {ANSWER_TIMEOUT_S:.0f} s: is its file server there?"


def lines_of(
    gang: Gang,
    work: Callable[[Say], None],
    *,
    dumps: Callable[[Record], bytes] = records.dumps,
    loads: Callable[[bytes], Any] = records.loads,
) -> Iterator[Record]:
    """Yields the records that `work` says in a process of the run's account. It must say something at least
    every ANSWER_TIMEOUT_S seconds. Raises TimeoutError if it does not, and StopRequested. What `work` raises
    is the last record, as `problem`. `dumps` and `loads`: how a record travels, in one line."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _work(gang, work, writing, dumps)
    os.close(writing)
    is_over = False
    try:
        pending = b""
        while True:
            _wait(gang, reading)
            data = os.read(reading, READ_BYTES)
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                yield dict(loads(line))
        is_over = True
    finally:
        os.close(reading)
        if is_over:
            os.waitpid(pid, 0)
        else:
            # One that waits for a file server ends only when that answers, and is not waited for.
            os.kill(pid, signal.SIGKILL)


def _work(
    gang: Gang, work: Callable[[Say], None], writing: int, dumps: Callable[[Record], bytes]
) -> NoReturn:
    """Does the work in this process, which ends here."""

    def say(record: Mapping[str, object]) -> None:
        view = memoryview(dumps(dict(record)) + b"\n")
        while view:
            view = view[os.write(writing, view) :]

    try:
        rank.switch_account(gang.terms["account"])
        # Its pipe breaks when the child has gone.
        work(say)
    except Exception as error:
        say({"problem": f"could not be examined ({error!r:.500})"})
    finally:
        # After a fork nothing may return into the code of the parent.
        os._exit(0)


def _wait(gang: Gang, descriptor: int) -> None:
    """Waits until there is something to read. Raises TimeoutError and StopRequested."""
    until = time.monotonic() + ANSWER_TIMEOUT_S
    while not select.select([descriptor], [], [], POLL_S)[0]:
        gang.check_stop()
        if time.monotonic() >= until:
            raise TimeoutError
