"""S4: an environment that many runs share, changed by one run, by the packages that it was built from, or
before an upgrade."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.attacks.node.runner import needs_root, nobody
from tests.node.builders import script, settings
from tests.node.conftest import end_children
from tests.node.hub import FakeHub
from tests.node.link import wheels
from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_launch.order import EnvironmentSpec
from trainhub_launch.report import AttemptFact
from trainhub_node.agent import Agent
from trainhub_node.environments import builder_account, interpreter
from trainhub_node.launch import cache
from trainhub_node.launch.folders import prepare_folders
from trainhub_node.settings import NodeSettings

pytestmark = [needs_root, pytest.mark.slow]
BUILD_S = 120
USE = "import sys, tinylib\nprint(tinylib.VERSION, sys.prefix)\n"
POISON = """
import os, sys
folder = sys.prefix
site = next(path for path in sys.path if path.endswith('site-packages'))
node = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
places = [site + '/poison.pth', site + '/tinylib.py', folder + '/bin/python', folder + '/bin/new',
          folder + '/pyvenv.cfg',
          folder + '/trainhub-complete', folder + '.lock', os.path.dirname(folder) + '/other',
          node + '/sites/sitecustomize.py',
          node + '/sites/new.py', node + '/wrapper/trainhub_node/bootstrap.py', node + '/wrapper/new',
          node + '/cache/snapshots/new']
for place in places:
    for attempt in (lambda: open(place, 'a'), lambda: os.chmod(place, 0o777),
                    lambda: os.rename(place, place + 'x')):
        try:
            attempt()
        except OSError:
            continue
        print('CHANGED', place)
print('tried', len(places))
"""
BACKEND = """
import glob, os, socket, sys, time, zipfile
site = glob.glob({folder!r} + '/lib/python*/site-packages')[0]
held = os.open(site + '/held.py', os.O_CREAT | os.O_RDWR, 0o666)
if not os.path.lexists(site + '/outward'):
    os.symlink({outside!r}, site + '/outward')
channel = socket.socket(socket.AF_UNIX)
channel.connect({channel!r})
socket.send_fds(channel, [str(os.getuid()).encode()], [held])
channel.recv(1)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 1024)
        while True:
            try:
                open(site + '/late.pth', 'w').write('import late')
            except OSError:
                time.sleep(0.01)
    os._exit(0)


