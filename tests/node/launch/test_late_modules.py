"""Modules that are compiled while runs use their environment already."""

from __future__ import annotations

import fcntl
import marshal
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.node.builders import settings
from tests.node.hub import FakeHub
from tests.node.launch.test_build_orders import build_order
from tests.node.launch.test_hub_index import (
    TICKET,
    OrderIndex,
    index,
    locked,
    no_settings,
    open_folder,
    ordered,
)
from tests.node.processes import wait_pid
from tests.node.test_run_as import nobody_account
from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_node import proc
from trainhub_node.agent import Agent
from trainhub_node.environments import builder_account, bytecode, interpreter
from trainhub_node.environments.late_modules import UncompiledModules
from trainhub_node.launch.module_compiler import LOCK_NAME, ModuleCompiler
from trainhub_node.settings import NodeSettings

__all__ = ["index", "no_settings", "open_folder"]
MODULES = ("first", "second")
HEADER_BYTES = 16
# Beside much other work the lowest priority gets little, even to die.
PATIENCE_S = 180


class Environment:
    """An environment whose modules are not compiled, as an installation leaves it. `is_endless`: compiling
    the second one waits for `unblock`."""

    def __init__(self, node: NodeSettings, *, is_endless: bool = False) -> None:
        self.folder = node.environments / ("a" * 20)
        self.store = node.packages / str(os.geteuid()) / "bytecode"
        self.site = self.folder / "lib/python3/site-packages/big"
        for path in (self.site, self.folder / "bin", self.store):
            path.mkdir(parents=True)
        (self.folder / "bin/python").symlink_to(sys.executable)
        for name in MODULES:
            (self.site / f"{name}.py").write_text(f"NAME = {name!r}\n")
        if is_endless:
            (self.site / "second.py").unlink()
            os.mkfifo(self.site / "second.py")
        (self.site / "no_module.py").write_text("def {{ template }}")
        UncompiledModules(sys.executable, str(self.store), None).write(str(self.folder))
        (self.folder / interpreter.MARKER).touch()

    def unblock(self) -> None:
        (self.site / "second.py").unlink()
        (self.site / "second.py").write_text("NAME = 'second'\n")

    @property
    def compiled(self) -> list[Path]:
        return sorted(self.site.glob("__pycache__/*"))

    @property
    def is_left(self) -> bool:
        return interpreter.is_uncompiled(str(self.folder))

    def processes(self) -> list[int]:
        """The processes that compile, the first one first."""
        # Numbers of processes begin anew when they are used up, so the lowest may be that of a later one.
        listed = sorted(proc.list_processes(), key=lambda one: (one.parent != os.getpid(), one.pid))
        return [one.pid for one in listed if str(self.folder).encode() in command_line(one.pid)]

    def check_modules(self) -> None:
        """Each file of a compiled module is a whole one."""
        for path in [*self.compiled, *self.store.rglob("*.pyc")]:
            assert path.suffix == ".pyc", path
            marshal.loads(path.read_bytes()[HEADER_BYTES:])  # noqa: S302 - of modules of this test


@pytest.fixture
def node(hub: FakeHub, tmp_path: Path) -> NodeSettings:
    return settings(hub, tmp_path / "node")


@pytest.fixture
def start_compiler(node: NodeSettings) -> Iterator[Callable[[], ModuleCompiler]]:
    started = []

    def start() -> ModuleCompiler:
        compiler = ModuleCompiler(node)
        started.append(compiler)
        compiler.sweep()
        return compiler

    yield start
    for compiler in started:
        compiler.close()


