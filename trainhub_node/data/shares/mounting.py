"""Mounts the shares that an attempt reads, in the child of the attempt: a server that hangs holds nobody
else."""

from __future__ import annotations

import os
import time

from trainhub_launch.data.shares import InputMount, NfsShare
from trainhub_node.data import account_process
from trainhub_node.data.shares import mount_table, nfs_client
from trainhub_node.data.shares.allowed_servers import find_refusal
from trainhub_node.data.shares.mount_errors import explain_failure, explain_silence
from trainhub_node.data.shares.share_folder import (
    UNMOUNT_TIMEOUT_S,
    ShareFolder,
    try_lock,
    unmount_command,
)
from trainhub_node.environments.engine_call import EngineResult, EngineTimeout, call_engine
from trainhub_node.supervisor.gang import Gang, PreparationFailed
from trainhub_node.supervisor.variables import DEFAULT_PATH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainhub_node.data.account_process import Say

MOUNT_TIMEOUT_S = 30.0
POLL_S = 0.2


def mount_inputs(gang: Gang) -> None:
    """Sets `gang.share_paths` and `gang.shares`. Raises PreparationFailed, and StopRequested."""
    for name, item in sorted(gang.order["mounts"].items()):
        mount = InputMount.from_json(item)
        place = _Mounting(gang, name, mount.share).run()
        gang.shares[place] = (str(mount.share), mount.share.read_only)
        gang.share_paths[name] = f"{place}/{mount.path}".rstrip("/")


class _Mounting:
    """One share that the input `name` needs."""

    def __init__(self, gang: Gang, name: str, share: NfsShare) -> None:
        self._gang = gang
        self._name = name
        self._share = share
        self._folder = ShareFolder(gang.terms["shares"], share.key)

    def run(self) -> str:
        """Returns where the share is mounted from now on, as long as this process lives."""
        # The terms that an older agent has made lack it.
        if refusal := find_refusal(self._gang.terms.get("nfs_servers", ()), self._share):
            raise self._failure(f"does not mount {self._share}: {refusal}")
        if obstacle := nfs_client.find_obstacle():
            raise self._failure(f"cannot mount NFS: {obstacle}")
        self._folder.make()
        lock = self._folder.open_lock()
        self._gang.locks.append(lock)
        while True:
            self._gang.check_stop()
            is_alone = try_lock(lock, alone=True)
            if is_alone:
                self._mount()
            # Here the lock is free for a moment, and the agent may take the mount for unused.
            if try_lock(lock, alone=False) and mount_table.is_mount_point(self._folder.mount):
                if not is_alone and not self._answers():
                    raise self._failure(f"has {self._share} mounted, which {account_process.no_answer()}")
                os.utime(lock)
                return self._folder.mount
            time.sleep(POLL_S)

    def _mount(self) -> None:
        """Mounts the share, unless it is mounted and answers. Nobody else uses it."""
        if mount_table.is_mount_point(self._folder.mount):
            if self._answers():
                return
            self._gang.log(f"{self._share} is still mounted and does not answer: it is mounted again.")
            self._unmount()
        options = self._share.mount_options
        argv = [nfs_client.mount_program(), str(self._share), self._folder.mount, "-o", options]
        try:
            done = self._call(argv, MOUNT_TIMEOUT_S)
        except EngineTimeout:
            reason = explain_silence(self._share, MOUNT_TIMEOUT_S)
        else:
            reason = explain_failure(self._share, done.errors) if done.code else ""
        if reason:
            raise self._failure(f"cannot mount {self._share}: {reason}")
        self._gang.log(f"Input {self._name}: {self._share} is mounted ({options}).")

    def _unmount(self) -> None:
        try:
            self._call(unmount_command(self._folder.mount), UNMOUNT_TIMEOUT_S)
        except EngineTimeout:
            return  # it is unmounted all the same: see there

    def _call(self, argv: list[str], timeout_s: float) -> EngineResult:
        variables = {"PATH": DEFAULT_PATH, "LC_ALL": "C"}
        return call_engine(self._gang, argv, variables, timeout_s=timeout_s)

    def _answers(self) -> bool:
        """Returns whether the server of what is mounted does: it may have been mounted long ago."""

        def look(say: Say) -> None:
            # The kernel remembers the answers to most other questions.
            say({"blocks": os.statvfs(self._folder.mount).f_blocks})

        try:
            return all("blocks" in record for record in account_process.lines_of(self._gang, look))
        except TimeoutError:
            return False

    def _failure(self, phrase: str) -> PreparationFailed:
        return PreparationFailed("data", f"Input {self._name}: node {self._gang.terms['node']} {phrase}.")
