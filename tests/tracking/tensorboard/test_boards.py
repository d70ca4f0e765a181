"""TensorBoards as processes: how many, for how long, for whom, and what they see of the files."""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import httpx
import pytest
from django.contrib.sessions.backends.db import SessionStore

from jobs import outputs
from jobs.logs import log_store
from jobs.models import Run
from tests.hub import eventually
from tests.jobs.builders import queued
from tests.people import make_contributor, principal_of
from tests.tracking.events.files import NAME, curve, event_file, new
from tracking.tensorboard import event_folder, sessions
from tracking.tensorboard.sessions import Board, Boards, NotOpened, Reader
from workspaces.access import Principal
from workspaces.models import Membership
from workspaces.stored_files.blob_writer import BlobWriter

pytestmark = [pytest.mark.usefixtures("valkey"), pytest.mark.slow]


@pytest.fixture
def who(transactional_db: None) -> Principal:
    return principal_of(make_contributor())


@pytest.fixture
def reader(who: Principal) -> Reader:
    """The person in a session of their browser."""
    session = SessionStore()
    session.create()
    return Reader(who.user.pk, session.session_key or "")


@pytest.fixture
def boards() -> Iterator[Boards]:
    opened = Boards()
    yield opened
    opened.close_all()


def run_with_events(who: Principal, steps: int = 5) -> Run:
    run = queued(who)
    write_events(run, steps)
    return run


def write_events(run: Run, steps: int) -> None:
    path = log_store.path(run.pk, run.attempt, f"logs/fit/{NAME}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(event_file(*curve("loss", steps, kind=new)))


def steps_of(board: Board) -> int:
    """How many points of the curve TensorBoard shows."""
    transport = httpx.HTTPTransport(uds=str(board.socket))
    with httpx.Client(transport=transport, base_url="http://tensorboard", timeout=20) as client:
        answer = client.get(
            f"{board.address}data/plugin/scalars/scalars", params={"run": "logs/fit", "tag": "loss"}
        )
    return len(answer.json()) if answer.status_code == httpx.codes.OK else 0


def test_a_run_with_event_files_is_shown_and_followed(
    who: Principal, reader: Reader, boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "UPDATE_EVERY_S", 0.2)
    run = run_with_events(who)
    board = boards.open(run, reader)
    eventually(lambda: steps_of(board) == 5, 90, "the curve is read")
    write_events(run, 12)
    eventually(lambda: steps_of(board) == 12, 90, "what the run has added is read")
    assert boards.open(run, reader) is board
    assert boards.find(board.ticket) is board
    assert boards.find(board.ticket[:-1]) is None


def test_a_third_waits_unless_one_is_idle(
    who: Principal, reader: Reader, boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (run_with_events(who) for _ in range(3))
    monkeypatch.setattr(sessions, "REPLACED_AFTER_S", 600)
    oldest = boards.open(first, reader)
    boards.open(second, reader)
    with pytest.raises(NotOpened, match="Close a page with one"):
        boards.open(third, reader)
    monkeypatch.setattr(sessions, "REPLACED_AFTER_S", 0)
    assert boards.open(third, reader).is_alive
    assert not oldest.is_alive
    assert not oldest.folder.exists()
    assert boards.of(second, reader) is not None


def test_it_ends_when_nobody_uses_it(
    who: Principal, reader: Reader, boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "IDLE_S", 5.0)
    monkeypatch.setattr(sessions, "UPDATE_EVERY_S", 0.2)
    board = boards.open(run_with_events(who), reader)
    eventually(lambda: not board.is_alive, 60, "the process ends")
    eventually(lambda: not board.folder.exists(), 60, "its folder is removed")
    assert boards.find(board.ticket) is None


def _leave(reader: Reader) -> None:
    Membership.objects.filter(user=reader.user_id).delete()


def _end_session(reader: Reader) -> None:
    SessionStore(reader.session_key).delete()


@pytest.mark.parametrize("lose", [_leave, _end_session])
def test_it_ends_when_its_person_may_no_longer_read_the_run(
    who: Principal,
    reader: Reader,
    boards: Boards,
    monkeypatch: pytest.MonkeyPatch,
    lose: Callable[[Reader], None],
) -> None:
    monkeypatch.setattr(sessions, "UPDATE_EVERY_S", 0.2)
    board = boards.open(run_with_events(who), reader)
    time.sleep(0.5)
    assert board.is_alive
    lose(reader)
    eventually(lambda: not board.is_alive, 60, "the process ends")


def test_too_many_bytes_are_refused_with_what_to_do(
    who: Principal, reader: Reader, boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_folder, "MAX_BYTES", 100)
    with pytest.raises(NotOpened, match="Download its outputs"):
        boards.open(run_with_events(who), reader)
    assert boards.find("") is None


def test_a_damaged_file_ends_nothing(who: Principal, reader: Reader, boards: Boards) -> None:
    run = run_with_events(who)
    damaged = log_store.path(run.pk, run.attempt, f"logs/other/{NAME}")
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"\xff" * 5000)
    board = boards.open(run, reader)
    eventually(lambda: steps_of(board) == 5, 90, "the other file is read")
    assert board.is_alive


def test_the_copies_stay_in_their_folder(who: Principal, tmp_path: Path) -> None:
    run = run_with_events(who)
    folder = event_folder.EventFolder(run, tmp_path)
    folder.update()
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*tfevents*")] == [
        f"logs/fit/{NAME}"
    ]


def test_a_copy_that_failed_in_the_middle_is_continued(
    who: Principal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_with_events(who, 12)
    whole = log_store.path(run.pk, run.attempt, f"logs/fit/{NAME}").read_bytes()
    folder = event_folder.EventFolder(run, tmp_path)
    copy = shutil.copyfileobj

    def fail(reading: IO[bytes], writing: IO[bytes], _: int) -> None:
        writing.write(reading.read(100))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", fail)
    with pytest.raises(OSError, match="No space"):
        folder.update()
    monkeypatch.setattr(shutil, "copyfileobj", copy)
    folder.update()
    assert (tmp_path / "logs" / "fit" / NAME).read_bytes() == whole


def test_a_file_that_is_among_the_outputs_too_is_copied_once(who: Principal, tmp_path: Path) -> None:
    run = run_with_events(who)
    with BlobWriter() as writer:
        writer.write(b"the same file")
        outputs.put_output(run, run.attempt, f"fit/{NAME}", writer.finish(), 13)
    event_folder.EventFolder(run, tmp_path).update()
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*tfevents*")] == [
        f"logs/fit/{NAME}"
    ]
