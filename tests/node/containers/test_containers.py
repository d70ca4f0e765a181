"""Runs in images: what differs from runs on the node itself. What does not differ is tried by the tests with
the mark `in_containers`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from tests.node.builders import environ, order, process, script, settings
from tests.node.containers import images
from tests.node.hub import FakeHub
from tests.node.processes import agent_process, child_pid, remaining_processes
from tests.node.test_range import range_settings
from trainhub_launch.order import EnvironmentSpec
from trainhub_launch.plan import RANK_WRAPPER, Reference
from trainhub_launch.report import StopOrder
from trainhub_node.agent import Agent
from trainhub_node.containers import discovery
from trainhub_node.containers.engine import DOCKER
from trainhub_node.containers.engine import NAMES as ENGINES
from trainhub_node.settings import NodeSettings

DUMP = (
    "import json, os, sys\n"
    "print(json.dumps([dict(os.environ), os.getcwd(), sys.executable, os.listdir('/')]))\n"
)
# A grandchild in a session of its own, orphaned by its parent's death.
ESCAPE = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
print('escaped', flush=True)
time.sleep(600)
"""
LIMITS = """
import os, sys
def can(action):
    try:
        action()
    except (OSError, PermissionError):
        return False
    return True
status = dict(line.split(':\\t') for line in open('/proc/self/status') if ':\\t' in line)
print({
    'capabilities': [name for name in ('CapEff', 'CapPrm', 'CapBnd') if int(status[name], 16)],
    'write': [path for path in ('/etc/x', '/opt/x', '/x', '/root/x') if can(lambda: open(path, 'w'))],
    'own': [path for path in ('x', '/tmp/x', '/var/tmp/x', '/dev/shm/x', os.path.expanduser('~/x'))
            if not can(lambda: open(path, 'w'))],
    'settings': can(lambda: open('/proc/sys/kernel/core_pattern', 'r+')),
    'remount': os.system('mount -o remount,rw / 2>/dev/null') == 0,
    'sockets': [path for path in ('/run/podman', '/run/docker.sock') if os.path.exists(path)],
    'processes': sorted(int(name) for name in os.listdir('/proc') if name.isdecimal()),
    'groups': os.listdir('/sys/fs/cgroup'),
    'account': (os.getuid(), os.getgroups()),
})
"""


def wait_removed(engine: images.PrivateEngine, key: tuple[str, int]) -> None:
    deadline = time.monotonic() + 20
    while any(key[0] in name for name in engine.containers()):
        assert time.monotonic() < deadline, engine.containers()
        time.sleep(0.1)


@pytest.fixture(scope="session")
def bare(podman: images.Podman, tmp_path_factory: pytest.TempPathFactory) -> EnvironmentSpec:
    """An image without Python."""
    name = "localhost/trainhub-bare:1"
    root = images.make_root(tmp_path_factory.mktemp("bare") / "root", python="")
    podman.make_image(root, name)
    return podman.environment(name)


@pytest.fixture
def node(hub: FakeHub, in_container: images.PrivateEngine) -> Iterator[NodeSettings]:
    """A node that gives each run an account of its own."""
    folder = Path(tempfile.mkdtemp(prefix="trainhub-node-", dir="/var/lib"))
    folder.chmod(0o711)
    yield replace(range_settings(hub, folder), engine="podman")
    shutil.rmtree(folder)


