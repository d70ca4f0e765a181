"""`manage.py up` from the outside: what it starts, refuses, heals and leaves behind."""

from __future__ import annotations

import os
import signal
import socket
import stat
from pathlib import Path

import pytest

from tests.hub import Hub, eventually

pytestmark = pytest.mark.slow
PARTS = ("valkey", "web", "worker", "agent")


def lives(pid: int) -> bool:
    return (
        Path(f"/proc/{pid}").exists()
        and "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    )


def refusal(hub: Hub) -> str:
    """The sentence with which this hub declines to start."""
    hub.is_new = True
    with pytest.raises(AssertionError):
        hub.start()
    assert hub.process is not None
    assert hub.process.wait(10) == 1
    return hub.said()


class TestStart:
    def test_answers_and_prints_the_password_once(self, own_hub: Hub) -> None:
        own_hub.is_new = True
        own_hub.start()
        assert own_hub.answers()
        assert own_hub.said().count(own_hub.password) == 1
        assert own_hub.url in own_hub.said()
        own_hub.stop()
        own_hub.start()
        assert "password" not in own_hub.said()

    def test_keeps_its_data_to_this_account(self, own_hub: Hub) -> None:
        own_hub.is_new = True
        own_hub.start()
        open_to_runs = (
            own_hub.data_dir / "node" / "sites"
        )  # our sitecustomize, which a RUN_AS account must read
        for path in [own_hub.data_dir, *own_hub.data_dir.rglob("*")]:
            if path == open_to_runs or open_to_runs in path.parents:
                continue
            assert not stat.S_IMODE(path.lstat().st_mode) & 0o077, path

    def test_listens_on_no_other_port(self, own_hub: Hub) -> None:
        own_hub.start()
        inodes = {
            line.split()[9]
            for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
            if line.split()[3] == "0A"
        }
        for name in PARTS:
            links = [opened(link) for link in Path(f"/proc/{own_hub.pid(name)}/fd").iterdir()]
            listening = [link for link in links if link.removeprefix("socket:[").rstrip("]") in inodes]
            assert len(listening) == (1 if name == "web" else 0), name


def opened(link: Path) -> str:
    """What a process has open there; nothing once it has closed it."""
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""


class TestRefusals:
    def test_a_second_up_on_the_same_folder_is_refused(self, hub: Hub) -> None:
        said = refusal(Hub(hub.data_dir))
        assert "already runs" in said
        assert str(hub.process.pid if hub.process else "") in said

    def test_a_port_in_use_is_named(self, own_hub: Hub) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", own_hub.port))
            taken.listen()
            said = refusal(own_hub)
        assert f"Port {own_hub.port} on 127.0.0.1 is in use" in said
        assert "BIND=" in said

    def test_a_folder_that_cannot_be_made_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        said = refusal(Hub(tmp_path / "file"))
        assert "cannot be used" in said
        assert "DATA_DIR" in said

    def test_a_broken_database_address_is_one_sentence(self, tmp_path: Path) -> None:
        said = refusal(Hub(tmp_path / "data", DATABASE_URL="sqlite:////nowhere/at/all.sqlite3"))
        assert "database" in said
        assert "Traceback" not in said

    def test_a_wrong_setting_names_itself(self, tmp_path: Path) -> None:
        said = refusal(Hub(tmp_path / "data", BIND="nonsense"))
        assert "BIND=nonsense must be ADDRESS:PORT" in said


class TestStop:
    @pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGTERM])
    def test_ends_every_part_and_says_so(self, own_hub: Hub, number: signal.Signals) -> None:
        own_hub.start()
        pids = [own_hub.pid(name) for name in PARTS]
        assert own_hub.stop(number) == 0
        assert not [pid for pid in pids if lives(pid)]
        assert "TrainHub has stopped" in own_hub.said()
        assert not (own_hub.data_dir / "run" / "services.json").exists()

    def test_parts_end_with_a_killed_supervisor_and_the_next_one_starts(self, own_hub: Hub) -> None:
        own_hub.start()
        pids = [own_hub.pid(name) for name in PARTS]
        own_hub.stop(signal.SIGKILL)
        own_hub.start()
        assert own_hub.answers()
        eventually(lambda: not [pid for pid in pids if lives(pid)], what="the old parts are gone")


class TestHealing:
    def test_a_part_that_dies_at_once_again_and_again_ends_in_one_sentence(self, own_hub: Hub) -> None:
        own_hub.start()
        process, killed = own_hub.process, set()

        def gave_up() -> bool:
            pid = own_hub.pid("worker")
            if pid not in killed and lives(pid):
                killed.add(pid)
                os.kill(pid, signal.SIGKILL)
            return process is not None and process.poll() is not None

        eventually(gave_up, 60)
        assert process is not None
        assert process.returncode == 1
        assert "The worker was ended by SIGKILL right after each of 5 starts" in own_hub.said()

    @pytest.mark.parametrize("name", PARTS)
    def test_a_killed_part_is_started_again(self, hub: Hub, name: str) -> None:
        hub.kill(name)
        assert lives(hub.pid(name))
        assert "starting it again" in hub.said()