def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = 'hostile-1.0-py3-none-any.whl'
    with zipfile.ZipFile(os.path.join(folder, name), 'w') as wheel:
        wheel.writestr('tinylib.py', 'VERSION = "hostile"')
        wheel.writestr('hostile-1.0.dist-info/METADATA',
            'Metadata-Version: 2.1\\nName: hostile\\nVersion: 1.0\\n')
        wheel.writestr('hostile-1.0.dist-info/WHEEL',
            'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
        wheel.writestr('hostile-1.0.dist-info/RECORD', '')
    return name
"""


def venv(*requirements: str) -> EnvironmentSpec:
    return EnvironmentSpec(name="tiny", version="1", kind="venv", requirements=requirements)


@pytest.fixture
def node(hub: FakeHub, open_folder: Path) -> Iterator[NodeSettings]:
    yield settings(hub, open_folder / "node", run_as=nobody(), python="/usr/bin/python3")
    end_children(open_folder)


@pytest.fixture
def run(
    hub: FakeHub, start_agent: Callable[..., Agent], node: NodeSettings
) -> Callable[..., tuple[bytes, AttemptFact]]:
    """Runs a script in an environment, as the account nobody; returns what it said, and how the attempt
    stands."""
    agents: list[Agent] = []

    def run_once(code: str, spec: EnvironmentSpec) -> tuple[bytes, AttemptFact]:
        if not agents:
            agents.append(start_agent(node))
        key = hub.give(script(hub, code, environment=spec))
        fact = hub.wait_done(key, BUILD_S)
        return hub.log(key) or hub.log(key, ENVIRONMENT_LOG), fact

    return run_once


def wheel_for_all(folder: Path) -> str:
    requirement = wheels.make(folder)
    for path in folder.glob("*.whl"):
        path.chmod(0o644)
    return requirement


def is_closed(folder: Path) -> bool:
    """Whether `folder`, and all in it, belongs to root and can be written to by root alone."""
    facts = [path.lstat() for path in (folder, *folder.rglob("*"))]
    return all(one.st_uid == 0 and (stat.S_ISLNK(one.st_mode) or not one.st_mode & 0o7022) for one in facts)


def test_no_run_changes_what_later_runs_use(
    run: Callable[..., tuple[bytes, AttemptFact]], node: NodeSettings, open_folder: Path
) -> None:
    """S4. Environments belonged to the account of the runs: one run's .pth file was imported by all later
    ones."""
    spec = venv(wheel_for_all(open_folder))

    said, fact = run(POISON, spec)

    folder = node.environments / spec.digest
    assert said.splitlines() == [b"tried 13"], (said, fact)
    assert is_closed(folder)
    compiled = list(folder.rglob("tinylib.*.pyc"))
    assert compiled, "runs cannot compile it any more, so the build must have done so"
    before = compiled[0].stat().st_mtime_ns
    assert run(USE, spec)[0] == f"1.0 {folder}\n".encode()
    assert compiled[0].stat().st_mtime_ns == before
    assert sorted(path.name for path in node.environments.iterdir()) == [
        builder_account.LOCKS,
        spec.digest,
        f"{spec.digest}.lock",
    ]


def test_code_of_a_package_has_no_hold_on_the_environment_after_the_build(
    run: Callable[..., tuple[bytes, AttemptFact]], node: NodeSettings, open_folder: Path
) -> None:
    """S4. What runs while building is neither root nor the runs' account, is gone afterwards, and keeps no
    file open."""
    source = open_folder / "hostile"
    source.mkdir()
    source.chmod(0o755)
    channel = open_folder / "channel"
    spec = venv(f"hostile @ {source.as_uri()}")
    folder = node.environments / spec.digest
    (source / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
        "[project]\nname = 'hostile'\nversion = '1.0'\n"
    )
    secret = open_folder / "secret"
    secret.write_text("not for everybody")
    (source / "backend.py").write_text(
        BACKEND.format(folder=str(folder), outside=str(secret), channel=str(channel))
    )
    for path in (source / "pyproject.toml", source / "backend.py"):
        path.chmod(0o644)
    held: list[tuple[int, int]] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(channel))
        channel.chmod(0o666)
        server.listen()
        threading.Thread(target=collect, args=(server, held), daemon=True).start()

        said, fact = run(USE, spec)

    assert said == f"hostile {folder}\n".encode(), (said, fact)
    numbers = {number for number, _ in held}
    assert numbers
    assert numbers <= set(builder_account.UIDS)
    assert [pid for number in numbers for pid in builder_account.builder_processes(number)] == []
    for _, fd in held:
        os.write(fd, b"import poison")
        os.close(fd)
    assert is_closed(folder)
    assert all("poison" not in path.read_text() for path in folder.rglob("held.py"))
    assert list(folder.rglob("outward")) == []


def collect(server: socket.socket, held: list[tuple[int, int]]) -> None:
    """Keeps every descriptor that a builder gives away, as a run that works together with a package would."""
    while True:
        try:
            other, _ = server.accept()
        except OSError:
            return
        number, fds, _, _ = socket.recv_fds(other, 16, 1)
        held.extend((int(number), fd) for fd in fds)
        other.sendall(b"x")
        other.close()


def test_what_a_build_left_running_is_ended_though_its_supervisor_was_killed(node: NodeSettings) -> None:
    """Processes of a builder carry no mark of the run and leave its session: only their account tells whose
    they are."""
    prepare_folders(node)
    locks = node.environments / builder_account.LOCKS
    locks.mkdir()
    abandoned, in_use = builder_account.UIDS[-1], builder_account.UIDS[-2]
    pids = [sleeper(number) for number in (abandoned, in_use)]
    for number in (abandoned, in_use):
        (locks / str(number)).touch()
    held = interpreter.lock_exclusively(str(locks / str(in_use)))
    assert held is not None

    builder_account.kill_abandoned(str(node.environments))

    assert os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1]) == -signal.SIGKILL
    assert builder_account.builder_processes(in_use) == [pids[1]]
    assert [path.name for path in locks.iterdir()] == [str(in_use)]
    builder_account.kill_processes(in_use)
    os.waitpid(pids[1], 0)
    os.close(held)


def sleeper(number: int) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            builder_account.switch_to_builder(number)
            os.setsid()
            signal.pause()
        finally:
            os._exit(1)
    while not builder_account.builder_processes(number):
        time.sleep(0.01)
    return pid


class TestUpgrade:
    def test_environments_of_the_runs_account_are_thrown_away_and_that_is_said(
        self, node: NodeSettings, caplog: pytest.LogCaptureFixture
    ) -> None:
        prepare_folders(node)
        old, used, ours = (node.environments / name for name in ("old", "used", "ours"))
        for folder in (old, used, ours):
            (folder / "bin").mkdir(parents=True)
            shutil.copy("/bin/true", folder / "bin" / "python")
            (folder / interpreter.MARKER).touch()
        for path in (old, *old.rglob("*"), used, *used.rglob("*")):
            os.chown(path, nobody().uid, nobody().gid)
        (node.environments / "half.fresh").mkdir()
        lock = interpreter.lock_exclusively(f"{used}.lock")
        assert lock is not None

        with caplog.at_level(logging.WARNING):
            prepare_folders(node)

        os.close(lock)
        assert not old.exists()
        assert not (node.environments / "half.fresh").exists()
        # Removing gigabytes takes longer than a node may be silent, so it is left to the agent's
        # housekeeping.
        assert len(list(node.environments.glob(f"*{cache.SET_ASIDE}"))) == 2
        cache.remove_set_aside(node)
        assert not list(node.environments.glob(f"*{cache.SET_ASIDE}"))
        assert interpreter.is_built(str(ours))
        assert used.exists()
        assert not interpreter.is_built(str(used))
        assert f"Discarded the environment {old}: it belonged to another account" in caplog.text
        assert "is in use: it stays until the agent starts after that run is over" in caplog.text

    def test_trimming_the_cache_leaves_a_build_in_progress_alone(self, node: NodeSettings) -> None:
        prepare_folders(node)
        folder = node.environments / "built-now"
        folder.mkdir()
        (folder / interpreter.MARKER).symlink_to("/dev/zero")
        os.chown(folder, builder_account.UIDS[0], builder_account.UIDS[0])

        assert cache.trim(type(node)(**{**vars(node), "cache_bytes": 1})) == []
        assert folder.exists()
