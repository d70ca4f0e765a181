"""Wheels that nodes of the tests have built, kept between sessions: compiling Horovod takes minutes.

A hub finds a kept wheel only if everything that went into it is the same (`BuiltWheel.build_key`), and has it
built otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.caching import CACHE, alone
from tests.hub import Hub

FOLDER = CACHE / "built-wheels"
LEND = """
import json, pathlib
from environments.models import BuiltWheel
from workspaces.stored_files.blob_writer import BlobWriter
for record in pathlib.Path({folder!r}).glob("*.json"):
    with BlobWriter() as writer:
        writer.write(record.with_suffix(".whl").read_bytes())
        writer.finish(record.stem)
    BuiltWheel.objects.create(workspace=None, **json.loads(record.read_text()))
"""
KEEP = """
import json, pathlib, shutil
from environments.models import BuiltWheel
from workspaces.stored_files import blobs
names = [field.name for field in BuiltWheel._meta.concrete_fields if field.get_internal_type() not in
         ("BigAutoField", "ForeignKey", "DateTimeField")]
for wheel in BuiltWheel.objects.filter(workspace=None):
    record = pathlib.Path({folder!r}) / f"{{wheel.sha256}}.json"
    if not record.exists():
        shutil.copy(blobs.path(wheel.sha256), record.with_suffix(".whl"))
        record.write_text(json.dumps({{name: getattr(wheel, name) for name in names}}))
"""


@contextmanager
def kept_wheels(hub: Hub) -> Iterator[None]:
    """Lends the hub all kept wheels, and keeps those that it has had built at the end."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with alone("built-wheels"):
        hub.manage("shell", "-c", LEND.format(folder=str(FOLDER)))
    yield
    with alone("built-wheels"):
        hub.manage("shell", "-c", KEEP.format(folder=str(FOLDER)))
