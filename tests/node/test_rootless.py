"""An agent that is not root gives each attempt namespaces in a user namespace of its own account."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.attacks.server.separated import needs_root, passable_python, uid_of
from tests.node.accounts import as_account
from tests.node.builders import environ, order, process, script
from tests.node.conftest import end_children
from tests.node.containers import place
from tests.node.data.processes import bucket
from tests.node.hub import FakeHub
from tests.node.processes import child_pid, remaining_processes
from tests.node.supervisor.test_downloads import CHANGE, CHANGED, downloading
from tests.node.supervisor.test_namespaces import HIDDEN_DAEMON, in_namespaces_of
from tests.node.supervisor.test_references import EXPECTED, FILES, reading
from tests.node.supervisor.test_termination import FOREVER, STUBBORN, stop
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import SECRET
from trainhub_launch.order import EnvironmentSpec
from trainhub_launch.plan import RANK_WRAPPER
from trainhub_node import proc

pytestmark = needs_root
PROJECT = Path(__file__).resolve().parents[2]
ACCOUNT = "daemon"
WHO = """
import os, pathlib
print(os.getuid(), pathlib.Path.home(), sorted(os.listdir('/tmp')))
status = dict(line.split(':', 1) for line in open('/proc/self/status'))
names = ('CapPrm', 'CapEff', 'CapBnd', 'CapAmb')
print({name: int(status[name], 16) for name in names}, status['NoNewPrivs'].strip())
print(sorted(os.listdir('..')), os.access('/etc', os.W_OK), os.access(os.path.expanduser('~'), os.W_OK))
open('outputs/x', 'w').write('y')
"""
# A rank that the signal does not end.
POLLS = """
import os, pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
notice = pathlib.Path(os.environ['TRAINHUB_PREEMPTION_FILE'])
print('present' if notice.exists() else 'absent', flush=True)
while not notice.exists():
    time.sleep(0.01)
print(notice.read_text(), flush=True)
"""

# Pip executes this to build the package. It becomes a module that says what it could do.
BACKEND = """
import os, zipfile

def tried(action):
    try:
        return bool(action())
    except OSError:
        return False

def build_wheel(folder, config_settings=None, metadata_directory=None):
    node, home = os.environ['PROBED_NODE'], os.path.expanduser('~')
    could = {
        'read the folder of the agent': tried(lambda: os.listdir(node + '/attempts')),
        'write into the home': tried(lambda: open(home + '/written', 'w')),
        'see the agent': tried(lambda: [
            one for one in os.listdir('/proc') if one.isdecimal()
            and b'trainhub_node\\0run' in open(f'/proc/{one}/cmdline', 'rb').read()
        ]),
    }
    name = 'probe-1.0-py3-none-any.whl'
    head = 'Metadata-Version: 2.1\\nName: probe\\nVersion: 1.0\\n'
    kind = 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'
    with zipfile.ZipFile(os.path.join(folder, name), 'w') as wheel:
        wheel.writestr('probe.py', f'COULD = {[what for what, can in could.items() if can]}')
        wheel.writestr('probe-1.0.dist-info/METADATA', head)
        wheel.writestr('probe-1.0.dist-info/WHEEL', kind)
        wheel.writestr('probe-1.0.dist-info/RECORD', '')
    return name
