"""The data that a run reads where it lies on this node: checked before the ranks start, with the rights of
their account."""

from __future__ import annotations

import os
import select
import signal
import time

from trainhub_node import records
from trainhub_node.data import slow_mounts
from trainhub_node.supervisor import rank
from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, NoReturn

    from trainhub_node.supervisor.gang import Gang

ANSWER_TIMEOUT_S = 30.0
POLL_S = 1.0
MAX_ANSWER_BYTES = 65536


def check_inputs(gang: Gang) -> None:
    """Sets `gang.inputs`. Raises PreparationFailed if the ranks would not find their data, and
    StopRequested."""
    hidden = gang.terms["hidden"]
    for name, path in sorted(gang.order["inputs"].items()):
        answer = _examine_as_account(gang, path)
        real = answer.get("real", path)
        problem = answer["problem"] or _hidden_problem(gang, real, hidden)
        if problem:
            raise PreparationFailed("data", f"Input {name}: {path} on node {gang.terms['node']} {problem}.")
        gang.inputs[path] = (real, answer["device"], answer["inode"])
        if sentence := slow_mounts.slow_mount_sentence(real):
            gang.log(f"Input {name}: {sentence}")


def _examine_as_account(gang: Gang, path: str) -> dict[str, Any]:
    """Returns what a process of the run's account learns about the path. It is another process because a file
    server that is gone lets nobody go. Raises StopRequested."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _answer(gang, path, writing)
    os.close(writing)
    try:
        _wait(gang, reading)
        text = os.read(reading, MAX_ANSWER_BYTES) or b'{"problem": "could not be examined"}'
    except BaseException as error:
        # One that waits for a file server ends only when that answers, and is not waited for.
        os.kill(pid, signal.SIGKILL)
        if not isinstance(error, TimeoutError):
            raise
        return {"problem": f"does not answer within {ANSWER_TIMEOUT_S:.0f} s: is its file server there?"}
    finally:
        os.close(reading)
    os.waitpid(pid, 0)
    answer: dict[str, Any] = dict(records.loads(text))  # type: ignore[call-overload]
    return answer


def _answer(gang: Gang, path: str, writing: int) -> NoReturn:
    """Writes what this process, which ends here, learns about the path."""
    try:
        rank.switch_account(gang.terms["account"])
        result = _examine(path)
    except Exception as error:
        result = {"problem": f"could not be examined ({error!r})"}
    try:
        os.write(writing, records.dumps(result))
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


def _examine(path: str) -> Mapping[str, Any]:
    """`real`: the path without links, of what was opened, so that no link can be changed in between."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        facts = os.fstat(descriptor)
        real = os.readlink(f"/proc/self/fd/{descriptor}")
        if os.path.isdir(path):
            with os.scandir(path) as entries:
                next(entries, None)
        else:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except FileNotFoundError:
        return {"problem": "is not there: mount its file system on that node, or choose nodes that have it"}
    except PermissionError:
        return {"problem": f"cannot be read by the account of this run ({_account()})"}
    except OSError as error:
        return {"problem": f"cannot be read ({error.strerror})"}
    return {"problem": "", "real": real, "device": facts.st_dev, "inode": facts.st_ino}


def _account() -> str:
    groups = ", ".join(str(group) for group in sorted({os.getgid(), *os.getgroups()}))
    return f"user {os.getuid()}, groups {groups}"


def _hidden_problem(gang: Gang, real: str, hidden: Iterable[str]) -> str:
    for path in map(os.path.realpath, hidden):
        if _is_below(real, path):
            return f"lies in {path}, of which runs see nothing"
        # A container has only what is mounted into it: nothing would cover that part.
        if gang.uses_image and _is_below(path, real):
            return f"contains {path}, of which runs see nothing: name a folder beside it"
    return ""


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
