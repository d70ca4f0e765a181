"""Compiles the modules of environments in which runs have started already, one environment at a time, with a
process that has the lowest priority."""

from __future__ import annotations

import logging
import os
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from fcntl import LOCK_EX, LOCK_SH
from pathlib import Path

from trainhub_node.attempts.attempt_list import Key
from trainhub_node.environments import bytecode, interpreter, late_modules
from trainhub_node.environments.late_modules import UncompiledModules
from trainhub_node.settings import NodeSettings
from trainhub_node.supervisor.variables import BASE

log = logging.getLogger(__name__)
# Agents of this machine may share a cache.
LOCK_NAME = ".compiling"
# A process that is killed is started once more: by whom or what is not known.
MAX_TRIES = 2


class ModuleCompiler:
    """Compiles in a thread of its own. What is not done when the agent ends is left to the next one."""

    def __init__(self, settings: NodeSettings) -> None:
        self._settings = settings
        self._submitted: set[Key] = set()
        self._tries: dict[Path, int] = {}
        self._closing = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        # Guards starting a process against `close`.
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(1, "modules")

    def submit(self, key: Key) -> None:
        """To be called when the ranks of an attempt have started. Called from one thread only; repeated calls
        have no effect."""
        if key not in self._submitted:
            self._submitted.add(key)
            self.sweep()

    def sweep(self) -> None:
        """Compiles what is left anywhere, soon."""
        if any(self._markers()):
            with self._lock:
                if not self._closing.is_set():
                    self._threads.submit(self._compile_all)

    def close(self) -> None:
        with self._lock:
            self._closing.set()
            if self._process is not None:
                self._process.kill()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _markers(self) -> Iterator[Path]:
        return self._settings.environments.glob(f"*/{interpreter.UNCOMPILED}")

    def _compile_all(self) -> None:
        try:
            with _locked(f"{self._settings.environments}/{LOCK_NAME}", LOCK_EX) as is_free:
                # The agent that compiles finds everything.
                for marker in sorted(self._markers()) if is_free else ():
                    self._compile_next(marker.parent)
        except OSError:
            log.exception("The folder of environments cannot be used; modules stay uncompiled")

    def _compile_next(self, folder: Path) -> None:
        try:
            self._compile(folder)
        except Exception:
            log.exception("Modules of %s could not be compiled; runs compile these", folder)

    def _compile(self, folder: Path) -> None:
        # Nothing removes the environment meanwhile.
        with _locked(f"{folder}.lock", LOCK_SH) as is_free:
            if not is_free or not interpreter.is_built(str(folder)):
                return
            modules = late_modules.read_marker(str(folder))
            if modules is None or self._closing.is_set():
                return
            code = self._run(modules, folder)
            if self._closing.is_set():
                return
            self._tries[folder] = self._tries.get(folder, 0) + 1
            if code < 0 and self._tries[folder] < MAX_TRIES:
                log.warning("The process that compiles modules of %s was killed; it is tried again", folder)
                return
            if code != 0:
                log.warning("Not all modules of %s could be compiled; runs compile these", folder)
            self._tries.pop(folder, None)
            late_modules.finish_modules(str(folder))

    def _run(self, modules: UncompiledModules, folder: Path) -> int:
        """Returns the exit code, that of a signal below 0."""
        cache = Path(modules.store).parent
        with ExitStack() as stack:
            store = modules.store
            # The node may have removed its packages since; it does not while they are in use.
            if store and not (stack.enter_context(_locked(f"{cache}.lock", LOCK_SH)) and cache.is_dir()):
                store = ""
            command = late_modules.compile_command(bytecode.LATE, modules.python, str(folder), store)
            with self._lock:
                if self._closing.is_set():
                    return 0
                try:
                    self._process = _start(command, modules.account)
                except OSError as error:  # the interpreter is gone
                    log.warning("%s cannot be started: %s", modules.python, error.strerror)
                    return 1
            return self._process.wait()


def _start(command: list[str], account: int | None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        # Nothing else of the agent's environment: it may hold the node's token.
        env={name: os.environ[name] for name in BASE if name in os.environ},
        # The kernel may weigh sessions against each other: this one gets the lowest weight.
        start_new_session=True,
        umask=0o022,
        user=account,
        group=account,
        extra_groups=None if account is None else [],
    )


@contextmanager
def _locked(path: str, mode: int) -> Iterator[bool]:
    """Yields whether the file could be locked at once."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield interpreter.try_lock(file, mode)
    finally:
        os.close(file)
