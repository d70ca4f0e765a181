"""The machines, GPUs and software of a run's latest attempt."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from clusters.models import Gpu
from clusters.node_reports.inventory import interpreters_of
from environments import catalog
from jobs.models import AttemptNode, Run
from trainhub_launch.errors import SpecError
from trainhub_launch.json_types import JsonObject
from trainhub_launch.spec import EnvironmentRef


def node_facts(run: Run) -> list[dict[str, object]]:
    """Returns each node of the latest attempt with its driver, the versions of its software, and the GPUs
    that the run used."""
    return [_node(part) for part in _parts(run)]


def environment_of(run: Run) -> dict[str, object] | None:
    """Returns the environment that the spec requests and its packages and interpreter on the run's first
    node; None for a run without a spec."""
    spec = run.spec.get("environment") if run.spec else None
    if not spec:
        return None
    facts: dict[str, Any] = {"name": spec.get("name", ""), "version": spec.get("version", "")}
    part = _parts(run).first()
    interpreters = interpreters_of(part.node) if part else ()
    try:
        resolved = catalog.resolve(EnvironmentRef(**facts), interpreters, run.workspace)
    except SpecError:
        # The environment is no longer known here; the certificate then has only its name and version.
        return facts
    facts |= {"version": resolved.version, "kind": resolved.kind, "requirements": list(resolved.requirements)}
    own = interpreters if resolved.kind != "conda" else ()  # which brings its own
    interpreter = next((item for item in own if not resolved.python or item.path == resolved.python), None)
    if interpreter:
        facts["interpreter"] = {"path": interpreter.path, "version": interpreter.version}
    return facts


def _parts(run: Run) -> QuerySet[AttemptNode]:
    parts = AttemptNode.objects.select_related("node", "attempt")
    return parts.filter(attempt__run=run, attempt__number=run.attempt).order_by("node_rank")


def _node(part: AttemptNode) -> dict[str, object]:
    node = part.node
    placed: dict[str, Any] = next(
        (item for item in part.attempt.placement if item.get("name") == node.name), {}
    )
    uuids = list(placed.get("gpus", ()))
    gpus_by_uuid = {gpu.uuid: gpu for gpu in Gpu.objects.filter(uuid__in=uuids)}
    return {
        "name": node.name,
        "hostname": node.hostname,
        "driver": node.driver,
        "cuda": node.cuda,
        "agent": node.agent_version,
        "versions": {str(name): str(version) for name, version in part.fact.get("versions", {}).items()},
        "gpus": [_gpu(uuid, gpus_by_uuid.get(uuid)) for uuid in uuids],
    }


def _gpu(uuid: str, gpu: Gpu | None) -> JsonObject:
    # The placement still names a GPU whose row is gone.
    if gpu is None:
        return {"uuid": uuid}
    return {"uuid": uuid, "name": gpu.name, "memory_bytes": gpu.memory_bytes}
