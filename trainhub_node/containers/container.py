"""A running container, and the namespaces in it that ranks enter."""

from __future__ import annotations

import os

from trainhub_node.isolation import namespaces, syscalls
from trainhub_node.isolation.syscalls import CLONE_NEWPID, CLONE_NEWUSER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainhub_node.containers.view import ContainerView


class Container:
    """Descriptors of the namespaces of a container. Raises OSError if it has ended."""

    def __init__(self, pid: int) -> None:
        self.mounts = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        self._user = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)

    def make_namespaces(self, view: ContainerView, *, is_agents: bool) -> namespaces.Namespaces:
        """Makes the namespaces of an attempt in the container. `is_agents`: whether the ranks have the
        agent's own account. Raises NamespaceError."""
        return namespaces.make(
            lambda: view.arrange(self.mounts), self._unshare_processes, drops_capabilities=is_agents
        )

    def _unshare_processes(self) -> None:
        """Moves this process, of the account that has started the container, to its user namespace, and the
        next child to a namespace of processes."""
        syscalls.setns(self._user, CLONE_NEWUSER)
        syscalls.unshare(CLONE_NEWPID)
