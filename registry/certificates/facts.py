"""Facts about the origin of a version's files, as JSON without floats, because a float can be written in
several ways."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from jobs.models import Run, RunTag, Snapshot
from jobs.sources.source_files import UNREADABLE
from registry.certificates.machines import environment_of, node_facts
from tracking.metrics import curve_reader
from tracking.models import LoggedModel, Param, RunInput
from trainhub_launch.json_types import JsonObject, JsonValue
from workspaces.stored_files import blob_cache, blobs

# Of a snapshot whose files are hashed one by one; the SHA-256 of the whole says it for a larger one too.
MAX_HASHED_BYTES = 64 * 1024 * 1024
GIT = {
    "commit": "mlflow.source.git.commit",
    "repository": "mlflow.source.git.repoURL",
    "branch": "mlflow.source.git.branch",
}
CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")
# Readers of JSON that hold all numbers as doubles lose digits of larger whole numbers.
WHOLE = 2**53


def of_run(run: Run) -> dict[str, object]:
    """Returns what is known of the run now, as JSON. For a run that a job's process logged it includes the
    job under `job`, because only the job has machines."""
    job = run.parent if run.parent and run.parent.kind == "job" and run.kind != "job" else None
    return _run_facts(run) | ({"job": _run_facts(job)} if job else {})


def _run_facts(run: Run) -> dict[str, object]:
    tags = _tags(run)
    metrics = curve_reader.metrics_by_run([run.pk])[run.pk]
    return plain_object(
        {
            "id": run.pk,
            "number": run.number,
            "kind": run.kind,
            "name": run.display_name,
            "state": run.state,
            "experiment": run.experiment.name,
            "attempt": run.attempt,
            "submitted_by": run.created_by.get_username() if run.created_by else "",
            "created_at": run.created_at,
            "started_at": run.started_at,
            "finished_at": run.finished_at,
            "spec": _spec(run.spec),
            "tags": tags,
            "snapshot": _snapshot(run),
            "git": _git(tags),
            "environment": environment_of(run),
            "nodes": node_facts(run),
            "inputs": _inputs(run),
            "params": dict(Param.objects.filter(run=run).values_list("key", "value")),
            "metrics": {
                item.key: {
                    # A null `last_value` means NaN.
                    "value": "NaN" if item.last_value is None else item.last_value,
                    "step": item.last_step,
                }
                for item in metrics
            },
        }
    )


def of_logged_model(model: LoggedModel) -> dict[str, object]:
    return plain_object(
        {
            "id": model.pk,
            "name": model.name,
            "type": model.model_type,
            "params": model.params,
            "tags": model.tags,
            "created_at": model.created_at,
            "metrics": model.metrics,
        }
    )


def plain_object(value: Mapping[str, object]) -> dict[str, Any]:
    return {_text(str(name)): plain(item) for name, item in value.items()}


def plain(value: object) -> JsonValue:
    """Returns `value` written with strings, whole numbers, true, false and null alone.

    A float becomes the shortest text that reads back as the same float.
    """
    if isinstance(value, Mapping):
        return plain_object(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return moment(value)
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < WHOLE):
        return value
    return _text(value if isinstance(value, str) else repr(value))


def moment(at: datetime) -> str:
    """Returns the time in UTC with microseconds, such as 2026-01-31T12:00:00.000000Z."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _text(text: str) -> str:
    """Returns `text` with a `?` for each half of a surrogate pair, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def _spec(spec: Mapping[str, Any]) -> dict[str, object]:
    """Returns the submitted spec, with the names of environment variables only: their values may be secret,
    and certificates leave the hub."""
    return {**spec, "environment_variables": sorted(spec.get("environment_variables", {}))} if spec else {}


def _tags(run: Run) -> dict[str, str]:
    """Returns the run's tags. Credentials are removed from the repository's address, which MLflow's clients
    send as git has it."""
    tags = dict(RunTag.objects.filter(run=run).values_list("key", "value"))
    repository = tags.get(GIT["repository"])
    return tags if repository is None else tags | {GIT["repository"]: CREDENTIALS.sub("", repository)}


def _git(tags: Mapping[str, str]) -> dict[str, str] | None:
    if not tags.get(GIT["commit"]):
        return None
    return {word: tags[key] for word, key in GIT.items() if tags.get(key)}


def _inputs(run: Run) -> list[dict[str, object]]:
    inputs = RunInput.objects.filter(run=run).order_by("id")
    return [
        {
            "name": item.name,
            "digest": item.digest,
            "source_type": item.source_type,
            "source": item.source,
            "tags": item.tags,
        }
        for item in inputs
    ]


def _snapshot(run: Run) -> JsonObject | None:
    sha256 = run.spec.get("source", {}).get("id", "") if run.spec else ""
    snapshot = Snapshot.objects.filter(workspace_id=run.workspace_id, sha256=sha256).first()
    if snapshot is None:
        return None
    hashes = _hashes(snapshot)
    files = [
        {"path": entry["path"], "size_bytes": entry["size"]} | hashes.get(entry["path"], {})
        for entry in snapshot.manifest
    ]
    return {"sha256": sha256, "size_bytes": snapshot.size_bytes, "files": files}


def _hashes(snapshot: Snapshot) -> dict[str, dict[str, str]]:
    """Returns path -> {"sha256"} of the snapshot's files; empty if it is too large, missing or damaged."""
    if sum(entry["size"] for entry in snapshot.manifest) > MAX_HASHED_BYTES or not blobs.exists(
        snapshot.sha256
    ):
        return {}
    try:
        with zipfile.ZipFile(blob_cache.local_path(snapshot.sha256)) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            return {name: {"sha256": hashlib.sha256(archive.read(name)).hexdigest()} for name in names}
    except UNREADABLE:
        # A damaged source does not prevent a registration; the certificate then lists its files without
        # hashes.
        return {}
