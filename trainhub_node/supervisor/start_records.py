"""The records of the starts of ranks, with the process ids by which this node knows the ranks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from trainhub_launch.json_types import JsonObject
from trainhub_node import proc, records
from trainhub_node.supervisor.gang import Gang

STARTED_FIELDS = {"pid": int, "identity": str, "at": float, "wrapper": int, "wrapper_identity": str}


class StartRecords:
    """The start of each rank of an attempt.

    Wrappers that mpirun starts in the run's own namespaces write the process ids that are valid there. This
    translates them, and stores the result where the run cannot write."""

    def __init__(self, gang: Gang) -> None:
        self._folder = gang.folder
        self._ranks = [process["rank"] for process in gang.processes]
        self._holder = gang.namespaces.holder if gang.namespaces is not None and gang.uses_mpi else 0
        self._translated: dict[int, dict[str, Any]] = {}

    def read(self, number: int) -> dict[str, Any] | None:
        """Returns the record of a rank, None if it has not started. One that cannot be translated, because
        the rank has ended, names no process."""
        if number in self._translated:
            return self._translated[number]
        record = read_record(self._folder.started(number), STARTED_FIELDS)
        if record is None or not self._holder:
            return record
        return {**record, "pid": 0, "identity": "", "wrapper": 0, "wrapper_identity": ""}

    def translate(self) -> None:
        """Translates the records that have been written since the last call."""
        if not self._holder:
            return
        new = {
            number: record
            for number in self._ranks
            if number not in self._translated
            and (record := read_record(self._folder.started(number), STARTED_FIELDS)) is not None
        }
        if not new:
            return
        living = _inner_processes(self._holder)
        for number, record in new.items():
            pid, identity = _outer(living, record.get("pid"), record.get("identity"))
            wrapper, wrapper_identity = _outer(living, record.get("wrapper"), record.get("wrapper_identity"))
            if not wrapper:
                continue
            translated = {**record, "pid": pid, "identity": identity}
            translated |= {"wrapper": wrapper, "wrapper_identity": wrapper_identity}
            self._translated[number] = translated
            records.write(self._folder.supervisor_started(number), translated)


def _inner_processes(holder: int) -> dict[tuple[int, str], int]:
    """Returns (process id inside, start time) -> process id outside, of all processes in the namespaces."""
    own = _process_namespace(holder)
    return {
        (proc.inner_pid(process.pid), str(process.start)): process.pid
        for process in proc.list_processes()
        if _process_namespace(process.pid) == own
    }


def _process_namespace(pid: int) -> int:
    """Returns the number of a process's namespace of processes, 0 if the process has ended."""
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino
    except OSError:
        return 0


def _outer(living: Mapping[tuple[int, str], int], pid: object, identity: object) -> tuple[int, str]:
    """Returns the process id outside and the identity there; 0 and "" for a process that does not live."""
    if not isinstance(pid, int) or not isinstance(identity, str):
        return 0, ""
    outer = living.get((pid, identity.rpartition("/")[2]), 0)
    return outer, (proc.identity(outer) or "") if outer else ""


def read_record(path: str, fields: Mapping[str, type]) -> JsonObject | None:
    """Returns the fields of the record that have the expected type. The run may have written it."""
    try:
        record = records.read(path, max_bytes=65536)
    except records.UnreadableRecord:
        return None
    if not isinstance(record, dict):
        return None
    return {
        name: record[name]
        for name, kind in fields.items()
        if name in record and isinstance(record[name], kind | None)
    }
