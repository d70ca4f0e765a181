"""Looks at the files of an image as the ranks of a run in a container see them."""

from __future__ import annotations

import os

from trainhub_node.supervisor import variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trainhub_node.isolation.namespaces import Namespaces
    from trainhub_node.supervisor.gang import Gang

MAX_ANSWER_BYTES = 65536


def run_inside(namespaces: Namespaces | None, function: Callable[[], str]) -> str:
    """Returns what `function` returns in a process in the namespaces; "" if it raises an exception. Without
    namespaces it is called in this process."""
    if namespaces is None:
        return function()
    reading, writing = os.pipe2(os.O_CLOEXEC)
    pid = namespaces.fork()
    if pid == 0:
        try:
            namespaces.enter()
            os.write(writing, os.fsencode(function())[:MAX_ANSWER_BYTES])
        finally:
            os._exit(0)
    os.close(writing)
    pieces = []
    while piece := os.read(reading, MAX_ANSWER_BYTES):
        pieces.append(piece)
    os.close(reading)
    os.waitpid(pid, 0)
    return os.fsdecode(b"".join(pieces))


def find_program(gang: Gang, path: str, *names: str) -> str | None:
    """Returns the first of `names` on the search path, where the ranks of the run look for it; None if there
    is none."""

    def find() -> str:
        return next(filter(None, (variables.find_program(name, path) for name in names)), "")

    return run_inside(gang.namespaces if gang.uses_image else None, find) or None
