"""What this machine needs to mount NFS shares, and what of it is missing."""

from __future__ import annotations

import os

from trainhub_node.supervisor.variables import DEFAULT_PATH, find_program

MOUNT_PROGRAM = "mount.nfs"
FILE_SYSTEMS, STATUS = "/proc/filesystems", "/proc/self/status"
# Which modules the kernel can load, and which are a part of it.
MODULE_LISTS = ("modules.dep", "modules.builtin")
NFS_MODULE = "/fs/nfs/nfs.ko"
# From <linux/capability.h>: the right to mount.
CAP_SYS_ADMIN = 21
INSTALL = (
    "install nfs-common (Debian, Ubuntu), nfs-utils (RHEL, Rocky, Fedora) or nfs-client (SUSE) there, which "
    "has mount.nfs"
)
LOAD = (
    "the kernel of that machine has no NFS client: load its module nfs (modprobe nfs), or boot one that "
    "has it"
)


def find_obstacle() -> str:
    """Returns why this process cannot mount NFS shares, with the remedy, as a phrase; "" if nothing is known
    to prevent it."""
    if os.geteuid() != 0:
        return "its agent is not root: run it as root"
    if not _may_mount():
        return "its agent is in a container without the right to mount: give that CAP_SYS_ADMIN"
    if not mount_program():
        return INSTALL
    return "" if _has_client() else LOAD


def mount_program() -> str:
    """Returns the path of mount.nfs, "" if it is not installed."""
    return find_program(MOUNT_PROGRAM, f"{os.environ.get('PATH', '')}:{DEFAULT_PATH}") or ""


def _may_mount() -> bool:
    with open(STATUS, encoding="ascii", errors="replace") as file:
        rights = next((line.split()[1] for line in file if line.startswith("CapEff:")), "0")
    return bool(int(rights, 16) >> CAP_SYS_ADMIN & 1)


def _has_client() -> bool:
    """Returns whether the kernel knows NFS, or loads it when something is mounted."""
    with open(FILE_SYSTEMS, encoding="ascii", errors="replace") as file:
        if any(line.split()[-1] in ("nfs", "nfs4") for line in file):
            return True
    folder = f"/lib/modules/{os.uname().release}"
    return any(_is_listed(f"{folder}/{name}") for name in MODULE_LISTS)


def _is_listed(path: str) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return any(NFS_MODULE in line.partition(":")[0] for line in file)
    except OSError:
        return False
