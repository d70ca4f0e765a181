"""Finding S26: with RUN_AS the hub's own processes stayed root. They have an account of their own, and only
the agent is root."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.server.separated import (
    HUB_ACCOUNT,
    RUNS_ACCOUNT,
    SeparatedHub,
    needs_root,
    public_folder,
    reads,
    status,
    uid_of,
)
from tests.hub import eventually
from tests.runs import log, submit, wait_for

pytestmark = [pytest.mark.slow, needs_root]
HUB_PARTS = ("valkey", "web", "worker")


@pytest.fixture(scope="module")
def hub() -> Iterator[SeparatedHub]:
    with public_folder() as folder:
        running = SeparatedHub(folder)
        try:
            running.start()
            yield running
        finally:
            running.stop()


class TestProcesses:
    def test_the_hub_runs_under_its_account_and_the_agent_as_root(self, hub: SeparatedHub) -> None:
        for name in HUB_PARTS:
            assert set(status(hub.pid(name), "Uid")) == {str(uid_of(HUB_ACCOUNT))}, name
            assert "0" not in status(hub.pid(name), "Groups"), name
        assert set(status(hub.pid("agent"), "Uid")) == {"0"}

    def test_the_hub_can_gain_no_rights(self, hub: SeparatedHub) -> None:
        for name in HUB_PARTS:
            assert status(hub.pid(name), "NoNewPrivs") == ["1"], name
            assert status(hub.pid(name), "CapEff") == ["0" * 16], name
            assert status(hub.pid(name), "CapPrm") == ["0" * 16], name

    def test_none_holds_a_file_of_roots_open(self, hub: SeparatedHub) -> None:
        """A descriptor that was opened by root and inherited is a right that no account shows."""
        for name in HUB_PARTS:
            for link in Path(f"/proc/{hub.pid(name)}/fd").iterdir():
                target = str(link.readlink())
                if target.startswith(str(hub.data_dir)):
                    assert target.startswith(str(hub.own_folder)), (name, target)


class TestFiles:
    def test_what_an_earlier_hub_left_to_root_belongs_to_the_account_and_the_console_says_so(
        self, hub: SeparatedHub
    ) -> None:
        assert f"belong to {HUB_ACCOUNT}" in hub.said()
        assert not (hub.data_dir / "trainhub.sqlite3").exists()
        for path in (hub.own_folder, *hub.own_folder.rglob("*")):
            assert path.lstat().st_uid == uid_of(HUB_ACCOUNT), path
            assert path.lstat().st_mode & 0o077 == 0, path

    def test_the_folders_of_the_agent_stay_roots(self, hub: SeparatedHub) -> None:
        for path in (hub.data_dir, *(hub.data_dir / name for name in ("node", "node-token", "run", "logs"))):
            assert path.stat().st_uid == 0, path
            assert path.stat().st_mode & 0o022 == 0, path

    @pytest.mark.parametrize(
        "name", ["secret-key", "trainhub.sqlite3", "run/services.json", "run/valkey.conf", "node-token", ""]
    )
    def test_the_account_of_runs_reads_nothing_of_the_hub(self, hub: SeparatedHub, name: str) -> None:
        assert reads(HUB_ACCOUNT, hub.own_folder / name)
        assert not reads(RUNS_ACCOUNT, hub.own_folder / name)

    def test_the_hub_reads_nothing_of_the_agent(self, hub: SeparatedHub) -> None:
        for path in (hub.data_dir / "node-token", hub.data_dir / "node", hub.data_dir / "logs" / "agent.log"):
            assert not reads(HUB_ACCOUNT, path), path


class TestUse:
    def test_a_run_completes_under_the_account_of_runs(self, hub: SeparatedHub) -> None:
        run = submit(hub, "import os\nprint(os.getuid())\nprint(os.access('/proc/1/root', os.R_OK))")
        assert wait_for(hub, run, "Completed", seconds=120)
        assert log(hub, run).split()[0] == str(uid_of(RUNS_ACCOUNT)).encode()

    def test_a_run_cannot_read_the_secret_key(self, hub: SeparatedHub) -> None:
        run = submit(hub, f"open({str(hub.own_folder / 'secret-key')!r})")
        wait_for(hub, run, "Failed", seconds=120)
        # With namespaces the file is not even there.
        assert {b"PermissionError", b"FileNotFoundError"} & set(log(hub, run).replace(b":", b" ").split())

    def test_commands_of_root_leave_nothing_to_root(self, hub: SeparatedHub) -> None:
        hub.manage("token", "create", "admin", "--name", "of-root", check=False)
        assert hub.client().get("/api/v1/runs/").status_code == 200
        assert not [path for path in hub.own_folder.rglob("*") if path.lstat().st_uid != uid_of(HUB_ACCOUNT)]

    def test_a_killed_part_comes_back_under_its_account(self, hub: SeparatedHub) -> None:
        for name in ("worker", "agent"):
            hub.kill(name)
        assert set(status(hub.pid("worker"), "Uid")) == {str(uid_of(HUB_ACCOUNT))}
        assert set(status(hub.pid("agent"), "Uid")) == {"0"}


class TestStops:
    def test_it_starts_again_with_what_it_had(self, hub: SeparatedHub) -> None:
        before = {name: hub.pid(name) for name in (*HUB_PARTS, "agent")}
        token = hub.owner_token()
        assert hub.stop() == 0
        assert not [name for name, pid in before.items() if Path(f"/proc/{pid}").exists()]
        hub.start()
        assert "belong to" not in hub.said()
        assert hub.client(token).get("/api/v1/runs/").status_code == 200

    def test_nothing_outlives_a_killed_root(self, hub: SeparatedHub) -> None:
        pids = [hub.pid(name) for name in (*HUB_PARTS, "agent")]
        hub.stop(signal.SIGKILL)
        eventually(
            lambda: not [pid for pid in pids if Path(f"/proc/{pid}").exists()], 30, "all parts are gone"
        )
        hub.start()
        assert hub.answers()
