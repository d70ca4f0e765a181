"""Installs the wheels of a lock with uv. This runs no code of packages, and so it can keep a cache.

With `RUN_AS` an account of its own installs, which never runs anything else: the files of environments are
hard links to those of its cache, and nobody else can write to either. Its folders are then given to root.
Modules are compiled by Python without `site`, which does not execute them, and compiled ones are kept by the
hash of their source. A run waits for none to be compiled: those that are not kept yet are compiled later
(`late_modules`), unless the order is to build the environment."""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import contextmanager

from trainhub_node.environments import bytecode, hub_index, interpreter, late_modules
from trainhub_node.environments.build_process import FULL_DISK, NO_SPACE, BuildProcess
from trainhub_node.environments.builder_account import INSTALLER
from trainhub_node.environments.uv_progress import UvProgress
from trainhub_node.supervisor.gang import Gang, PreparationFailed
from trainhub_node.untrusted import removal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

LOCK, HUB_LOCK = "requirements.lock", "packages.lock"
# The folder of compiled modules in the cache.
COMPILED = "bytecode"
# Bits that no file of an environment has: set user id, set group id, and writable by others.
REFUSED_BITS = stat.S_ISUID | stat.S_ISGID | stat.S_IWGRP | stat.S_IWOTH
MAX_REASON = 600
MISMATCH = "Hash mismatch for"


def can_install(gang: Gang) -> bool:
    """Returns whether this node installs the order's environment with uv: its lock is all that there is, this
    node has uv, and the hub or the operator names where the packages are."""
    spec = gang.order["environment"]
    return bool(
        spec["kind"] == "venv"
        and spec.get("lock")
        and gang.order.get("package_index")
        and gang.terms.get("uv")
    )


def install(gang: Gang, spec: dict[str, Any], python: str, folder: str, *, is_for_runs: bool = True) -> None:
    """Makes the environment in `folder`. If it is for runs, its modules are compiled, or marked to be
    compiled later. Raises PreparationFailed, StopRequested and OSError."""
    account = None if gang.terms["account"] is None else INSTALLER
    scratch = interpreter.sibling(folder, interpreter.SCRATCH)
    for path in (folder, scratch):
        os.mkdir(path, 0o755)
        if account is not None:
            os.chown(path, account, account)
    with _cache(gang, scratch, account) as cache:
        installation = _Installation(gang, folder, scratch, cache, account)
        installation.run(spec, python)
        mode = bytecode.ALL if interpreter.is_build_order(gang) else bytecode.STORED
        is_left = is_for_runs and installation.compile(python, mode)
    _take_over(folder, os.path.realpath(python), later=is_left)
    if is_left:
        store = "" if cache == scratch else f"{cache}/{COMPILED}"
        late_modules.UncompiledModules(python, store, account).write(folder)
    removal.remove_tree(scratch)


def compile_rest(gang: Gang, folder: str) -> None:
    """Compiles what is left to compile of a complete environment, which nothing may remove meanwhile. Raises
    StopRequested and OSError."""
    scratch = interpreter.sibling(folder, interpreter.SCRATCH)
    marker = late_modules.read_marker(folder)
    if marker is None:
        return
    gang.log("Compiling the modules of the environment.")
    process = BuildProcess(gang, folder, scratch, builder=marker.account)
    command = late_modules.compile_command(bytecode.ALL, marker.python, folder, marker.store)
    if process.call(command, {}) == 0:
        late_modules.finish_modules(folder)


