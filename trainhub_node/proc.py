"""Reads processes from /proc."""

from __future__ import annotations

import os

BOOT_ID = "/proc/sys/kernel/random/boot_id"


class ProcessStat:
    """The fields of /proc/PID/stat that the agent needs."""

    __slots__ = ("group", "parent", "pid", "session", "start", "state")

    def __init__(self, pid: int, fields: list[bytes]) -> None:
        """`fields`: those of /proc/PID/stat from the third, the state, on."""
        self.pid = pid
        self.state = fields[0].decode()
        self.parent, self.group, self.session = (int(field) for field in fields[1:4])
        # Field 22 of the file, in clock ticks since the boot (proc(5)).
        self.start = int(fields[19])

    @property
    def is_dead(self) -> bool:
        return self.state in "ZXx"


def read(path: str) -> bytes | None:
    """Returns the file's bytes, None if its process has ended or belongs to another account."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        pieces = []
        while piece := os.read(fd, 65536):
            pieces.append(piece)
        return b"".join(pieces)
    except OSError:
        return None
    finally:
        os.close(fd)


def read_process(pid: int) -> ProcessStat | None:
    data = read(f"/proc/{pid}/stat")
    if not data:
        return None
    # The program's name stands in parentheses and may itself hold any of " ()".
    return ProcessStat(pid, data[data.rindex(b")") + 2 :].split())


def list_processes() -> list[ProcessStat]:
    """Returns every process of the machine that is not dead."""
    running = [read_process(int(name)) for name in os.listdir("/proc") if name.isdigit()]
    return [entry for entry in running if entry is not None and not entry.is_dead]


def oom_kills() -> int:
    """Returns how many processes the kernel has killed for lack of memory, 0 where it does not report
    that."""
    for line in (read("/proc/vmstat") or b"").splitlines():
        if line.startswith(b"oom_kill "):
            return int(line.split()[1])
    return 0


def boot_id() -> str:
    return (read(BOOT_ID) or b"").decode().strip()


def identity(pid: int) -> str | None:
    """Returns "boot id/start time" of a process, which distinguishes it from a later one with the same id,
    also after a reboot; None if there is no such living process."""
    entry = read_process(pid)
    return None if entry is None or entry.is_dead else f"{boot_id()}/{entry.start}"


def is_alive(pid: int, expected: str) -> bool:
    return bool(expected) and identity(pid) == expected


def user_ids(pid: int) -> set[int]:
    """Returns the real, effective, saved and file-system user id; empty if there is no such process."""
    for line in (read(f"/proc/{pid}/status") or b"").splitlines():
        if line.startswith(b"Uid:"):
            return {int(number) for number in line.split()[1:]}
    return set()


def inner_pid(pid: int) -> int:
    """Returns the number of a process in its own namespace of processes; 0 if there is no such process."""
    for line in (read(f"/proc/{pid}/status") or b"").splitlines():
        if line.startswith(b"NSpid:"):
            return int(line.split()[-1])
    return 0


def child_pids(pid: int) -> list[int]:
    return [process.pid for process in list_processes() if process.parent == pid]
