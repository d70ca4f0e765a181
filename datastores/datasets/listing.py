"""Lists the files of versions of datasets: the worker's part, which stores the list or why there is none."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from datastores.datasets.file_list import compare, pack_starts
from datastores.datasets.outgoing_proxy import OutgoingProxy
from datastores.models import DatasetVersion, Manifest
from datastores.states import ListingState
from trainhub_launch.data.store_errors import subject
from trainhub_launch.data.stores import SignIn
from workspaces.secrets import uses
from workspaces.secrets.errors import SecretsUnavailable
from workspaces.stored_files import blobs
from workspaces.stored_files.blob_writer import store_file

log = logging.getLogger(__name__)
MAX_AT_ONCE = 2
MAX_ATTEMPTS = 3
# A million files take some two minutes.
MAX_S = 3600.0
# The process says so often how far it is; its worker has died if it has not for longer.
SEEN_S = 2.0
ABANDONED_AFTER = timedelta(seconds=60)
MAX_FAILURE, MAX_ERROR_BYTES = 2000, 16384
OWN_FAULT = "The hub itself failed at this version; an operator finds the reason in its log."

_slots = threading.BoundedSemaphore(MAX_AT_ONCE)


class ListingFailed(Exception):
    """There is no list; the message is a sentence for whoever asked for it."""


class VersionGone(Exception):
    """The dataset was deleted meanwhile."""


def list_version(version_id: int) -> None:
    """Lists the version, unless that is done or in progress, and then those that wait meanwhile. Does
    nothing if this process lists enough others: one of those threads takes it next."""
    if not _slots.acquire(blocking=False):
        return
    try:
        _take_and_list(version_id)
        while (waiting := _next_due()) is not None:
            _take_and_list(waiting)
    finally:
        _slots.release()


def list_missed() -> None:
    """Lists versions whose message was lost, or whose worker has died."""
    waiting = _next_due()
    if waiting is not None:
        list_version(waiting)


def _next_due() -> int | None:
    due = DatasetVersion.objects.filter(_is_due(), state=ListingState.LISTING)
    return due.order_by("created_at").values_list("pk", flat=True).first()


def _is_due() -> Q:
    return Q(seen_at=None) | Q(seen_at__lt=timezone.now() - ABANDONED_AFTER)


def _take_and_list(version_id: int) -> None:
    now = timezone.now()
    # Of two workers, only the one that changes the row lists the version.
    waiting = DatasetVersion.objects.filter(_is_due(), pk=version_id, state=ListingState.LISTING)
    if not waiting.update(begun_at=now, seen_at=now, attempts=F("attempts") + 1):
        return
    version = DatasetVersion.objects.select_related(
        "dataset__workspace", "dataset__datastore", "created_by"
    ).get(pk=version_id)
    try:
        _list(version)
    except VersionGone:
        return
    except ListingFailed as error:
        _fail(version, str(error))
    except Exception:
        log.exception("Listing version %d of a dataset failed", version_id)
        _fail(version, OWN_FAULT)


def _fail(version: DatasetVersion, sentence: str) -> None:
    DatasetVersion.objects.filter(pk=version.pk, state=ListingState.LISTING).update(
        state=ListingState.FAILED, failure=sentence[:MAX_FAILURE], ended_at=timezone.now()
    )


def _list(version: DatasetVersion) -> None:
    if version.attempts > MAX_ATTEMPTS:
        raise ListingFailed("The hub was interrupted each time it listed the files. Refresh the dataset.")
    secret = _secret(version)
    output = blobs.part_path()
    try:
        with OutgoingProxy() as proxy:
            done = _Process(version, secret, output, proxy).run()
        _store(version, done, output)
    finally:
        output.unlink(missing_ok=True)


def _secret(version: DatasetVersion) -> str:
    """Returns the value with which the store is read, "" without one."""
    dataset = version.dataset
    datastore = dataset.datastore
    if datastore.store.sign_in != SignIn.SECRET:
        return ""
    name, subject_of_use = datastore.secret, f"{dataset.name} {version.number}"
    try:
        values = uses.take(
            dataset.workspace, None, [name], uses.DATASET, subject_of_use, actor=version.created_by
        )
    except SecretsUnavailable as error:
        raise ListingFailed(f"{error.message[:1].upper()}{error.message[1:]}.") from error
    return values[name]


def _store(version: DatasetVersion, done: Mapping[str, Any], output: Path) -> None:
    size = output.stat().st_size
    starts = pack_starts(done["starts"])
    manifest = Manifest(version=version, sha256=store_file(output), size_bytes=size, starts=starts)
    before = version.dataset.versions.filter(state=ListingState.READY, number__lt=version.number)
    earlier = before.select_related("manifest").order_by("-number").first()
    differences = compare(earlier, manifest).to_json() if earlier is not None else {}
    with transaction.atomic():
        ready = DatasetVersion.objects.filter(pk=version.pk, state=ListingState.LISTING).update(
            state=ListingState.READY,
            files=done["files"],
            bytes=done["bytes"],
            is_file=done["is_file"],
            differences=differences,
            ended_at=timezone.now(),
        )
        if ready:
            manifest.save()


class _Process:
    """The process that lists the files. Its lines are read by a thread, so that one that says nothing more is
    noticed."""

    def __init__(self, version: DatasetVersion, secret: str, output: Path, proxy: OutgoingProxy) -> None:
        self._version = version
        self._store = version.dataset.datastore.store
        self._request = {
            "store": self._store.to_json(),
            "path": version.full_path,
            "secret": secret,
            "proxy": proxy.url,
            "output": str(output),
        }
        self._proxy = proxy
        self._result: dict[str, Any] = {}
        self._counts = (0, 0)

    def run(self) -> dict[str, Any]:
        """Returns what the process says at its end. Raises ListingFailed and VersionGone."""
        request, errors = os.memfd_create("request"), os.memfd_create("errors")
        try:
            # In memory: it has the secret.
            os.write(request, json.dumps(self._request).encode())
            os.lseek(request, 0, os.SEEK_SET)
            with subprocess.Popen(
                [sys.executable, "-m", "datastores.datasets.listing_process"],
                cwd=settings.BASE_DIR,
                env={"PATH": "/usr/bin:/bin"},
                stdin=request,
                stdout=subprocess.PIPE,
                stderr=errors,
            ) as process:
                reader = threading.Thread(target=self._read, args=(process,), daemon=True)
                reader.start()
                try:
                    self._follow(reader)
                finally:
                    process.kill()
                    reader.join()
            return self._done(os.pread(errors, MAX_ERROR_BYTES, 0).decode(errors="replace"))
        finally:
            os.close(request)
            os.close(errors)

    def _follow(self, reader: threading.Thread) -> None:
        """Returns once the process says nothing more."""
        deadline = time.monotonic() + MAX_S
        while reader.is_alive():
            reader.join(SEEN_S)
            self._tell()
            if time.monotonic() > deadline:
                raise ListingFailed(
                    f"Its files were not listed within {MAX_S / 3600:.0f} h: name a folder below it, or pack "
                    "them into archives."
                )

    def _done(self, errors: str) -> dict[str, Any]:
        if "done" in self._result:
            return dict(self._result["done"])
        if self._proxy.refused_host:
            raise ListingFailed(
                f"{subject(self._store)} is at an address that the hub does not connect to "
                f"({self._proxy.refused_host}). Name it by an address of the network."
            )
        if "error" in self._result:
            raise ListingFailed(self._result["error"])
        log.error("The process that lists files ended without a result: %s", errors)
        raise ListingFailed(OWN_FAULT)

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        for line in process.stdout or ():
            facts = json.loads(line)
            if "files" in facts:
                self._counts = (facts["files"], facts["bytes"])
            else:
                self._result = facts

    def _tell(self) -> None:
        files, size = self._counts
        rows = DatasetVersion.objects.filter(pk=self._version.pk, state=ListingState.LISTING)
        if not rows.update(seen_at=timezone.now(), files=files, bytes=size):
            raise VersionGone