class _Installation:
    def __init__(self, gang: Gang, folder: str, scratch: str, cache: str, account: int | None) -> None:
        self._gang = gang
        self._folder = folder
        self._cache = cache
        self._process = BuildProcess(gang, folder, scratch, builder=account)

    def run(self, spec: dict[str, Any], python: str) -> None:
        lock = self._process.write_file(HUB_LOCK, hub_index.without_indexes(spec["lock"]))
        uv = self._gang.terms["uv"]
        venv = [uv, "venv", "--quiet", "--allow-existing", "--python", python, self._folder]
        if self._process.call(venv, self._variables()) != 0:
            raise PreparationFailed(
                "environment",
                f"{python} could not make a virtual environment: {uv_error(self._process.tail())}",
            )
        install = [
            *(uv, "pip", "install", "--no-progress", "--python", f"{self._folder}/bin/python"),
            *("--require-hashes", "--no-deps", "--only-binary", ":all:", "--requirement", lock),
        ]
        needed = {
            line.partition("==")[0] for line in spec["lock"].splitlines() if "==" in line.partition("#")[0]
        }
        code = 1
        for source in hub_index.package_sources(self._gang, self._process.write):
            if source.is_hub:
                hub_index.wait_for_files(self._gang, self._process.write)
            code = self._process.call(install, self._variables() | dict(source.uv), UvProgress(needed))
            if code == 0:
                return
        reason = uv_error(self._process.tail())
        if code < 0:
            reason = (
                f"uv was killed (signal {-code}), as the system does when memory is short; start it again"
            )
        raise PreparationFailed(
            "environment", f"The locked packages of {spec['name']} could not be installed: {reason}"
        )

    def compile(self, python: str, mode: str) -> bool:
        """Compiles its modules, or takes those that are kept compiled. Returns whether some are left."""
        store = f"{self._cache}/{COMPILED}"
        code = self._process.call(late_modules.compile_command(mode, python, self._folder, store), {})
        if code not in (0, bytecode.LEFT):
            self._process.write("Not all modules could be compiled; runs compile these themselves.")
        return code == bytecode.LEFT

    def _variables(self) -> dict[str, str]:
        return {
            "UV_CACHE_DIR": f"{self._cache}/uv",
            "UV_NO_CONFIG": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_LINK_MODE": "hardlink",
            "UV_HTTP_TIMEOUT": "300",
            "NO_COLOR": "1",
        }


@contextmanager
def _cache(gang: Gang, scratch: str, account: int | None) -> Iterator[str]:
    """Yields the folder of the account's cache, which nothing removes meanwhile. Where runs could change it,
    because they have the agent's account without namespaces, it is one of this build only."""
    if account is None and not gang.terms.get("isolation"):
        yield scratch
        return
    packages = gang.terms["packages"]
    os.makedirs(packages, mode=0o711, exist_ok=True)
    os.chmod(packages, 0o711)  # noqa: S103 - the installer passes through
    folder = f"{packages}/{os.geteuid() if account is None else account}"
    lock = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        if not os.path.isdir(folder):
            os.mkdir(folder, 0o700)
            if account is not None:
                os.chown(folder, account, account)
        # The cache of the node removes what was used least recently.
        os.utime(lock)
        yield folder
    finally:
        os.close(lock)


def _take_over(folder: str, python: str, *, later: bool) -> None:
    """Gives the folders to this account, so that not even the installer can add to them, and takes from files
    what none of an environment may have. `later`: those of compiled modules are given to it later."""
    owner, group = os.geteuid(), os.getegid()
    for path, folders, files in os.walk(folder, topdown=False):
        for name in files + folders:
            _check_entry(folder, f"{path}/{name}", python)
        if not (later and path.endswith(f"/{bytecode.FOLDER}")):
            os.chown(path, owner, group)
        os.chmod(path, 0o755)  # noqa: S103 - runs must be able to read it


def _check_entry(folder: str, path: str, python: str) -> None:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        # Only to the interpreter, or inside.
        target = os.path.normpath(f"{os.path.dirname(path)}/{os.readlink(path)}")
        is_interpreter = os.path.realpath(path) == python
        if not is_interpreter and not target.startswith(f"{folder}/"):
            os.unlink(path)
    elif stat.S_ISREG(status.st_mode) and status.st_mode & REFUSED_BITS:
        os.chmod(path, stat.S_IMODE(status.st_mode) & ~REFUSED_BITS)


def uv_error(lines: list[str]) -> str:
    """Returns the last error in uv's output, as one sentence without a full stop."""
    start = next(
        (number for number in reversed(range(len(lines))) if lines[number].startswith(("error:", "× "))), None
    )
    if start is None:
        return lines[-1] if lines else "it wrote no message"
    parts = [line.lstrip("×│├╰─▶ ").removeprefix("error: ").removeprefix("cause: ") for line in lines[start:]]
    text = " ".join(parts)
    if MISMATCH in text:
        package = text.partition(MISMATCH)[2].partition("`")[2].partition("`")[0]
        return (
            f"the file of {package} on the index is not the one that was locked: its hash differs. Make a "
            "new version of the environment if the file was replaced on purpose"
        )
    if NO_SPACE in text:
        return f"{FULL_DISK} ({parts[0]})"
    return ": ".join(parts).rstrip(".")[:MAX_REASON]
