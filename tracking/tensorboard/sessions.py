"""TensorBoards that are open: one process each, started by this web server and ended with it.

A ticket, which is part of the address, is all that a request needs: the frame that shows TensorBoard has no
cookies. Only who may read the run gets one, and each opening has its own."""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import pwd
import secrets
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connection

from jobs.models import Run
from jobs.states import FINAL
from tracking.tensorboard import confinement
from tracking.tensorboard.event_folder import EventFolder, TooManyEvents
from tracking.tensorboard.server import READY
from workspaces import process_caches
from workspaces.servers.ring import ring

log = logging.getLogger(__name__)
MAX_OPEN, IDLE_S, START_S, UPDATE_EVERY_S = 2, 600.0, 30.0, 5.0
# Whoever wants a third one gets the place of one that nobody has used for this long.
REPLACED_AFTER_S = 60.0
# The latter stands between the id of the web server, if there are several, and the secret of a ticket.
PATH, SERVER_SEPARATOR = "/tensorboard", "."


class NotOpened(Exception):
    """The text says, as a sentence, why TensorBoard was not opened and what to do."""


@dataclass(frozen=True)
class Reader:
    """Who has opened a TensorBoard, and in which session of their browser."""

    user_id: int
    session_key: str


@dataclass
class Board:
    """One open TensorBoard. `lifeline`: the descriptor of a pipe at whose end the process waits, to end with
    this one. `used_at`: time.monotonic() of its last request."""

    ticket: str
    run_id: str
    run_number: int
    reader: Reader
    folder: Path
    process: subprocess.Popen[bytes]
    lifeline: int
    used_at: float = field(default_factory=time.monotonic)

    @property
    def socket(self) -> Path:
        return self.folder / "socket"

    @property
    def address(self) -> str:
        return f"{PATH}/{self.ticket}/"

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.lifeline)
        shutil.rmtree(self.folder, ignore_errors=True)


