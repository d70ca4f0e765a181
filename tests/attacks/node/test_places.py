"""Places of the agent's that the account of the runs controls, and names that others may take before it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attacks.node.runner import as_account, needs_root, nobody
from tests.node.builders import settings
from tests.node.hub import FakeHub
from trainhub_node.attempts.watch import FileWatch
from trainhub_node.launch.folders import prepare_folders
from trainhub_node.machine.port_locks import PortLocks
from trainhub_node.settings import SettingsError

pytestmark = needs_root


def give_to_the_runs(folder: Path) -> None:
    os.chown(folder, nobody().uid, nobody().gid)


def open_to_the_group(folder: Path) -> None:
    os.chown(folder, 0, nobody().gid)
    folder.chmod(0o771)


@pytest.mark.parametrize("change", [give_to_the_runs, lambda folder: folder.chmod(0o777), open_to_the_group])
@pytest.mark.parametrize("depth", ["home", "home/node", "home/node/cache"])
def test_an_agent_whose_folder_the_runs_could_exchange_does_not_start(
    hub: FakeHub, open_folder: Path, change: Callable[[Path], None], depth: str
) -> None:
    """The account of the runs could put a folder of its own, with orders for root, in the place of the
    agent's."""
    node = settings(hub, open_folder / "home" / "node", run_as=nobody(), python="/usr/bin/python3")
    (open_folder / depth).mkdir(parents=True)
    for folder in (open_folder / "home", open_folder / "home" / "node"):
        if folder.exists():
            folder.chmod(0o755)
    change(open_folder / depth)

    with pytest.raises(
        SettingsError,
        match=r"the account nobody \(TRAINHUB_NODE_RUN_AS\) can change what is in .*like /var/lib",
    ):
        prepare_folders(node)


def test_a_pipe_in_the_place_of_a_ports_lock_does_not_hold_the_agent(open_folder: Path) -> None:
    """The folder of port locks is open to all: a run's pipe there held every later claim of the node."""
    folder = open_folder / "ports"
    locks = PortLocks(folder)
    assert as_account(nobody(), lambda: os.mkfifo(folder / "29500", 0o644)) == 0
    taker = threading.Thread(target=locks.acquire, args=(29500,), daemon=True)

    taker.start()

    taker.join(10)
    assert not taker.is_alive()
    locks.close()


def test_a_folder_of_logs_that_became_a_link_is_not_watched(open_folder: Path, tmp_path: Path) -> None:
    link = open_folder / "logs"
    link.symlink_to(tmp_path)
    watch = FileWatch()
    watch.add(str(link))
    (tmp_path / "file").touch()
    assert not watch.wait(0.1)
    watch.close()
