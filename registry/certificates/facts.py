"""Where the bytes of a version come from, as values of JSON without floats: those have more than one form."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from jobs.models import Run, RunTag, Snapshot
from registry.certificates.machines import environment_of, nodes_of
from tracking.metrics import curve_reader
from tracking.models import LoggedModel, Param, RunInput
from workspaces.stored_files import blobs

MOST_HASHED_BYTES = 64 * 1024 * 1024
"""Of a snapshot whose files are hashed one by one; the SHA-256 of the whole says it for a larger one too."""
GIT = {
    "commit": "mlflow.source.git.commit",
    "repository": "mlflow.source.git.repoURL",
    "branch": "mlflow.source.git.branch",
}
CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")
WHOLE = 2**53


def of_run(run: Run) -> dict[str, Any]:
    """What is known of the run now; of one that a job's process logged (`parent`) also the job, which had the
    machines."""
    job = run.parent if run.parent and run.parent.kind == "job" and run.kind != "job" else None
    return _known(run) | ({"job": _known(job)} if job else {})


def _known(run: Run) -> dict[str, Any]:
    tags = _tags(run)
    metrics = curve_reader.metrics_by_run([run.pk])[run.pk]
    return plain(
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
            "nodes": nodes_of(run),
            "inputs": _inputs(run),
            "params": dict(Param.objects.filter(run=run).values_list("key", "value")),
            "metrics": {
                item.key: {
                    "value": "NaN" if item.last_value is None else item.last_value,
                    "step": item.last_step,
                }
                for item in metrics
            },
        }
    )


def of_logged_model(model: LoggedModel) -> dict[str, Any]:
    return plain(
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


def plain(value: Any) -> Any:
    """`value` of strings, whole numbers, true, false and null alone: a float as the shortest text that reads
    back as itself."""
    if isinstance(value, Mapping):
        return {_text(str(name)): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return moment(value)
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < WHOLE):
        return value
    return _text(value if isinstance(value, str) else repr(value))


def moment(at: datetime) -> str:
    """As in 2026-01-31T12:00:00.000000Z."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _text(text: str) -> str:
    """Without halves of surrogate pairs, which have no UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """As submitted, but of variables only the names: a certificate travels farther than a run's page."""
    return {**spec, "environment_variables": sorted(spec.get("environment_variables", {}))} if spec else {}


def _tags(run: Run) -> dict[str, str]:
    """MLflow's clients tell the remote as git has it, perhaps with a password, which is not to travel with
    the certificate."""
    tags = dict(RunTag.objects.filter(run=run).values_list("key", "value"))
    repository = tags.get(GIT["repository"])
    return tags if repository is None else tags | {GIT["repository"]: CREDENTIALS.sub("", repository)}


def _git(tags: Mapping[str, str]) -> dict[str, str] | None:
    if not tags.get(GIT["commit"]):
        return None
    return {word: tags[key] for word, key in GIT.items() if tags.get(key)}


def _inputs(run: Run) -> list[dict[str, Any]]:
    found = RunInput.objects.filter(run=run).order_by("id")
    return [
        {
            "name": item.name,
            "digest": item.digest,
            "source_type": item.source_type,
            "source": item.source,
            "tags": item.tags,
        }
        for item in found
    ]


def _snapshot(run: Run) -> dict[str, Any] | None:
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
    """Path -> {"sha256"}; empty where the source is large or no longer here."""
    if sum(entry["size"] for entry in snapshot.manifest) > MOST_HASHED_BYTES or not blobs.exists(
        snapshot.sha256
    ):
        return {}
    try:
        with zipfile.ZipFile(blobs.path(snapshot.sha256)) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            return {name: {"sha256": hashlib.sha256(archive.read(name)).hexdigest()} for name in names}
    except (zipfile.BadZipFile, OSError):
        return {}
