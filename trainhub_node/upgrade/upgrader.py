"""Follows the hub's orders to run another version of the node program, and tells what became of them."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from trainhub_launch.upgrades.program_order import DONE, FETCHING, INSTALLING, RESTARTING, ProgramOrder
from trainhub_node import __version__
from trainhub_node.backoff import Backoff
from trainhub_node.link.checked_download import DamagedFile, fetch_file
from trainhub_node.link.hub_client import HubClient, HubError, RequestRejected
from trainhub_node.settings import NodeSettings
from trainhub_node.upgrade.installation import SELF, package_identity
from trainhub_node.upgrade.order_check import OrderRefused, check_order, check_signature, check_start
from trainhub_node.upgrade.program_record import ProgramRecord, programs_folder, read_record, write_record
from trainhub_node.upgrade.programs import (
    ARCHIVE,
    UnusableArchive,
    has_program,
    install_program,
    own_name,
    program_name,
    sweep_programs,
)
from trainhub_node.upgrade.upgrade_requests import UpgradeRequests

log = logging.getLogger(__name__)
# An agent that was ended this often while it followed an order, such as by the lack of memory, gives it up.
MAX_TAKES = 5
# How often an agent whose reports are refused asks whether another version is ordered.
ASK_S = 30.0
MAX_WHY = 500


class Upgrader:
    """A thread of the agent. `restart` ends the agent and starts it anew; no run waits for anything here."""

    def __init__(self, settings: NodeSettings, hub: HubClient, restart: Callable[[], None]) -> None:
        self._hub = UpgradeRequests(hub)
        self._name = settings.name
        self._restart = restart
        self._is_able = settings.upgrades == SELF
        self._folder = programs_folder(settings.folder)
        self._own = own_name(self._folder)
        self._record = read_record(self._folder)
        self._current_order = 0
        # Set by the thread that reports.
        self._has_reported = False
        self._ordered = 0
        self._is_refused = False
        self._ask_at = 0.0
        self._wake, self._closing = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="upgrader", daemon=True)

    def start(self) -> None:
        if self._is_able:
            self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._wake.set()

    def note_answer(self, ordered: int) -> None:
        """Takes the hub's answer to a report: `ordered` is the number of an order for this node, or 0."""
        if not self._has_reported or ordered != self._ordered:
            self._has_reported, self._ordered = True, ordered
            self._wake.set()

    def note_refusal(self) -> None:
        """Takes the hub's refusal of a report. A hub that is older than this agent may order its own
        version."""
        if time.monotonic() >= self._ask_at:
            self._ask_at = time.monotonic() + ASK_S
            self._is_refused = True
            self._wake.set()

    def _run(self) -> None:
        pauses = Backoff(max_s=ASK_S)
        self._sweep()
        while not self._closing.is_set():
            self._wake.wait()
            self._wake.clear()
            try:
                self._work()
                pauses.reset()
            except HubError as error:
                log.warning("The upgrade of this node waits for the hub: %s", error)
                self._work_again(pauses)
            except Exception:
                log.exception("An order to upgrade this node could not be followed")
                self._work_again(pauses)

    def _work_again(self, pauses: Backoff) -> None:
        self._closing.wait(pauses.next_s())
        self._wake.set()

    def _work(self) -> None:
        record = self._record
        if self._has_reported and self._own and record.trial == self._own:
            # From here on the launcher starts this program, without a trial.
            self._write(record.with_success())
        if self._record.outcome and not self._record.is_reported:
            self._report_end()
            self._sweep()
        if (self._ordered or self._is_refused) and not self._closing.is_set():
            order = self._fetch_order()
            if order is not None:
                self._take(order)

    def _fetch_order(self) -> ProgramOrder | None:
        self._is_refused = False
        try:
            return self._hub.order()
        except RequestRejected:
            # A hub that is too old to order anything.
            return None

    def _report_end(self) -> None:
        record = self._record
        try:
            self._hub.report_step(record.order, record.outcome, __version__, record.why)
        except RequestRejected as error:
            log.info("The hub does not wait for the end of the order any more: %s", error)
        self._note(replace(record, is_reported=True))

    def _take(self, order: ProgramOrder) -> None:
        record = self._record
        if order.order == record.order and record.outcome:
            # The hub has not heard it.
            self._note(replace(record, is_reported=False))
            self._report_end()
            return
        takes = record.takes if order.order == record.order else 0
        # An interrupted download goes on in the same process, however often.
        takes += self._current_order != order.order
        self._current_order = order.order
        record = replace(record, order=order.order, takes=takes, outcome="", why="", is_reported=False)
        try:
            check_signature(order, record.key)
            self._folder.mkdir(mode=0o755, exist_ok=True)
            self._folder.chmod(0o755)
            self._write(replace(record, key=order.key))
            self._follow(order)
        except (OrderRefused, RequestRejected, UnusableArchive, OSError) as error:
            why = _sentence(error, self._folder)
            log.error("This node stays with version %s: %s", __version__, why)
            self._note(replace(record, key=self._record.key).with_failure(why[:MAX_WHY]))
            self._wake.set()

    def _follow(self, order: ProgramOrder) -> None:
        """Installs the program and restarts. Raises OrderRefused, UnusableArchive, OSError and HubError."""
        if order.version == __version__:
            self._write(replace(self._record, outcome=DONE))
            self._wake.set()
            return
        if self._record.takes > MAX_TAKES:
            raise OrderRefused(f"The agent ended {MAX_TAKES} times while it followed the order.")
        check_order(order, self._name, self._folder)
        name = program_name(order.version, order.sha256)
        if not has_program(self._folder, name):
            self._install(order, name)
        check_start(order, self._folder / name)
        self._hub.report_step(order.order, RESTARTING, __version__)
        log.info("Restarting with version %s; runs go on", order.version)
        # Of a later program, the launcher has said which package it is.
        installed = self._record.installed if self._own else package_identity()
        self._write(replace(self._record, installed=installed, trial=name, starts=0))
        self._restart()

    def _install(self, order: ProgramOrder, name: str) -> None:
        self._hub.report_step(order.order, FETCHING, __version__)
        archive = self._folder / ARCHIVE
        if archive.exists() and _sha256(archive) != order.sha256:
            archive.unlink()
        try:
            fetch_file(
                lambda to: self._hub.download_archive(order.sha256, to), archive, order.sha256, "The archive"
            )
        except DamagedFile as error:
            raise OrderRefused(
                "The archive that arrived has another SHA-256 than the order names, so it was removed."
            ) from error
        self._hub.report_step(order.order, INSTALLING, __version__)
        install_program(self._folder, archive, name)
        archive.unlink()

    def _note(self, record: ProgramRecord) -> None:
        """Remembers what the hub is to hear even if the disk is full."""
        self._record = record
        try:
            write_record(self._folder, record)
        except OSError as error:
            log.warning("%s cannot be written: %s", self._folder, error.strerror)

    def _write(self, record: ProgramRecord) -> None:
        write_record(self._folder, record)
        self._record = record

    def _sweep(self) -> None:
        try:
            sweep_programs(self._folder, self._record)
        except OSError:
            log.exception("Earlier programs could not be removed; the next start tries again")


def _sentence(error: Exception, folder: Path) -> str:
    if isinstance(error, UnusableArchive):
        return f"The hub's archive is unusable: {error}."
    if isinstance(error, OSError):
        return f"{folder} cannot be written: {error.strerror or error}."
    return str(error)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
