"""Stores the images and sounds of event files as files of the run, whose names contain the step."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from django.db.models import Q

from jobs import outputs
from jobs.models import Artifact, Run
from tracking.events.thinning import surplus_steps
from workspaces.stored_files.blob_writer import BlobWriter
from workspaces.stored_files.paths import path_problem

# No names that scripts use: these files must not take the place of their own.
IMAGES, SOUNDS = "tensorboard-images", "tensorboard-sounds"
WAV = ".wav"
# Of more steps, those stay that are spread evenly over all of them.
MAX_STEPS = 100
MAX_SERIES = 200
_NOT_IN_NAMES = re.compile(r"[^\w .=+@-]")
_STEP = re.compile(r"/step_(\d+)\.\w+\Z")


class StepMedia(NamedTuple):
    """An image or a sound of a tag at a step. `number`: its place among those of the same step."""

    key: str
    number: int
    step: int
    suffix: str
    content: bytes

    @property
    def folder(self) -> str:
        parts = [_NOT_IN_NAMES.sub("_", part) for part in self.key.split("/")]
        named = [part if part.strip(". ") else "_" for part in parts]
        top = SOUNDS if self.suffix == WAV else IMAGES
        return "/".join([top, *named, *([str(self.number)] if self.number else [])])

    @property
    def path(self) -> str:
        return f"{self.folder}/step_{self.step}{self.suffix}"


class StoredMedia(NamedTuple):
    path: str
    sha256: str
    size_bytes: int


def write(run: Run, attempt: int, media: Iterable[StepMedia]) -> list[StoredMedia]:
    """Stores the bytes of the media of an attempt, as yet without naming them; of two for the same step the
    later one. Those of further tags beyond MAX_SERIES are left out."""
    latest = {item.path: item for item in media if not path_problem(item.path)}
    if not latest:
        return []
    known = {path.rpartition("/")[0] for path in _paths(run, attempt)}
    new = dict.fromkeys(item.folder for item in latest.values() if item.folder not in known)
    folders = known | set(list(new)[: max(0, MAX_SERIES - len(known))])
    return [_write(item) for item in latest.values() if item.folder in folders]


def add(run: Run, attempt: int, media: Iterable[StoredMedia]) -> None:
    """Names stored media as files of the attempt. Call it in the transaction that moves the offset."""
    folders = set()
    for item in media:
        outputs.put_output(run, attempt, item.path, item.sha256, item.size_bytes)
        folders.add(item.path.rpartition("/")[0])
    for folder in folders:
        _thin_out(run, attempt, folder)


def _write(item: StepMedia) -> StoredMedia:
    with BlobWriter() as writer:
        writer.write(item.content)
        return StoredMedia(item.path, writer.finish(), len(item.content))


def _thin_out(run: Run, attempt: int, folder: str) -> None:
    steps = {
        int(match[1]): path
        for path in _paths(run, attempt, f"{folder}/step_")
        if (match := _STEP.search(path)) and path.rpartition("/")[0] == folder
    }
    paths = [steps[step] for step in surplus_steps(steps, MAX_STEPS)]
    if paths:
        Artifact.objects.filter(run=run, attempt=attempt, path__in=paths).delete()


def _paths(run: Run, attempt: int, prefix: str = "") -> list[str]:
    """Returns the paths of the media that are stored already, those that begin with `prefix`."""
    is_media = Q(path__startswith=f"{IMAGES}/") | Q(path__startswith=f"{SOUNDS}/")
    # Files that a node has uploaded are the script's own.
    rows = Artifact.objects.filter(is_media, run=run, attempt=attempt, node_rank=None)
    return list(rows.filter(path__startswith=prefix).values_list("path", flat=True))