class TestEnvironment:
    @pytest.mark.parametrize("in_container", ENGINES, indirect=True)
    def test_is_that_of_the_image_and_the_plan_and_the_container_shows_no_secret(
        self, hub: FakeHub, in_container: images.PrivateEngine, agent: Agent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AGENT_SECRET", "must not reach training")
        code = f"{DUMP}import time\nwhile not os.path.exists('go'): time.sleep(0.01)\n"
        planned = process(0, ("python", "train.py"), KEY=Reference("secret", "api"), MASTER_PORT="6105")
        value = order(hub, {"train.py": code}, planned, values={"secret:api": "s3cret"})
        key = hub.give(value)
        hub.wait_log(key, b"\n")
        folder = f"{agent.settings.attempts}/{value.run}-1"

        shown = in_container("inspect", *in_container.containers())

        Path(folder, "work", "go").touch()
        assert hub.wait_done(key).members[0].exit_code == 0
        env, cwd, python, root = json.loads(hub.log(key))
        assert (env["PATH"], env["GREETING"]) == (images.VARIABLES["PATH"], images.VARIABLES["GREETING"])
        assert (env["KEY"], env["MASTER_PORT"]) == ("s3cret", "6105")
        assert (env["HOME"], cwd, python) == (f"{folder}/home", f"{folder}/work", "/usr/bin/python3")
        assert "AGENT_SECRET" not in env
        assert "home" not in root
        assert value.run in shown
        assert "s3cret" not in shown
        wait_removed(in_container, key)

    def test_without_python_a_script_is_refused_and_a_command_runs(
        self, hub: FakeHub, in_container: images.PrivateEngine, agent: Agent, bare: EnvironmentSpec
    ) -> None:
        scripted = hub.give(script(hub, "print(1)", environment=bare))
        command = hub.give(
            order(hub, {}, process(0, ("sh", "-c", "echo $GREETING; exit 9")), environment=bare)
        )
        missing = hub.give(order(hub, {}, process(0, ("no-such",)), environment=bare))

        refused, ended, absent = (hub.wait_done(key) for key in (scripted, command, missing))

        assert refused.error_kind == "environment"
        assert refused.error.startswith("The image localhost/trainhub-bare:1 has no Python: ")
        assert (ended.members[0].exit_code, hub.log(command)) == (9, b"from the image\n")
        assert absent.members[0].exit_code == 127
        assert hub.log(missing).startswith(
            b"trainhub: no-such: no such program in the image localhost/trainhub-bare:1 (looked in /opt/bin:"
        )


@pytest.mark.slow
@pytest.mark.mpi
def test_mpirun_of_the_image_starts_the_ranks(
    hub: FakeHub, start_agent: Callable[..., Agent], node: NodeSettings, podman: images.Podman, tmp_path: Path
) -> None:
    root = images.make_root(tmp_path / "root")
    images.add_open_mpi(root)
    podman.make_image(root, "localhost/trainhub-mpi:1")
    start_agent(node)
    code = (
        "import os\n"
        "print(os.getuid(), os.environ['OMPI_COMM_WORLD_RANK'], os.environ['GREETING'], flush=True)\n"
        "raise SystemExit(int(os.environ['CODE']))\n"
    )
    launcher = ("mpirun", "--host", "127.0.0.1:2", "-np", "2", "--bind-to", "none", RANK_WRAPPER)
    environment = podman.environment("localhost/trainhub-mpi:1")
    keys = []
    for code_of_the_second in ("0", "7"):
        argv = ("python", "train.py")
        ranks = (process(0, argv, of=2, CODE="0"), process(1, argv, of=2, CODE=code_of_the_second))
        value = order(hub, {"train.py": code}, *ranks, launcher=launcher, environment=environment)
        keys.append(hub.give(value))

    well, badly = (hub.wait_done(key) for key in keys)

    assert [member.exit_code for member in well.members] == [0, 0], (well, hub.logs)
    assert [hub.log(keys[0], f"70_driver_log_{rank}.txt").split()[1:] for rank in range(2)] == [
        [b"0", b"from", b"the", b"image"],
        [b"1", b"from", b"the", b"image"],
    ]
    assert badly.members[1].exit_code == 7
    assert not badly.members[1].ended_by_us


class TestGpus:
    UUID = "GPU-of-the-tests"
    SPECIFICATION: ClassVar = {
        "cdiVersion": "0.3.0",
        "kind": "nvidia.com/gpu",
        "devices": [
            {
                "name": UUID,
                "containerEdits": {
                    "deviceNodes": [{"path": "/dev/gpu-of-tests", "type": "c", "major": 1, "minor": 3}]
                },
            }
        ],
    }

    def test_are_those_of_the_run_by_the_specification_of_the_machine(
        self, hub: FakeHub, in_container: images.PrivateEngine, agent: Agent
    ) -> None:
        code = "import os\nprint(os.path.exists('/dev/gpu-of-tests'))\n"
        folder = Path("/var/run/cdi")
        folder.mkdir(exist_ok=True)
        file = folder / f"trainhub-tests-{os.getpid()}.json"
        file.write_text(json.dumps(self.SPECIFICATION))
        try:
            keys = []
            for gpus in ((self.UUID,), (), ("GPU-unknown",)):
                planned = replace(process(0, ("python", "train.py")), gpus=gpus)
                keys.append(hub.give(order(hub, {"train.py": code}, planned)))
            with_gpu, without, unknown = (hub.wait_done(key) for key in keys)
        finally:
            file.unlink()

        assert (with_gpu.error, hub.log(keys[0])) == ("", b"True\n")
        assert (without.error, hub.log(keys[1])) == ("", b"False\n")
        assert "nvidia-ctk cdi generate --device-name-strategy=uuid" in unknown.error

    @pytest.mark.parametrize("in_container", [DOCKER], indirect=True)
    def test_without_the_toolkit_of_nvidia_docker_says_what_to_install(
        self, hub: FakeHub, in_container: images.PrivateEngine, agent: Agent
    ) -> None:
        planned = replace(process(0, ("python", "train.py")), gpus=(self.UUID,))
        fact = hub.wait_done(hub.give(order(hub, {"train.py": "print(1)"}, planned)))
        assert "could not select device driver" in fact.error
        assert "install the NVIDIA Container Toolkit there" in fact.error


class TestLimits:
    def test_a_run_with_an_account_of_its_own_has_its_folders_and_no_rights(
        self, hub: FakeHub, start_agent: Callable[..., Agent], node: NodeSettings
    ) -> None:
        start_agent(node)
        key = hub.give(replace(script(hub, LIMITS), memory_bytes=2**28))
        assert hub.wait_done(key).members[0].exit_code == 0, hub.log(key)
        seen = eval(hub.log(key))  # noqa: S307 - what this test printed
        uid, groups = seen.pop("account")
        assert uid > 1900000000
        assert groups == []
        assert len(seen.pop("processes")) <= 4
        assert {name: value for name, value in seen.items() if value} == {}

    def test_memory_is_limited_as_without_a_container(
        self, hub: FakeHub, start_agent: Callable[..., Agent], node: NodeSettings
    ) -> None:
        agent = start_agent(node)
        if agent.settings.cgroup is None or not agent.settings.cgroup.is_complete:
            pytest.skip("this machine gives no control groups")
        code = "held = [bytearray(10 * 2**20) for _ in range(30)]\nprint('reached')"
        key = hub.give(replace(script(hub, code), memory_bytes=2**27))
        member = hub.wait_done(key).members[0]
        assert (member.signal, member.out_of_memory, hub.log(key)) == (signal.SIGKILL, True, b"")


class TestEnd:
    @pytest.mark.parametrize("in_container", ENGINES, indirect=True)
    def test_whatever_escapes_is_ended_with_the_run(
        self, hub: FakeHub, in_container: images.PrivateEngine, agent: Agent
    ) -> None:
        key = hub.give(script(hub, ESCAPE))
        hub.wait_log(key, b"escaped")

        hub.stops[key] = StopOrder(*key, grace_s=2, why="canceled")

        assert hub.wait_done(key).members[0].signal == signal.SIGTERM
        assert remaining_processes(key) == set()
        wait_removed(in_container, key)

    @pytest.mark.parametrize("in_container", ENGINES, indirect=True)
    def test_after_a_kill_of_agent_and_child_the_next_agent_leaves_nothing(
        self, hub: FakeHub, in_container: images.PrivateEngine, tmp_path: Path
    ) -> None:
        env = environ(hub, tmp_path)
        key = hub.give(script(hub, ESCAPE))
        with agent_process(env) as agent:
            hub.wait_log(key, b"escaped")
            agent.kill()
            agent.wait(10)
            os.kill(child_pid(tmp_path / "attempts", key), signal.SIGKILL)
        # And a container of an attempt that this node does not know any more.
        mark = discovery.agent_mark(settings(hub, tmp_path))
        names = f"--name=trainhub-{'f' * 32}-1-{mark}", f"--label=trainhub.agent={mark}"
        in_container("run", "-d", "--network=host", *names, images.NAME, "sleep", "600")

        with agent_process(env):
            fact = hub.wait_done(key)
            wait_removed(in_container, key)
            wait_removed(in_container, ("f" * 32, 1))

        assert fact.error_kind == "internal"
        assert remaining_processes(key) == set()
        mounts = Path("/proc/self/mountinfo").read_text()
        assert str(tmp_path) not in mounts
