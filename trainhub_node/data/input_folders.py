"""The data that a run reads where it lies on this node: checked before the ranks start, with the rights of
their account."""

from __future__ import annotations

import os

from trainhub_node.data import account_process, slow_mounts
from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trainhub_node.data.account_process import Record
    from trainhub_node.supervisor.gang import Gang

MISSING = "is not there: mount its file system on that node"


def check_inputs(gang: Gang) -> None:
    """Sets `gang.inputs`. Raises PreparationFailed if the ranks would not find their data, and
    StopRequested."""
    for name, path in sorted(gang.input_paths.items()):
        answer = look_at(gang, path)
        problem = answer["problem"]
        if problem == MISSING:
            problem += ", or choose nodes that have it"
        if problem:
            raise PreparationFailed("data", f"Input {name}: {path} on node {gang.terms['node']} {problem}.")
        if name not in gang.share_paths:
            gang.inputs[path] = (answer["real"], answer["device"], answer["inode"])
        if sentence := slow_mounts.slow_mount_sentence(answer["real"]):
            gang.log(f"Input {name}: {sentence}")


def look_at(gang: Gang, path: str, *, is_walked: bool = False) -> Record:
    """Returns what a process of the run's account learns about the path: `problem`, a phrase, "" if there is
    none, and `real`, `device` and `inode` of what is there. `is_walked`: this node itself reads what is below
    it, so that no mount covers what runs see nothing of. Raises StopRequested."""
    answer: Record = {"problem": "could not be examined"}
    try:
        for record in account_process.lines_of(gang, lambda say: say(_examine(path))):
            answer = record
    except TimeoutError:
        return {"problem": account_process.no_answer()}
    problem = answer["problem"] or _place_problem(gang, path, answer["real"], is_walked=is_walked)
    return {**answer, "problem": problem}


def _examine(path: str) -> Mapping[str, object]:
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
        return {"problem": MISSING}
    except PermissionError:
        return {"problem": f"cannot be read by the account of this run ({account_words()})"}
    except OSError as error:
        return {"problem": f"cannot be read ({error.strerror})"}
    return {"problem": "", "real": real, "device": facts.st_dev, "inode": facts.st_ino}


def account_words() -> str:
    """Returns who this process is, for a sentence."""
    groups = ", ".join(str(group) for group in sorted({os.getgid(), *os.getgroups()}))
    return f"user {os.getuid()}, groups {groups}"


def _place_problem(gang: Gang, path: str, real: str, *, is_walked: bool) -> str:
    """Returns what is wrong with `real`, to which the path leads."""
    share = next((place for place in gang.shares if _is_below(path, place)), "")
    if not share:
        return hidden_problem(real, gang.terms["hidden"], is_walked=is_walked or gang.uses_image)
    # A link on a server is followed on the node.
    return "" if _is_below(real, share) else "is a link that leads out of its share"


def hidden_problem(real: str, hidden: Iterable[str], *, is_walked: bool) -> str:
    """Returns what is wrong with a path that runs see nothing of, as a phrase, "" if they see it. `hidden`:
    what they do not see; `is_walked`: as in `look_at`."""
    for path in map(os.path.realpath, hidden):
        if _is_below(real, path):
            return f"lies in {path}, of which runs see nothing"
        # A container has only what is mounted into it: nothing would cover that part.
        if is_walked and _is_below(path, real):
            return f"contains {path}, of which runs see nothing: name a folder beside it"
    return ""


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
