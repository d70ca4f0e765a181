"""The file system as a run sees it. Arranged once for all ranks of an attempt on a node, by a process that is
alone in its mount namespace.

A run sees the machine's files as before, but read-only if its account is its own. Of the agent's and the
hub's folders it sees its own part only. It has its own /tmp, /dev, /dev/shm and /proc."""

from __future__ import annotations

import errno
import os

from trainhub_node.isolation import overlays, syscalls
from trainhub_node.isolation.syscalls import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    MS_SLAVE,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - the places that programs use
NULL = "/dev/null"
CGROUPS = "/sys/fs/cgroup"
LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
# Options of a mount, as /proc/self/mountinfo names them, which a change of its other options must repeat.
KEPT_OPTIONS = {
    "nodev": MS_NODEV,
    "noexec": MS_NOEXEC,
    "noatime": 0x400,
    "nodiratime": 0x800,
    "relatime": 0x200000,
}


# `os.statvfs` gives these options the numbers that `mount` gives them.
LOCKED_OPTIONS = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC


class View:
    """What a run sees. `own`: the folder of its attempt; `temporary`: its /tmp. `hidden`: folders and files
    that look empty. `visible`: what can be read all the same, even where it lies in a hidden folder or below
    /tmp. `writable`: folders and files outside of its own into which it may write although all else is
    read-only. `inputs`: the path of data that it reads -> that path without links, and the device and inode
    that must be there: it is visible also below /tmp, but not in a hidden folder. `overlays`: a visible
    folder -> the folder for what the run changes in it, where the kernel can keep that apart. `files`: a
    path -> the file that stands in its place. `devices`: see `devices.device_nodes`. `shm_bytes`: the size of
    /dev/shm."""

    def __init__(
        self,
        *,
        own: str,
        temporary: str,
        hidden: Iterable[str],
        visible: Iterable[str],
        writable: Iterable[str],
        inputs: Mapping[str, tuple[str, int, int]],
        overlays: Mapping[str, str],
        files: dict[str, str],
        devices: Iterable[str],
        shm_bytes: int,
        is_read_only: bool,
    ) -> None:
        self.own = own
        self.temporary = temporary
        self.hidden = _existing(hidden)
        self.visible = _existing(visible)
        self.writable = _existing(writable)
        self.inputs = inputs
        self.overlays = overlays
        self.files = files
        self.devices = list(devices)
        self.shm_bytes = shm_bytes
        self.is_read_only = is_read_only


class _Source:
    """A file or folder that is to stand elsewhere. `options`: those of its mount until now, which in a
    namespace of an account without rights cannot be taken from it."""

    def __init__(self, path: str) -> None:
        self.descriptor = _open(path)
        self.is_folder = os.path.isdir(f"/proc/self/fd/{self.descriptor}")
        self.options = os.fstatvfs(self.descriptor).f_flag & LOCKED_OPTIONS


def _input_source(path: str, device: int, inode: int) -> _Source:
    source = _Source(path)
    check_identity(path, os.fstat(source.descriptor), device, inode)
    return source


def check_identity(path: str, facts: os.stat_result, device: int, inode: int) -> None:
    """Raises OSError if something else lies at the path by now: a link may lead to what runs must not see."""
    if (facts.st_dev, facts.st_ino) != (device, inode):
        raise OSError(errno.ESTALE, f"{path} was replaced while the run was being prepared")


def arrange(view: View) -> None:
    """Arranges the mounts of this process's mount namespace, which nobody else may use yet. Raises
    OSError."""
    # Otherwise the mounts below would appear in the machine's own namespace.
    syscalls.mount(None, "/", None, MS_REC | MS_SLAVE)
    # While the file systems can be written to.
    changeable = {path for path, changes in view.overlays.items() if overlays.mount_overlay(path, changes)}
    visible = [path for path in view.visible if path not in changeable]
    writable = [*view.writable, *changeable]
    # Opened before anything is covered: a descriptor leads to what was at the path until now.
    sources = {NULL, view.own, view.temporary, *visible, *writable, *view.files.values()}
    opened = {path: _Source(path) for path in sources}
    inputs = {path: _input_source(*facts) for path, facts in view.inputs.items()}
    if view.is_read_only:
        make_all_read_only()
    _mount_devices(view)
    replaced = [path for path in TEMPORARY if os.path.isdir(path)]
    for path in replaced:
        _bind(opened[view.temporary], path, MS_NOSUID | MS_NODEV)
    covers = _hide(view.hidden, opened[NULL])
    for path in visible:
        if _is_below(path, (*covers, *replaced)):
            _bind(opened[path], _make_place(path, opened[path]), MS_NOSUID | MS_RDONLY)
    for path, data in inputs.items():
        for place in {path, view.inputs[path][0]}:
            if _is_below(place, replaced) and not _is_below(place, covers):
                _bind(data, _make_place(place, data), MS_NOSUID | MS_NODEV | MS_RDONLY)
    for path in writable:
        _bind(opened[path], _make_place(path, opened[path]), MS_NOSUID | MS_NODEV)
    own = opened[view.own]
    _bind(own, _make_place(os.path.realpath(view.own), own), MS_NOSUID | MS_NODEV)
    for path in covers:
        syscalls.mount(None, path, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    for path, source in view.files.items():
        _bind(opened[source], path, MS_NOSUID | MS_NODEV | MS_RDONLY)
    hide_control_groups()
    for origin in (*opened.values(), *inputs.values()):
        os.close(origin.descriptor)
    # The last: the paths of the descriptors above are names in the machine's /proc.
    syscalls.mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)