"""
PROJECT_FILE = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


class Node:
    """The folder of an agent, and how to run it under an account without rights."""

    def __init__(self, folder: Path, hub: FakeHub) -> None:
        self.folder, self.home = folder / "node", folder / "home"
        self.attempts = self.folder / "attempts"
        for path in (self.folder, self.home):
            path.mkdir(mode=0o755)
            os.chown(path, uid_of(ACCOUNT), -1)
        self._python = passable_python(folder)
        self._environment = environ(hub, self.folder) | {
            "HOME": str(self.home),
            **place.current.variables,
            "TRAINHUB_NODE_PYTHON": "/usr/bin/python3",
            "LD_LIBRARY_PATH": str(Path(self._python).parent.parent / "lib"),
        }

    def command(self, *arguments: str, before: Sequence[str] = ()) -> subprocess.Popen[str]:
        """The agent's Python, under its account. `before`: the beginning of a command that arranges the
        machine."""
        return subprocess.Popen(
            [*before, *(place.current.before or as_account(ACCOUNT)), self._python, *arguments],
            env=self._environment,
            cwd=PROJECT,
            text=True,
            start_new_session=True,
            stdout=subprocess.PIPE if before else None,
        )

    @contextmanager
    def agent(self) -> Iterator[subprocess.Popen[str]]:
        running = self.command("-m", "trainhub_node", "run")
        try:
            yield running
        finally:
            running.kill()
            running.wait(10)


@pytest.fixture
def node(hub: FakeHub) -> Iterator[Node]:
    folder = Path(tempfile.mkdtemp(prefix="trainhub-rootless-", dir="/var/lib"))
    folder.chmod(0o711)
    try:
        made = Node(folder, hub)
        yield made
        end_children(made.folder)
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def agent(node: Node) -> Iterator[None]:
    with node.agent():
        yield


@pytest.mark.slow
def test_code_that_builds_an_environment_reaches_no_more_than_a_run(hub: FakeHub, node: Node) -> None:
    source = node.folder.parent / "probe"
    source.mkdir(mode=0o755)
    # The build gets no variable of ours, so the path stands in the code.
    (source / "backend.py").write_text(BACKEND.replace("os.environ['PROBED_NODE']", repr(str(node.folder))))
    (source / "pyproject.toml").write_text(PROJECT_FILE)
    spec = EnvironmentSpec("probe", "1", "venv", requirements=(f"probe @ {source.as_uri()}",))
    with node.agent():
        key = hub.give(script(hub, "import probe\nprint(probe.COULD)\n", environment=spec))
        fact = hub.wait_done(key, 240)
    assert hub.log(key) == b"[]\n", (fact, hub.logs)
    assert list(node.home.iterdir()) == []


@pytest.mark.usefixtures("agent")
class TestRanks:
    def test_have_no_rights_a_home_and_see_of_their_attempt_what_is_theirs(
        self, hub: FakeHub, node: Node
    ) -> None:
        key = hub.give(script(hub, WHO))
        fact = hub.wait_done(key, 60)
        assert fact.members[0].exit_code == 0, hub.log(key)
        home = node.attempts / f"{key[0]}-1" / "home"
        assert hub.log(key).decode().splitlines() == [
            # Of /tmp a run sees only where the agent itself is installed, if it is there.
            f"{uid_of(ACCOUNT)} {home} {[PROJECT.parts[2]] if PROJECT.parts[1] == 'tmp' else []}",
            "{'CapPrm': 0, 'CapEff': 0, 'CapBnd': 0, 'CapAmb': 0} 1",
            "['home', 'notices', 'work'] False True",
        ]
        assert hub.output(key, "x") == b"y"

    @pytest.mark.in_containers("rootless_podman")
    def test_exit_codes_are_theirs(self, hub: FakeHub) -> None:
        key = hub.give(script(hub, "import os\nif os.environ['RANK'] == '1': raise SystemExit(7)\n", ranks=2))
        assert sorted(member.exit_code or 0 for member in hub.wait_done(key, 60).members) == [0, 7]

    @pytest.mark.mpi
    def test_under_mpirun_too(self, hub: FakeHub) -> None:
        launcher = ("mpirun", "--host", "127.0.0.1:2", "-np", "2", "--bind-to", "none", RANK_WRAPPER)
        ranks = [process(rank, ("python", "train.py"), of=2) for rank in range(2)]
        key = hub.give(order(hub, {"train.py": WHO}, *ranks, launcher=launcher))
        fact = hub.wait_done(key, 60)
        assert [member.exit_code for member in fact.members] == [0, 0], (fact, hub.logs)
        for rank in range(2):
            assert hub.log(key, f"70_driver_log_{rank}.txt").split()[0] == str(uid_of(ACCOUNT)).encode()


class TestEnds:
    def test_ranks_read_the_file_that_announces_a_preemption(self, hub: FakeHub, agent: None) -> None:
        key = hub.give(script(hub, POLLS))
        hub.wait_log(key, b"absent", timeout_s=60)
        stop(hub, key, "preempted", grace_s=15)
        assert hub.wait_done(key, 60).stopping == "preempted"
        assert b'"reason": "preempted"' in hub.log(key).replace(b'":"', b'": "')

    @pytest.mark.in_containers("rootless_podman")
    def test_cancel_ends_ranks_by_sigterm_and_hidden_orphans_with_them(
        self, hub: FakeHub, node: Node, agent: None
    ) -> None:
        key = hub.give(script(hub, HIDDEN_DAEMON + FOREVER))
        hub.wait_log(key, b"up", timeout_s=60)
        hidden = in_namespaces_of(key, node.attempts)
        assert len(hidden) == 2
        stop(hub, key)
        member = hub.wait_done(key).members[0]
        assert (member.signal, member.ended_by_us) == (signal.SIGTERM, True)
        assert not [pid for pid in hidden if proc.identity(pid)]
        assert remaining_processes(key) == set()

    def test_whoever_ignores_sigterm_is_killed_after_the_grace(self, hub: FakeHub, agent: None) -> None:
        key = hub.give(script(hub, STUBBORN))
        hub.wait_log(key, b"up", timeout_s=60)
        stop(hub, key, grace_s=1)
        member = hub.wait_done(key).members[0]
        assert (member.signal, member.ended_by_us) == (signal.SIGKILL, True)

    @pytest.mark.mpi
    def test_ranks_of_mpirun_are_known_by_their_outer_numbers_and_are_cancelled(
        self, hub: FakeHub, agent: None
    ) -> None:
        launcher = ("mpirun", "--host", "127.0.0.1:2", "-np", "2", "--bind-to", "none", RANK_WRAPPER)
        ranks = [process(rank, ("python", "train.py"), of=2) for rank in range(2)]
        code = "import os\nprint(os.getpid(), flush=True)\n" + FOREVER
        key = hub.give(order(hub, {"train.py": code}, *ranks, launcher=launcher))
        for rank in range(2):
            hub.wait_log(key, b"up", f"70_driver_log_{rank}.txt", timeout_s=60)
        hub.wait(lambda: all(proc.inner_pid(m.pid or 0) > 1 for m in hub.facts[key].members))
        for member in hub.facts[key].members:
            inner = hub.log(key, f"70_driver_log_{member.rank}.txt").split()[0]
            assert proc.inner_pid(member.pid or 0) == int(inner)
        stop(hub, key)
        fact = hub.wait_done(key)
        assert all(member.ended_by_us and member.signal for member in fact.members), fact
        assert remaining_processes(key) == set()

    def test_a_run_survives_its_agent_and_the_next_one_cancels_it(self, hub: FakeHub, node: Node) -> None:
        key = hub.give(script(hub, FOREVER))
        with node.agent():
            hub.wait_log(key, b"up", timeout_s=60)
        before = child_pid(node.attempts, key)
        with node.agent():
            stop(hub, key)
            fact = hub.wait_done(key, 60)
        assert child_pid(node.attempts, key) == before
        assert fact.members[0].signal == signal.SIGTERM

    def test_a_killed_child_takes_its_run_along(self, hub: FakeHub, node: Node, agent: None) -> None:
        key = hub.give(script(hub, HIDDEN_DAEMON + FOREVER))
        hub.wait_log(key, b"up", timeout_s=60)
        inside = in_namespaces_of(key, node.attempts)
        os.kill(child_pid(node.attempts, key), signal.SIGKILL)
        assert "was killed" in hub.wait_done(key).error
        assert not [pid for pid in inside if proc.identity(pid)]


def test_what_ranks_write_beside_their_data_is_their_own(hub: FakeHub, node: Node, agent: None) -> None:
    server = S3Server()
    try:
        server.objects[BUCKET] = {"2024/labels.txt": b"sparrow", "2024/deep/er/other.txt": b"finch"}
        hub.secrets = {"datastore:s3-key": SECRET}
        for _ in range(2):
            key = hub.give(downloading(hub, server, CHANGE))
            fact = hub.wait_done(key)
            assert not fact.error
            assert hub.log(key).decode().splitlines() == CHANGED
    finally:
        server.close()
    contents = [path.read_bytes() for path in (node.folder / "cache" / "data" / "objects").rglob("*/*")]
    assert sorted(contents) == [b"finch", b"sparrow"]


@pytest.mark.in_containers("rootless_podman")
def test_ranks_read_what_is_named_by_reference(hub: FakeHub, node: Node, agent: None) -> None:
    """With the agent's account they see the addresses, and cannot change them."""
    server = S3Server(objects=dict(FILES))
    try:
        hub.secrets = {"datastore:key": SECRET}
        key = hub.give(reading(hub, bucket(server)))
        assert not hub.wait_done(key, 60).error
    finally:
        server.close()
    assert hub.log(key).decode().splitlines() == [f"s3://{BUCKET}/2024", *EXPECTED]
