"""What of TensorBoard ends with the session of its person, and what a killed web server leaves."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from django.contrib.auth.signals import user_logged_out

from jobs.logs import log_store
from tests.hub import PROJECT
from tests.jobs.builders import queued
from tests.people import make_contributor, principal_of
from tests.tracking.events.files import NAME, curve, event_file, new
from tracking.tensorboard import sessions
from trainhub.asgi import application

# Of a process that may read the folder of its argument, and tries to read files of the system.
SCRIPT = """
import sys
from pathlib import Path
from tracking.tensorboard import confinement

if confinement.restrict_files(Path(sys.argv[1])):
    for name in ("passwd", "hostname"):
        try:
            Path("/etc", name).read_bytes()
        except PermissionError:
            print(name)
"""


@pytest.mark.slow
def test_signing_out_ends_the_tensorboards_of_this_person(transactional_db: None, valkey: str) -> None:
    who, other = principal_of(make_contributor()), 0
    run = queued(who)
    path = log_store.path(run.pk, run.attempt, f"logs/{NAME}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(event_file(*curve("loss", 2, kind=new)))
    assert application  # loads the pages, which hear of it
    board = sessions.boards.open(run, who.user.pk)
    sessions.boards.close_of(other)
    assert board.is_alive
    user_logged_out.send(type(who.user), request=None, user=who.user)
    assert not board.is_alive
    assert not board.folder.exists()
    assert sessions.boards.find(board.ticket) is None


def test_copies_that_a_killed_hub_has_left_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = sessions._new_folder()
    (left / "events").mkdir()
    foreign = tmp_path / "trainhub-tensorboard-0000000000000000-of-another-hub"
    foreign.mkdir()
    sessions.remove_leftovers()
    assert list(tmp_path.iterdir()) == [foreign]


def test_it_reads_no_settings_of_the_system(tmp_path: Path) -> None:
    if not Path("/etc/hostname").exists():
        pytest.skip("this machine has no /etc/hostname")
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout.split() in (["hostname"], [])
