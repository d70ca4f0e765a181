"""Reads the TensorBoard event files of runs into their metrics, histograms, images and sounds while the files
grow.

The read offset changes in the transaction that stores the data: after a crash nothing is missing or stored
twice, and only one of two workers stores a piece.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from django.db import DataError, transaction
from django.db.models import QuerySet
from django.utils.module_loading import import_string

from jobs.attempts import attempt_warnings
from jobs.logs import log_store
from jobs.models import Artifact, Attempt, AttemptNode, Member, Run
from tracking import params
from tracking.artifacts import file_hints
from tracking.events import histogram_store, media_store, records, writers
from tracking.events.records import DamagedEvents
from tracking.events.writers import Ranks
from tracking.metrics.point_writer import append
from tracking.models import EventFile, Param
from trainhub_launch.errors import SpecError
from trainhub_launch.eventfiles import MARK
from workspaces.database.compiled_queries import compiled
from workspaces.stored_files import blob_cache

if TYPE_CHECKING:
    from tracking.events.summaries import EventData

log = logging.getLogger(__name__)
# A piece, of about 20,000 numbers, is held in memory and stored in one transaction.
PIECE_BYTES = 2**20
# Pieces that are read from one file before the next file has its turn.
MAX_PIECES_PER_TURN = 16
OUTPUTS_PREFIX, LOGS_PREFIX = "outputs/", "logs/"


def read_attempt(attempt: Attempt, *, is_over: bool) -> bool:
    """Reads the new data of all event files of the attempt; returns False if there is more to read.

    `is_over` says that its nodes will send no more data.
    """
    paths = _file_paths(attempt, is_over=is_over)
    if not paths:
        return True
    rows = _event_files(attempt, paths)
    file_names = [writers.parse_name(row.name) for row in rows]
    unread = [
        (row, file_name)
        for row, file_name in zip(rows, file_names, strict=True)
        if row.name in paths
        and not (row.is_whole or row.error)
        and (is_over or _size(paths[row.name]) > row.read_bytes)
    ]
    ranks = _ranks(attempt) if unread else {}
    at_end = [
        _read_file(attempt, row, paths[row.name], writers.tag_prefix(file_name, file_names, ranks), is_over)
        for row, file_name in unread
    ]
    return all(at_end)


def _file_paths(attempt: Attempt, *, is_over: bool) -> dict[str, Path]:
    """Returns the path of each event file's bytes. Files that nodes did not stream are among the outputs at
    the end."""
    streamed = log_store.event_file_sizes(attempt.run_id, attempt.number)
    paths = {name: log_store.path(attempt.run_id, attempt.number, name) for name in streamed}
    if is_over:
        files = {name.rpartition("/")[2] for name in paths}
        for row in _event_artifacts(attempt.run_id, attempt.number):
            # A file that was streamed is in the outputs, too; its bytes must not be read twice.
            file = row.path.rpartition("/")[2]
            if MARK in file and file not in files:
                files.add(file)
                paths[row.path if row.path.startswith(LOGS_PREFIX) else OUTPUTS_PREFIX + row.path] = (
                    blob_cache.local_path(row.sha256)
                )
    return {name: path for name, path in paths.items() if not writers.parse_name(name).is_temporary}


@compiled
def _event_artifacts(run_id: str, attempt: int) -> QuerySet[Artifact]:
    return Artifact.objects.filter(run_id=run_id, attempt=attempt, path__contains=MARK)


def _event_files(attempt: Attempt, names: Iterable[str]) -> list[EventFile]:
    """Returns a row for every file of the attempt, in the order of discovery; files that are discovered
    together are sorted by age."""
    of_attempt = EventFile.objects.filter(run_id=attempt.run_id, attempt=attempt.number).order_by("pk")
    existing = list(of_attempt)
    new = set(names) - {row.name for row in existing}
    if not new:
        return existing
    for file_name in sorted(map(writers.parse_name, new), key=lambda item: item.age):
        EventFile.objects.get_or_create(run_id=attempt.run_id, attempt=attempt.number, name=file_name.name)
    return list(of_attempt.all())


def _ranks(attempt: Attempt) -> Ranks:
    node_ranks = dict(AttemptNode.objects.filter(attempt=attempt).values_list("node_id", "node_rank"))
    members = Member.objects.filter(attempt=attempt, pid__isnull=False).values_list("node_id", "pid", "rank")
    return {
        (node_ranks[node], pid): rank for node, pid, rank in members if node in node_ranks and pid is not None
    }


def _read_file(attempt: Attempt, row: EventFile, path: Path, prefix: str, is_over: bool) -> bool:
    """Reads one file to its end or until its turn is over; returns whether it is at its end."""
    # TensorBoard and its messages take 60 ms and 20 MiB, which a worker without event files does without.
    parse_records = import_string("tracking.events.summaries.parse_records")
    for _ in range(MAX_PIECES_PER_TURN):
        piece = _piece(path, row.read_bytes)
        try:
            complete, length = records.complete_records(piece)
            if not complete:
                # Records longer than a piece are graphs and large images or sounds, which are not read.
                length = records.first_record_length(piece)
                if length <= len(piece) or _size(path) < row.read_bytes + length:
                    _mark_end(row, is_over=is_over)
                    return True
            if not _store(attempt, row, parse_records(complete, prefix), length):
                return False  # another worker has read this piece
        except (DamagedEvents, DataError):
            _give_up(
                attempt,
                row,
                f"{row.name} cannot be read from byte {row.read_bytes} on: "
                "it is damaged or not an event file.",
            )
            return True
        except SpecError as error:
            _give_up(attempt, row, f"{row.name} is not read from byte {row.read_bytes} on: {error.message}.")
            return True
    return False


def _mark_end(row: EventFile, *, is_over: bool) -> None:
    """Marks the file as completely read if the attempt is over; an incomplete last record is ignored."""
    if is_over:
        EventFile.objects.filter(pk=row.pk).update(is_whole=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _piece(path: Path, offset: int) -> bytes:
    try:
        with path.open("rb") as file:
            return os.pread(file.fileno(), PIECE_BYTES, offset)
    except FileNotFoundError:
        return b""


def _store(attempt: Attempt, row: EventFile, data: EventData, length: int) -> bool:
    """Stores the data of a piece and the new offset in one transaction; returns False if another worker has
    done it. Raises SpecError if a limit is exceeded."""
    if len(data.params) > params.MAX_PARAMS_PER_RUN:
        # More than a query can name and more than a run may have.
        raise SpecError(
            "params",
            f"a run may have {params.MAX_PARAMS_PER_RUN} params, and this file has more; log a file instead",
        )
    run = attempt.run
    end = row.read_bytes + length
    # Before the transaction, which must not wait for the disk.
    media = media_store.write(run, attempt.number, data.media)
    with transaction.atomic():
        # Compare-and-set on the offset: points and offset change together or not at all, so that no point is
        # lost or stored twice.
        if not EventFile.objects.filter(pk=row.pk, read_bytes=row.read_bytes).update(read_bytes=end):
            return False
        params.put(run.pk, run.experiment_id, _new_params(run, data.params))
        append(run.pk, run.experiment_id, data.points)
        histogram_store.append(run, attempt.number, data.histograms)
        media_store.add(run, attempt.number, media)
        if data.histograms or media:
            file_hints.files_changed(run.pk)
    row.read_bytes = end
    return True


def _new_params(run: Run, values: dict[str, str]) -> dict[str, str]:
    """Returns the params that the run does not have yet: the first value of a param stays."""
    existing = (
        set(Param.objects.filter(run=run, key__in=values).values_list("key", flat=True)) if values else set()
    )
    return {key: value for key, value in values.items() if key not in existing}


def _give_up(attempt: Attempt, row: EventFile, sentence: str) -> None:
    log.info("Run %s: %s", attempt.run_id, sentence)
    with transaction.atomic():
        Run.objects.select_for_update().filter(pk=attempt.run_id).first()
        # The same lock as a node's report takes, which may add warnings to the attempt at this moment.
        locked = Attempt.objects.get(pk=attempt.pk)
        if EventFile.objects.filter(pk=row.pk, error="").update(error=sentence[:300]):
            attempt_warnings.add(locked, [sentence], actor="hub")