class Boards:
    """All open TensorBoards of this process, by ticket."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._boards: dict[str, Board] = {}

    def find(self, ticket: str) -> Board | None:
        """Returns the TensorBoard with this ticket, and counts that as a use of it."""
        board = self._boards.get(ticket)
        if board is None or not board.is_alive:
            return None
        board.used_at = time.monotonic()
        return board

    def of(self, run: Run, reader: Reader) -> Board | None:
        """Returns the TensorBoard that is open for the run in this session."""
        return next(
            (board for board in self._alive() if (board.run_id, board.reader) == (run.pk, reader)), None
        )

    def open(self, run: Run, reader: Reader) -> Board:
        """Returns the person's TensorBoard for this run, and starts one if there is none. Raises
        NotOpened."""
        with self._lock:
            board = self.of(run, reader)
            if board is None:
                self._make_room()
                board = _start(run, reader)
                self._boards[board.ticket] = board
            return board

    def close_of(self, session_key: str) -> None:
        """Ends all that is open in this session."""
        with self._lock:
            for board in [item for item in self._boards.values() if item.reader.session_key == session_key]:
                self._close(board)

    def close_all(self) -> None:
        with self._lock:
            for board in list(self._boards.values()):
                self._close(board)

    def _alive(self) -> Iterator[Board]:
        return (board for board in list(self._boards.values()) if board.is_alive)

    def _make_room(self) -> None:
        for board in list(self._boards.values()):
            if not board.is_alive:
                self._close(board)
        if len(self._boards) < MAX_OPEN:
            return
        oldest = min(self._boards.values(), key=lambda board: board.used_at)
        if time.monotonic() - oldest.used_at < REPLACED_AFTER_S:
            raise NotOpened(
                f"{MAX_OPEN} TensorBoards are in use, and this hub runs no more at once. Close a page with "
                "one, and try again after a minute."
            )
        self._close(oldest)

    def _close(self, board: Board) -> None:
        board.close()
        self._boards.pop(board.ticket, None)


boards = Boards()
atexit.register(boards.close_all)


@process_caches.register
def close_all() -> None:
    boards.close_all()


def _start(run: Run, reader: Reader) -> Board:
    """Starts a process for the run and waits until it answers. Raises NotOpened."""
    folder = _new_folder()
    events = folder / "events"
    events.mkdir()
    # The folder around it is closed to others.
    events.chmod(0o755)
    try:
        copies = EventFolder(run, events)
        copies.update()
        board = _start_process(run, reader, folder, events)
    except TooManyEvents as error:
        shutil.rmtree(folder)
        raise NotOpened(
            f"Run {run.number} is too large for TensorBoard here: {error}. Download its outputs and start "
            "TensorBoard on your machine."
        ) from error
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        log.exception("TensorBoard of run %s", run.pk)
        raise NotOpened(
            f"TensorBoard did not start: {error.strerror or error}. Free space in {tempfile.gettempdir()} "
            "if it is full, and try again."
        ) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    threading.Thread(
        target=_follow, args=(board, copies), daemon=True, name=f"tensorboard-{run.number}"
    ).start()
    return board


def _start_process(run: Run, reader: Reader, folder: Path, events: Path) -> Board:
    ticket = f"{ring.own_id}{SERVER_SEPARATOR}{secrets.token_urlsafe(32)}"
    waiting, lifeline = os.pipe()
    ready, answer = os.pipe()
    # The log is opened here, because the process may write no file.
    with socket.socket(socket.AF_UNIX) as listening, (folder / "log").open("wb") as errors:
        listening.bind(str(folder / "socket"))
        listening.listen()
        descriptor = listening.fileno()
        argv = (str(events), str(descriptor), f"{PATH}/{ticket}", str(IDLE_S))
        process = subprocess.Popen(
            [sys.executable, "-m", "tracking.tensorboard.server", *argv],
            stdin=waiting,
            stdout=answer,
            stderr=errors,
            cwd=settings.BASE_DIR,
            env=_environment(),
            pass_fds=(descriptor,),
            start_new_session=True,
        )
    for end in (waiting, answer):
        os.close(end)
    board = Board(ticket, run.pk, run.number, reader, folder, process, lifeline)
    with os.fdopen(ready, "rb") as output:
        readable, _, _ = select.select([output], [], [], START_S)
        line = output.readline().decode().strip() if readable else ""
    if line != READY:
        report = (folder / "log").read_text(errors="replace")[-2000:]
        log.error("TensorBoard of run %s did not start: %s", run.pk, report)
        board.close()
        raise NotOpened("TensorBoard did not start; the hub's log says why. Try again.")
    return board


def _environment() -> dict[str, str]:
    """Nothing of the hub's own environment, which names its secrets."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ") if name in os.environ}
    # One thread for numpy: further ones would start before the limits of Landlock hold.
    return {**kept, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def _new_folder() -> Path:
    """Returns a folder that only the account of TensorBoard, and root, may enter."""
    # Not below DATA_DIR, into which that account cannot look.
    folder = Path(tempfile.mkdtemp(prefix=_folder_prefix()))
    if not os.geteuid():
        account = pwd.getpwnam(confinement.ACCOUNT)
        os.chown(folder, account.pw_uid, account.pw_gid)
    return folder


def _folder_prefix() -> str:
    """Returns how the names of the folders of this server begin: others may run on this machine."""
    own = os.fsencode(settings.DATA_DIR) + settings.SERVER_NAME.encode()
    return f"trainhub-tensorboard-{hashlib.sha256(own).hexdigest()[:16]}-"


def remove_leftovers() -> None:
    """Removes the copies of event files that a killed web server has left. Call it before any are made."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_folder_prefix()}*"):
        # Anybody may make a folder with such a name there; only those of this account are removed.
        if not folder.is_symlink() and folder.lstat().st_uid in _own_accounts():
            shutil.rmtree(folder, ignore_errors=True)


def _own_accounts() -> tuple[int, ...]:
    own = os.geteuid()
    return (own,) if own else (own, pwd.getpwnam(confinement.ACCOUNT).pw_uid)


def _follow(board: Board, copies: EventFolder) -> None:
    """Copies new data until the run has ended, ends the process when its person may no longer read the run,
    and cleans up after it."""
    is_over = False
    while board.is_alive:
        time.sleep(UPDATE_EVERY_S)
        try:
            if not _may_read(board):
                board.process.kill()
            elif not is_over:
                # Read before the copy: what arrives between the two is copied.
                is_over = Run.objects.values_list("state", flat=True).get(pk=board.run_id) in FINAL
                copies.update()
        except TooManyEvents as error:
            log.warning("TensorBoard of run %s shows nothing new: %s", board.run_id, error)
            is_over = True
        except Exception:
            # The database or a file may be away for a moment; the next round tries again.
            log.exception("Event files of run %s", board.run_id)
        finally:
            connection.close()
    shutil.rmtree(board.folder, ignore_errors=True)


def _may_read(board: Board) -> bool:
    """Returns whether the person may still read the run, in a session that has not ended."""
    reader = board.reader
    runs = Run.objects.not_deleted().filter(
        pk=board.run_id,
        workspace__memberships__user=reader.user_id,
        workspace__memberships__user__is_active=True,
    )
    return runs.exists() and Session.objects.filter(session_key=reader.session_key).exists()
