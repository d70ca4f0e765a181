"""Finds out whether this server was given the same Valkey, broker and data folder as the others, and the same
settings."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter

from django.db import DatabaseError, InterfaceError, connections

from workspaces.database.outages import refuse_if_away
from workspaces.servers import server_registry, shared_settings
from workspaces.servers.meeting_places import MeetingPlace, PlaceUnreachable, meeting_places
from workspaces.servers.models import ServerProcess
from workspaces.servers.server_registry import OwnProcess

log = logging.getLogger(__name__)
LOOK_EVERY_S = 5.0
# In so many looks in a row a mark must be missing: a Valkey that was emptied has none until each server has
# renewed its own.
LOOKS = 3


class MeetingThread(threading.Thread):
    """Renews the marks of this server, and notes which servers have left none where it looks. A thread of its
    own: a Valkey that does not answer must not keep this server from saying that it lives."""

    def __init__(self, own: OwnProcess) -> None:
        super().__init__(name="meetings", daemon=True)
        self._own = own
        self._places = meeting_places()
        self._absences: Counter[tuple[str, str]] = Counter()
        self._closing = threading.Event()
        self._silent_places: set[str] = set()

    def run(self) -> None:
        is_failing = False
        try:
            while not self._closing.is_set():
                try:
                    self.look_once()
                    is_failing = False
                except Exception:
                    # Without this thread its marks would go, and others take it for a stranger.
                    if not is_failing:
                        log.exception("Whether all servers were given the same is not known now")
                    is_failing = True
                self._closing.wait(LOOK_EVERY_S)
        finally:
            connections.close_all()

    def close(self) -> None:
        self._closing.set()

    def look_once(self) -> None:
        """Looks at each place, and stores what was there. While the database is away nothing is known."""
        try:
            refuse_if_away()
            rows = server_registry.compared_processes().exclude(pk=self._own.id)
            marks = {row.pk: set(row.marks or ()) for row in rows}
            reached, absences = [], Counter[tuple[str, str]]()
            for place in self._places:
                others = [server for server, places in marks.items() if place.setting in places]
                if self._visit(place, others, absences):
                    reached.append(place.setting)
            self._absences = absences
            strangers: dict[str, list[str]] = {}
            for (setting, server), looks in sorted(absences.items()):
                if looks >= LOOKS:
                    strangers.setdefault(setting, []).append(server)
            ServerProcess.objects.filter(pk=self._own.id).update(
                settings=shared_settings.own_codes(), marks=reached, strangers=strangers
            )
        except (DatabaseError, InterfaceError) as error:
            connections.close_all()
            log.debug("The other servers cannot be compared with this one now: %s", error)

    def _visit(self, place: MeetingPlace, others: list[str], absences: Counter[tuple[str, str]]) -> bool:
        """Counts who was not there. Returns False if the place could not be reached."""
        try:
            absent = place.visit(self._own.id, others)
        except PlaceUnreachable as error:
            if place.setting not in self._silent_places:
                log.warning("Whether all servers use the same %s is not known now: %s", place.setting, error)
            self._silent_places.add(place.setting)
            return False
        self._silent_places.discard(place.setting)
        for server in absent:
            absences[place.setting, server] = self._absences[place.setting, server] + 1
        return True


def strange_places(rows: list[ServerProcess]) -> dict[str, ServerProcess]:
    """Returns the settings of this process that lead elsewhere than those of the living servers `rows`, each
    with such a server. Takes some seconds if there are any. An unreachable place is none of them."""
    strange: dict[str, ServerProcess] = {}
    for place in meeting_places():
        others = {row.pk: row for row in rows if place.setting in (row.marks or ())}
        absent = set(others)
        for look in range(LOOKS):
            if not absent:
                break
            if look:
                time.sleep(LOOK_EVERY_S)
            try:
                absent &= place.visit("", sorted(absent))
            except PlaceUnreachable as error:
                log.warning("Whether %s is that of the other servers is not known: %s", place.setting, error)
                absent = set()
        # One that has ended meanwhile is no stranger.
        living = set(server_registry.living_processes().values_list("pk", flat=True)) if absent else set()
        for server in sorted(absent & living):
            strange.setdefault(place.setting, others[server])
    return strange
