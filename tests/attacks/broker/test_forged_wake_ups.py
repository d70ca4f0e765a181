"""S2: a forged wake-up made the agent delete folders anywhere, and start a run's own order as root.

Every message here is put into the node's queue on a real Valkey, with rights that only the hub has by now
(see test_node_user.py for what a node's own user may do)."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import celery
import pytest

from tests.node.builders import environ, order, process, script
from tests.node.hub import FakeHub, Key
from tests.node.processes import agent_process
from trainhub.installation import broker_of
from trainhub_node.run_account import Account, can_execute

QUEUE = "node.here.wake"
NOT_RUNS: Sequence[object] = (
    "",
    "a" * 31,
    "a" * 33,
    "A" * 32,
    "g" * 32,
    "a" * 32 + "\n",
    "a" * 31 + "/",
    "../" * 10 + "aa",
    "é" * 32,
    "\u0661" * 32,
    None,
    7,
    1.5,
    True,
    ["a" * 32],
    {"run": "a" * 32},
    "\0" * 32,
)
NOT_ATTEMPTS: Sequence[object] = (
    0,
    -1,
    2**31,
    10**30,
    True,
    False,
    1.0,
    "1",
    "phen/sub.d",
    "",
    None,
    [1],
    {"attempt": 1},
    "../1",
)
WRITES = "import os, pathlib\npathlib.Path({path!r}).write_text(f'{{os.getuid()}} {{os.getgid()}}')\n"


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub().serving() as made:
        yield made


@pytest.fixture(params=["", "nobody"], ids=["without RUN_AS", "RUN_AS=nobody"])
def run_as(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name:
        if os.geteuid() != 0:
            pytest.skip("only root can run ranks as another account")
        found = pwd.getpwnam(name)
        if not can_execute("/usr/bin/python3", Account(name, found.pw_uid, found.pw_gid, found.pw_dir)):
            pytest.skip("the account nobody has no Python at /usr/bin/python3")
    return name


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other accounts can reach, as pytest's own folders cannot be."""
    folder = Path(tempfile.mkdtemp(prefix="trainhub-attack-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def agent(hub: FakeHub, valkey: str, place: Path, run_as: str) -> Iterator[Path]:
    """An agent that listens at the broker; the folder of its attempts."""
    hub.config = {
        "broker_url": broker_of(valkey),
        "queue": QUEUE,
        "transport_options": {},
        "broker_ca": "",
        "node": "here",
        "hub_time": time.time(),
    }
    told = {"TRAINHUB_NODE_RUN_AS": run_as, "TRAINHUB_NODE_PYTHON": "/usr/bin/python3"} if run_as else {}
    with agent_process(environ(hub, place / "node") | told):
        yield place / "node" / "attempts"


def send(valkey: str, *messages: dict[str, Any]) -> None:
    with celery.Celery(broker=broker_of(valkey), set_as_current=False) as app:
        for message in messages:
            app.send_task("node.wake", kwargs=message, queue=QUEUE, ignore_result=True)


def wake_and_wait(hub: FakeHub, valkey: str, text: str = "print('honest')") -> Key:
    """An honest attempt, woken for through the broker: once it is over, whatever was sent before has been
    taken too."""
    made = script(hub, text)
    key = made.run, 1
    hub.orders[key] = made
    for _ in range(3):
        send(valkey, {"run": made.run, "attempt": 1})
        with hub.changed:
            if hub.changed.wait_for(lambda: key in hub.facts, 10):
                break
    hub.wait_done(key)
    return key


def upward(target: Path) -> str:
    """A run id that leads from the folder of the attempts to `target`, once `-ATTEMPT` is put behind it."""
    return "../" * 12 + str(target).lstrip("/")


class TestFolders:
    def test_elsewhere_are_not_deleted(self, hub: FakeHub, valkey: str, place: Path, run_as: str) -> None:
        for name in ("important-1", "hy-phen/sub.d"):
            (place / name).mkdir(parents=True)
            for file in ("a.conf", "b.conf"):
                (place / name / file).write_text("kept")
        with agent(hub, valkey, place, run_as) as attempts:
            wake_and_wait(hub, valkey)
            send(valkey, {"run": upward(place / "important"), "attempt": 1})
            send(valkey, {"run": upward(place / "hy"), "attempt": "phen/sub.d"})
            wake_and_wait(hub, valkey)
            names = [path.name for path in attempts.iterdir()]

        kept = sorted(str(path.relative_to(place)) for path in place.glob("*-*/**/*.conf"))
        assert kept == [
            "hy-phen/sub.d/a.conf",
            "hy-phen/sub.d/b.conf",
            "important-1/a.conf",
            "important-1/b.conf",
        ]
        assert len(names) == 2
        assert {(claim["run"], claim["attempt"]) for claim in hub.claims} == set(hub.facts)

    def test_are_not_made_for_anything_that_is_no_attempt(
        self, hub: FakeHub, valkey: str, place: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        with agent(hub, valkey, place, "") as attempts:
            send(valkey, *({"run": run, "attempt": 1} for run in NOT_RUNS))
            send(valkey, *({"run": "a" * 32, "attempt": attempt} for attempt in NOT_ATTEMPTS))
            send(
                valkey, {}, {"run": "a" * 32}, {"attempt": 1}, {"run": "a" * 32, "attempt": 0, "path": "/etc"}
            )
            key = wake_and_wait(hub, valkey)
            assert [path.name for path in attempts.iterdir()] == [f"{key[0]}-1"]
        assert [(claim["run"], claim["attempt"]) for claim in hub.claims] == [key]
        assert capfd.readouterr().err.count("Dropped a wake-up from the broker") == 1

    def test_keep_what_the_claim_of_a_refused_attempt_did_not_make(
        self, hub: FakeHub, valkey: str, place: Path
    ) -> None:
        run = "b" * 32
        with agent(hub, valkey, place, "") as attempts:
            wake_and_wait(hub, valkey)
            folder = attempts / f"{run}-1"
            folder.mkdir(mode=0o700)
            (folder / "notes.txt").write_text("kept")
            send(valkey, {"run": run, "attempt": 1})
            hub.wait(lambda: any(claim["run"] == run for claim in hub.claims))
            wake_and_wait(hub, valkey)
        assert [path.name for path in folder.iterdir()] == ["notes.txt"]


class TestPlantedOrders:
    def files(self, hub: FakeHub, marker: Path) -> dict[str, str]:
        """A source whose folder `evil-1` looks like an attempt that was claimed: its order would run as the
        agent."""
        planted = order(
            hub, {"x": ""}, process(0, ("python", "-c", WRITES.format(path=str(marker)))), run="e" * 32
        )
        terms: dict[str, Any] = {
            "node": "here",
            "python": sys.executable,
            "sites": "/nowhere",
            "environments": "/nowhere",
            "digest": "",
            "pip": {},
            "account": None,
            "wrapper": [sys.executable],
            "ca": "",
        }
        return {
            "train.py": "print('unpacked')",
            "evil-1/order.json": json.dumps(planted.to_json()),
            "evil-1/terms.json": json.dumps(terms),
            "evil-1/claim.json": json.dumps({"nonce": "x", "ports": [], "held": []}),
            "evil-1/logs/x": "",
            "evil-1/ranks/x": "",
            "evil-1/work/outputs/x": "",
        }

    def test_in_a_runs_own_source_are_not_started(
        self, hub: FakeHub, valkey: str, place: Path, run_as: str
    ) -> None:
        public = place / "public"
        public.mkdir()
        public.chmod(0o777)
        marker = public / "marker"
        made = order(hub, self.files(hub, marker), process(0, ("python", "train.py")))
        hub.auto_settle = False
        with agent(hub, valkey, place, run_as) as attempts:
            hub.give(made)
            hub.wait_done((made.run, 1))
            assert (attempts / f"{made.run}-1" / "work" / "evil-1" / "order.json").exists()
            send(valkey, {"run": f"{made.run}-1/work/evil", "attempt": 1})
            wake_and_wait(hub, valkey, "import time; time.sleep(1)")
        assert not marker.exists(), f"the planted order ran as {marker.read_text()}"

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
    @pytest.mark.parametrize(
        "fault",
        [
            "folder of another account",
            "order of another account",
            "writable folder",
            "writable order",
            "order is a link",
            "folder is a link",
        ],
    )
    def test_that_another_account_may_have_written_are_not_started(
        self, hub: FakeHub, valkey: str, place: Path, fault: str
    ) -> None:
        public = place / "public"
        public.mkdir()
        public.chmod(0o777)
        marker, run = public / "marker", "c" * 32
        with agent(hub, valkey, place, "nobody") as attempts:
            wake_and_wait(hub, valkey)
            folder = attempts / f"{run}-1"
            for name, text in self.files(hub, marker).items():
                path = folder / name.removeprefix("evil-1/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            spoil(folder, fault)
            send(valkey, {"run": run, "attempt": 1})
            wake_and_wait(hub, valkey, "import time; time.sleep(1)")
            send(valkey, {"run": run, "attempt": 1})
            wake_and_wait(hub, valkey)
        assert not marker.exists()
        assert run not in {claim["run"] for claim in hub.claims}


def spoil(folder: Path, fault: str) -> None:
    folder.chmod(0o711)
    order_file = folder / "order.json"
    match fault:
        case "folder of another account":
            os.chown(folder, 65534, 65534)
        case "order of another account":
            os.chown(order_file, 65534, 65534)
        case "writable folder":
            folder.chmod(0o777)
        case "writable order":
            order_file.chmod(0o666)
        case "order is a link":
            order_file.rename(folder / "elsewhere")
            order_file.symlink_to(folder / "elsewhere")
        case "folder is a link":
            folder.rename(folder.parent.parent / "elsewhere")
            folder.symlink_to(folder.parent.parent / "elsewhere")