def _existing(paths: Iterable[str]) -> list[str]:
    """Returns the real paths of those that exist, the outer folders first."""
    return sorted({os.path.realpath(path) for path in paths if os.path.exists(path)})


def _open(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def _bind(source: _Source, target: str, flags: int) -> None:
    syscalls.mount(f"/proc/self/fd/{source.descriptor}", target, None, MS_BIND | MS_REC)
    # A bind mount gets its options only by a second call.
    syscalls.mount(None, target, None, MS_REMOUNT | MS_BIND | flags | source.options)


def _make_place(path: str, source: _Source) -> str:
    """Makes the place for a mount in a folder that covers another. Elsewhere it exists. Returns the path."""
    if source.is_folder:
        os.makedirs(path, exist_ok=True)
    elif not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _make_file(path)
    return path


def _make_file(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))


def _hide(paths: Iterable[str], null: _Source) -> list[str]:
    """Covers each folder by an empty one and each file by /dev/null, except those in a covered folder, which
    are gone with it. Returns the covered folders."""
    covers: list[str] = []
    for path in paths:
        if not os.path.isdir(path):
            if os.path.exists(path):
                _bind(null, path, MS_NOSUID | MS_NOEXEC)
            continue
        syscalls.mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0711")
        covers.append(path)
    return covers


def make_all_read_only() -> None:
    """Makes every mount of this process's namespace read-only. Raises OSError."""
    try:
        syscalls.make_read_only("/")
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        for target, flags in _mounts():
            syscalls.mount(None, target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | flags)


def _mounts() -> list[tuple[str, int]]:
    """Returns the path and the options of every mount that can be reached."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        fields = [line.split() for line in file]
    found = {}
    for field in fields:
        # The kernel writes white space and backslashes in paths as octal numbers.
        target = field[4].encode(errors="surrogateescape").decode("unicode_escape").encode("latin-1")
        flags = sum(KEPT_OPTIONS.get(option, 0) for option in field[5].split(","))
        found[os.fsdecode(target)] = flags
    return [(target, flags) for target, flags in found.items() if os.path.exists(target)]


def _mount_devices(view: View) -> None:
    nodes = {name: _open(f"/dev/{name}") for name in view.devices}
    syscalls.mount("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "size=64k,mode=0755")
    for name, descriptor in nodes.items():
        target = f"/dev/{name}"
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            os.mkdir(target, 0o755)
        else:
            _make_file(target)
        syscalls.mount(f"/proc/self/fd/{descriptor}", target, None, MS_BIND | MS_REC)
        os.close(descriptor)
    for name, target in LINKS.items():
        os.symlink(target, f"/dev/{name}")
    for name in ("pts", "shm"):
        os.mkdir(f"/dev/{name}", 0o755)
    mount_terminals_and_memory(view.shm_bytes)
    syscalls.mount(None, "/dev", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC)


def mount_terminals_and_memory(shm_bytes: int) -> None:
    """Mounts /dev/pts and /dev/shm anew. `shm_bytes`: see `View`. Raises OSError."""
    syscalls.mount(
        "devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"
    )
    size = f"size={shm_bytes}," if shm_bytes else ""
    syscalls.mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, f"{size}mode=1777")  # noqa: S108


def hide_control_groups() -> None:
    if os.path.isdir(CGROUPS):
        syscalls.mount("tmpfs", CGROUPS, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, "size=4k")
