"""The system calls for namespaces and mounts that Python 3.11 lacks. Each raises OSError.

The C half of `ctypes` is used directly: the package itself would delay every rank by 3 ms."""

from __future__ import annotations

import os
from _ctypes import CFuncPtr, _SimpleCData, dlopen, get_errno
from _struct import pack
from errno import EINVAL

# From <linux/sched.h>.
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x8000000, 0x10000000, 0x20000000
CLONE_NEWNET = 0x40000000
# From <linux/mount.h>.
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 0x1, 0x2, 0x4, 0x8
MS_REMOUNT, MS_BIND, MS_REC, MS_SLAVE = 0x20, 0x1000, 0x4000, 0x80000
MNT_DETACH = 2
# The same number on all architectures.
SYS_MOUNT_SETATTR = 442
AT_RECURSIVE = 0x8000
PR_SET_PDEATHSIG, SIGKILL = 1, 9
PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 24, 36, 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
# From <linux/capability.h>: the version with two words for each set.
CAPABILITY_VERSION, CAPABILITY_SETS, MAX_CAPABILITIES = 0x20080522, 2 * 3, 64

# From <ffi.h> by way of ctypes: C's way to call a function, whose error number is kept.
CDECL, KEEP_ERRNO = 1, 8


class _Int(_SimpleCData):  # type: ignore[type-arg]  # no generic at run time
    _type_ = "i"


class _UnsignedLong(_SimpleCData):  # type: ignore[type-arg]  # no generic at run time
    _type_ = "L"


class _Long(_SimpleCData):  # type: ignore[type-arg]  # no generic at run time
    _type_ = "l"


class _Function(CFuncPtr):
    """A function of the C library. Plain numbers are passed as `int`, bytes as the address of a text."""

    _flags_ = CDECL | KEEP_ERRNO
    _restype_ = _Int


class _LongFunction(CFuncPtr):
    _flags_ = CDECL | KEEP_ERRNO
    _restype_ = _Long


class _Library:
    """The C library of this process, as the constructor of a function needs it."""

    _handle = dlopen(None, os.RTLD_NOW)  # type: ignore[arg-type]  # None is the process itself


def _function(name: str, kind: type[CFuncPtr] = _Function) -> CFuncPtr:
    return kind((name, _Library))  # type: ignore[arg-type]  # anything with a `_handle` is a library


_unshare, _setns, _mount, _prctl, _capset = map(_function, ("unshare", "setns", "mount", "prctl", "capset"))
_syscall = _function("syscall", _LongFunction)


def unshare(flags: int) -> None:
    _check(_unshare(flags), "unshare")


def setns(descriptor: int, kind: int) -> None:
    _check(_setns(descriptor, kind), "setns")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    result = _mount(_path(source), _path(target), _path(kind), _UnsignedLong(flags), _path(data))
    _check(result, f"mount {target}")


def make_read_only(target: str) -> None:
    """Makes every mount from `target` on read-only, and its programs unable to give rights. Raises OSError
    with ENOSYS before Linux 5.12."""
    # struct mount_attr: flags to set, flags to clear, propagation, user namespace.
    attributes = pack("QQQQ", MS_RDONLY | MS_NOSUID, 0, 0, 0)
    result = _syscall(
        _UnsignedLong(SYS_MOUNT_SETATTR),
        -1,
        _path(target),
        AT_RECURSIVE,
        attributes,
        _UnsignedLong(len(attributes)),
    )
    _check(result, f"mount_setattr {target}")


def system_call(name: str, number: int, *arguments: bytes | int | None) -> int:
    """Returns the result of a system call for which the C library has no function. Raises OSError."""
    words = (_UnsignedLong(item) if isinstance(item, int) else item for item in arguments)
    result: int = _syscall(_UnsignedLong(number), *words)
    if result < 0:
        _check(result, name)
    return result


def forbid_new_privileges() -> None:
    """From now on no program that this process starts gains rights, by the setuid bit or by capabilities of
    its file."""
    _check(_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")


def drop_bounding_set() -> None:
    """Gives up the possibility that a program brings capabilities back. Needs CAP_SETPCAP."""
    for number in range(MAX_CAPABILITIES):
        if _prctl(PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
            continue
        if get_errno() == EINVAL:
            break  # beyond the last one of this kernel
        _check(-1, "prctl(PR_CAPBSET_DROP)")


def drop_capabilities() -> None:
    """Gives up all capabilities, and the possibility that a program brings some back."""
    drop_bounding_set()
    _check(_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "prctl(PR_CAP_AMBIENT)")
    # This process, and then nothing in the permitted, effective and inheritable set.
    header, sets = pack("Ii", CAPABILITY_VERSION, 0), pack("I" * CAPABILITY_SETS, *([0] * CAPABILITY_SETS))
    _check(_capset(header, sets), "capset")


def adopt_orphans() -> None:
    """Makes this process adopt orphaned descendants outside of namespaces of their own: none can escape, and
    `waitpid` reports every end."""
    _check(_prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl(PR_SET_CHILD_SUBREAPER)")


def end_with_parent() -> None:
    """Has the kernel kill this process when the thread that started it ends."""
    _check(_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")


def _path(path: str | None) -> bytes | None:
    return None if path is None else os.fsencode(path)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
