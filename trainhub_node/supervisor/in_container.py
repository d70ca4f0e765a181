"""The programs and the environment of a run in a container."""

from __future__ import annotations

import os

from trainhub_node.supervisor import variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainhub_node.isolation.namespaces import Namespaces
    from trainhub_node.supervisor.gang import Gang

MAX_PATH_BYTES = 65536


def find_program(gang: Gang, namespaces: Namespaces, *names: str) -> str | None:
    """Returns the path of the first of `names` on the image's PATH, or None."""
    path = (gang.image_variables or {}).get("PATH") or variables.DEFAULT_PATH
    reading, writing = os.pipe2(os.O_CLOEXEC)
    pid = namespaces.fork()
    if pid == 0:
        try:
            namespaces.enter()
            program = next(filter(None, (variables.find_program(name, path) for name in names)), "")
            os.write(writing, os.fsencode(program))
        finally:
            os._exit(0)
    os.close(writing)
    data = os.read(reading, MAX_PATH_BYTES)
    os.close(reading)
    os.waitpid(pid, 0)
    return os.fsdecode(data) or None
