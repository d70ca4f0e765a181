"""Takes rights from the process that reads event files, which come from anybody who may submit a run.

With Landlock (Linux 5.13 and newer) it reads only the folder of its event files and Python itself, writes
nothing, opens no TCP connection and signals no other process. If it was started by root, it becomes the
account `nobody` as well. A process keeps these limits until it ends."""

from __future__ import annotations

import ctypes
import os
import pwd
import resource
import struct
import sys
from pathlib import Path

ACCOUNT = "nobody"
MAX_MEMORY_BYTES = 4 * 2**30
# It can write only into its log, which the hub has opened for it.
MAX_LOG_BYTES = 2**20
_PR_SET_NO_NEW_PRIVS = 38
# The numbers of these system calls are the same on all architectures.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
# How many kinds of access to files each version of Landlock knows; later versions know as many as the last.
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_TCP_BIND_AND_CONNECT, _TCP_VERSION = 0b11, 4
_ABSTRACT_SOCKETS_AND_SIGNALS, _SCOPE_VERSION = 0b11, 6
# What Python and its libraries read besides their own folders.
_SYSTEM_FOLDERS = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/zoneinfo", "/dev/null")
# Of /etc no more than this: operators keep settings with passwords there.
_SYSTEM_FILES = tuple(
    f"/etc/{name}" for name in ("group", "ld.so.cache", "localtime", "mime.types", "nsswitch.conf", "passwd")
)


def restrict_files(folder: Path) -> bool:
    """Restricts this thread and those that it will start, as the module's text says. Returns False where the
    kernel has no Landlock."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    if version < 1:
        return False
    ruleset = _create_ruleset(libc, version)
    python = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    for path in (folder, *map(Path, (*python, *_SYSTEM_FOLDERS, *_SYSTEM_FILES))):
        if path.exists():
            _allow_reading(libc, ruleset, path)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs was refused")
    _call(libc, _RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)
    return True


def limit_resources() -> None:
    """Limits memory and the size of the log, and forbids core dumps."""
    for kind, amount in (
        (resource.RLIMIT_AS, MAX_MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, MAX_LOG_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (amount, amount))


def drop_root() -> None:
    """Makes a process of root one of ACCOUNT for good."""
    if os.geteuid():
        return
    account = pwd.getpwnam(ACCOUNT)
    os.setgroups([])
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)


def _create_ruleset(libc: ctypes.CDLL, version: int) -> int:
    """Returns the descriptor of a set of rules that forbids all that this version can forbid."""
    files = (1 << _FILE_RIGHTS.get(version, max(_FILE_RIGHTS.values()))) - 1
    network = _TCP_BIND_AND_CONNECT if version >= _TCP_VERSION else 0
    scopes = _ABSTRACT_SOCKETS_AND_SIGNALS if version >= _SCOPE_VERSION else 0
    # Older versions accept the longer structure as long as what they do not know is zero.
    attributes = struct.pack("=QQQ", files, network, scopes)
    return _call(libc, _CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))


def _allow_reading(libc: ctypes.CDLL, ruleset: int, path: Path) -> None:
    rights = _READ_FILE | _READ_DIR if path.is_dir() else _READ_FILE
    opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, opened)
        _call(libc, _ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(opened)


def _call(libc: ctypes.CDLL, number: int, *arguments: object) -> int:
    answer = int(libc.syscall(number, *arguments))
    if answer < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"Landlock: {os.strerror(error)}")
    return answer
