"""Processes of all namespaces, as this machine's /proc shows them."""

from __future__ import annotations

from pathlib import Path


def children(pid: int) -> list[int]:
    text = read(pid, f"task/{pid}/children").split()
    own = [int(child) for child in text]
    return own + [grand for child in own for grand in children(child)]


def parent(pid: int) -> int:
    return int(read(pid, "stat").rpartition(b")")[2].split()[1])


def everyone() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def space(pid: int) -> str:
    """The namespace of process numbers that it lives in; empty once it is gone."""
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""


def read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def command(pid: int) -> str:
    return read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()


def lives(pid: int) -> bool:
    return read(pid, "stat").rpartition(b")")[2].split()[:1] not in ([b"Z"], [b"X"], [])
