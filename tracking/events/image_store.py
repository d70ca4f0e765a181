"""Stores the images of event files as files of the run, whose names contain the step."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from jobs import outputs
from jobs.models import Artifact, Run
from tracking.events.thinning import surplus_steps
from workspaces.stored_files.blob_writer import BlobWriter
from workspaces.stored_files.paths import path_problem

# No name that scripts use: these files must not take the place of their own.
FOLDER = "tensorboard-images"
# Of more steps, those stay that are spread evenly over all of them.
MAX_STEPS = 100
MAX_SERIES = 200
_NOT_IN_NAMES = re.compile(r"[^\w .=+@-]")
_STEP = re.compile(r"/step_(\d+)\.\w+\Z")


class StepImage(NamedTuple):
    """An image of a tag at a step. `number`: its place among those of the same step."""

    key: str
    number: int
    step: int
    suffix: str
    content: bytes

    @property
    def folder(self) -> str:
        parts = [_NOT_IN_NAMES.sub("_", part) for part in self.key.split("/")]
        named = [part if part.strip(". ") else "_" for part in parts]
        return "/".join([FOLDER, *named, *([str(self.number)] if self.number else [])])

    @property
    def path(self) -> str:
        return f"{self.folder}/step_{self.step}{self.suffix}"


class StoredImage(NamedTuple):
    path: str
    sha256: str
    size_bytes: int


def write(run: Run, attempt: int, images: Iterable[StepImage]) -> list[StoredImage]:
    """Stores the bytes of the images of an attempt, as yet without naming them; of two for the same step the
    later one. Images of further tags beyond MAX_SERIES are left out."""
    latest = {image.path: image for image in images if not path_problem(image.path)}
    if not latest:
        return []
    known = {path.rpartition("/")[0] for path in _paths(run, attempt)}
    new = dict.fromkeys(image.folder for image in latest.values() if image.folder not in known)
    folders = known | set(list(new)[: max(0, MAX_SERIES - len(known))])
    return [_write(image) for image in latest.values() if image.folder in folders]


def add(run: Run, attempt: int, images: Iterable[StoredImage]) -> None:
    """Names stored images as files of the attempt. Call it in the transaction that moves the offset."""
    folders = set()
    for image in images:
        outputs.put_output(run, attempt, image.path, image.sha256, image.size_bytes)
        folders.add(image.path.rpartition("/")[0])
    for folder in folders:
        _thin_out(run, attempt, folder)


def _write(image: StepImage) -> StoredImage:
    with BlobWriter() as writer:
        writer.write(image.content)
        return StoredImage(image.path, writer.finish(), len(image.content))


def _thin_out(run: Run, attempt: int, folder: str) -> None:
    steps = {
        int(match[1]): path
        for path in _paths(run, attempt, f"{folder}/step_")
        if (match := _STEP.search(path)) and path.rpartition("/")[0] == folder
    }
    paths = [steps[step] for step in surplus_steps(steps, MAX_STEPS)]
    if paths:
        Artifact.objects.filter(run=run, attempt=attempt, path__in=paths).delete()


def _paths(run: Run, attempt: int, prefix: str = f"{FOLDER}/") -> list[str]:
    # Files that a node has uploaded are the script's own.
    rows = Artifact.objects.filter(run=run, attempt=attempt, path__startswith=prefix, node_rank=None)
    return list(rows.values_list("path", flat=True))