def wait_until(met: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def swept(compiler: ModuleCompiler) -> bool:
    compiler.sweep()
    return True


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""  # it has ended


@pytest.mark.slow
class TestCompiler:
    def test_yields_to_runs_and_leaves_whole_modules_when_it_is_killed_and_when_the_agent_ends(
        self, node: NodeSettings, start_compiler: Callable[[], ModuleCompiler]
    ) -> None:
        made = Environment(node, is_endless=True)
        first = start_compiler()
        wait_until(lambda: made.compiled)
        process, *workers = made.processes()
        assert os.getpriority(os.PRIO_PROCESS, process) == os.getpriority(os.PRIO_PROCESS, workers[0]) == 19
        os.kill(process, signal.SIGKILL)
        for pid in (process, *workers):
            wait_pid(pid, PATIENCE_S)
        assert (made.is_left, len(made.compiled)) == (True, 1)
        made.check_modules()

        wait_until(lambda: swept(first) and made.processes())
        process, *workers = made.processes()
        first.close()
        for pid in (process, *workers):
            wait_pid(pid, PATIENCE_S)
        assert made.is_left
        made.check_modules()

        made.unblock()
        second = start_compiler()
        # The first may still hold the lock.
        wait_until(lambda: swept(second) and not made.is_left)
        made.check_modules()
        assert len(made.compiled) == len(MODULES)
        assert not made.processes()

    def test_forgets_an_environment_whose_process_is_killed_again(
        self, node: NodeSettings, start_compiler: Callable[[], ModuleCompiler]
    ) -> None:
        made = Environment(node, is_endless=True)
        compiler = start_compiler()
        for number in range(2):
            # Once each: what is asked for twice starts the next process before this one is seen to be gone.
            if number > 0:
                compiler.sweep()
            wait_until(made.processes)
            os.kill(made.processes()[0], signal.SIGKILL)
            wait_until(lambda: not made.processes())
        wait_until(lambda: not made.is_left)
        made.check_modules()

    def test_forgets_an_environment_whose_interpreter_is_gone(
        self, node: NodeSettings, start_compiler: Callable[[], ModuleCompiler]
    ) -> None:
        made = Environment(node)
        UncompiledModules(str(made.folder / "gone"), str(made.store), None).write(str(made.folder))
        start_compiler()
        wait_until(lambda: not made.is_left)
        assert not made.compiled

    def test_compiles_without_the_folder_of_packages_which_was_removed(
        self, node: NodeSettings, start_compiler: Callable[[], ModuleCompiler]
    ) -> None:
        made = Environment(node)
        for path in (made.store, made.store.parent):
            path.rmdir()
        start_compiler()
        wait_until(lambda: not made.is_left)
        made.check_modules()
        assert len(made.compiled) == len(MODULES)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has an account that installs")
class TestOrders:
    def test_a_run_waits_for_no_module_and_build_now_does(
        self, hub: FakeHub, start_agent: Callable[..., Agent], index: OrderIndex, open_folder: Path
    ) -> None:
        node = settings(hub, open_folder, run_as=nobody_account(), python="/usr/bin/python3")
        node.environments.mkdir(parents=True)
        lock = os.open(node.environments / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)  # as if another agent compiled
        start_agent(node)
        index.add("tinylib")
        spec = locked(index, "tinylib")
        folder = node.environments / spec.digest

        key = hub.give(ordered(hub, index, spec))
        fact = hub.wait_done(key, 60)
        assert hub.log(key).startswith(b"1.0 "), (fact, hub.log(key, ENVIRONMENT_LOG))
        compiled = [path for path in folder.rglob(bytecode.FOLDER) if path.is_dir()]
        assert {path.stat().st_uid for path in compiled} == {builder_account.INSTALLER}
        assert not list(folder.rglob("*.pyc"))

        order = replace(build_order(spec), package_index=index.order_url, package_ticket=TICKET)
        build = hub.wait_done(hub.give(order), 60)
        os.close(lock)
        assert (build.error, interpreter.is_uncompiled(str(folder))) == ("", False)
        assert [path.parent for path in folder.rglob("tinylib.*.pyc")] == compiled
        assert {path.stat().st_uid for path in compiled} == {0}
