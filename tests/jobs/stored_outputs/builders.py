"""Runs whose outputs lie in a store that is really there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from datastores.changes import create
from datastores.models import Datastore
from jobs.models import OutputFolder, Run, StoredOutput
from jobs.states import RunState
from tests.registry.builders import run_with
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET
from workspaces.access import Principal
from workspaces.secrets import store as secret_store

FILES = {"model.pt": b"weights" * 1000, "plots/loss.txt": b"0.5\n"}


def add_bucket(who: Principal, server: S3Server, name: str = "bucket", **changes: str) -> Datastore:
    """Returns a datastore whose outputs go below `results`."""
    secret_store.put(who, "s3-key", SECRET, secret_store.WORKSPACE)
    fields = {"bucket": BUCKET, "endpoint": server.url, "access_key_id": KEY_ID, "secret": "s3-key"}
    return create(who, name, "s3", {**fields, "path": "results", **changes})


def add_outputs(
    run: Run,
    datastore: Datastore,
    files: Mapping[str, bytes],
    *,
    attempt: int = 1,
    hashes: Mapping[str, str] | None = None,
) -> list[StoredOutput]:
    """Adds rows as a node reports them, without bytes, to a run that is then over. `hashes`: wrong ones, by
    path."""
    run.spec, run.state = {**run.spec, "outputs": {"datastore": datastore.name}}, RunState.COMPLETED
    run.save(update_fields=["spec", "state"])
    path = datastore.path_of(f"run-{run.number}/{attempt}")
    place = f"{datastore.place}/run-{run.number}/{attempt}"
    folder = OutputFolder.objects.create(
        run=run, attempt=attempt, datastore=datastore, path=path, place=place
    )
    return StoredOutput.objects.bulk_create(
        StoredOutput(
            folder=folder,
            path=name,
            key=name,
            size_bytes=len(content),
            digest=(hashes or {}).get(name, hashlib.sha256(content).hexdigest()),
            node_rank=0,
        )
        for name, content in files.items()
    )


def stored_run(who: Principal, server: S3Server, files: Mapping[str, bytes] = FILES) -> tuple[Run, Datastore]:
    """Returns a run with these outputs in a bucket, and the bucket."""
    run, datastore = run_with(workspace=who.workspace), add_bucket(who, server)
    for row in add_outputs(run, datastore, files):
        server.objects[BUCKET][row.full_path] = files[row.path]
    return run, datastore
