"""A folder with copies of the event files of one run, which grow with them.

Copies, because TensorBoard runs under an account that may read nothing of the hub."""

from __future__ import annotations

import shutil
from pathlib import Path

from django.db.models import QuerySet

from jobs import outputs
from jobs.logs import log_store
from jobs.models import Artifact, Run
from tracking.models import EventFile
from trainhub_launch.eventfiles import MARK, is_event_file
from workspaces.stored_files import blob_cache

MAX_BYTES = 4 * 2**30
MAX_FILES = 1_000
_CHUNK_BYTES = 2**20


class TooManyEvents(ValueError):
    """The event files of the run take more space than one TensorBoard gets."""


def has_event_files(run: Run) -> bool:
    """Returns whether the run has event files, stored ones or such that its nodes are sending."""
    return EventFile.objects.filter(run=run).exists() or _stored(run).exists()


class EventFolder:
    """`path`: an existing folder, in which each event file has the place that it has in the run."""

    def __init__(self, run: Run, path: Path) -> None:
        self._run = run
        self._path = path
        self._copied_bytes: dict[str, int] = {}

    def update(self) -> None:
        """Copies what has been added since the last call. Raises TooManyEvents."""
        sources = self._sources()
        if len(sources) > MAX_FILES:
            raise TooManyEvents(f"it has {len(sources)} event files, and at most {MAX_FILES} are opened")
        sizes = {name: source.stat().st_size for name, source in sources.items() if source.exists()}
        if sum(sizes.values()) > MAX_BYTES:
            raise TooManyEvents(
                f"its event files take {sum(sizes.values()) / 2**30:.1f} GiB, and at most "
                f"{MAX_BYTES // 2**30} GiB are opened"
            )
        for name, size in sizes.items():
            if size > self._copied_bytes.get(name, 0):
                self._append(name, sources[name])

    def _sources(self) -> dict[str, Path]:
        """Returns where the bytes of each event file are. Its name is its path in the run."""
        number = self._run.attempt
        sent = {
            name: log_store.path(self._run.pk, number, name)
            for name in log_store.event_file_sizes(self._run.pk, number)
        }
        # A file that nodes have sent is among the outputs, too, when the run has ended.
        files = {name.rpartition("/")[2] for name in sent}
        stored = {
            row.path: blob_cache.local_path(row.sha256)
            for row in _stored(self._run)[: MAX_FILES + 1]
            if is_event_file(row.path) and row.path.rpartition("/")[2] not in files
        }
        return {**sent, **stored}

    def _append(self, name: str, source: Path) -> None:
        target = self._path / name
        if not target.resolve().is_relative_to(self._path.resolve()):
            raise ValueError(f"{name} leads out of the folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
        with source.open("rb") as reading, target.open("r+b") as writing:
            # From where the last copy ended that did not fail in between, as on a full disk.
            for file in (reading, writing):
                file.seek(self._copied_bytes.get(name, 0))
            shutil.copyfileobj(reading, writing, _CHUNK_BYTES)
        # Everybody may read: the folders above are closed to all but the account of TensorBoard.
        target.chmod(0o644)
        for folder in target.parents:
            if folder == self._path:
                break
            folder.chmod(0o755)
        self._copied_bytes[name] = target.stat().st_size


def _stored(run: Run) -> QuerySet[Artifact]:
    return outputs.latest(run).filter(path__contains=MARK)
