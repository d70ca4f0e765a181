"""Which of several workers runs the periodic tasks. Celery tasks themselves run on any of them."""

from __future__ import annotations

from workspaces.servers import membership
from workspaces.servers.round_lease import PERIODIC_TASKS, LeaseKeeper
from workspaces.servers.server_registry import WORKER, OwnProcess, is_shareable


class Leadership:
    """This worker among the others. Where only one machine can use the database, it leads at once."""

    def __init__(self) -> None:
        self._thread: membership.MembershipThread | None = None
        self._lease: LeaseKeeper | None = None

    @property
    def is_leader(self) -> bool:
        """Whether this worker runs the periodic tasks now. Takes no query."""
        return self._lease is None or self._lease.is_ours

    def start(self) -> None:
        if is_shareable():
            self._lease = LeaseKeeper(PERIODIC_TASKS)
            self._thread = membership.join_servers(OwnProcess(WORKER))
            self._lease.start()

    def stop(self) -> None:
        """Leaves the lease to its end: tasks that run now may last a little longer."""
        if self._lease is not None:
            self._lease.close()
        membership.leave_servers(self._thread)


leadership = Leadership()
