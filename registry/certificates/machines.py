"""On which machines, GPUs and software a run's latest attempt ran."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from clusters.models import Gpu
from clusters.node_reports.inventory import interpreters_of
from jobs import environments
from jobs.models import AttemptNode, Run
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import EnvironmentRef


def nodes_of(run: Run) -> list[dict[str, Any]]:
    """Each node with its driver, what it told of its software, and the GPUs that it gave."""
    return [_node(part) for part in _parts(run)]


def environment_of(run: Run) -> dict[str, Any] | None:
    """What was asked for, and what it stood for on the run's first node; None for a run without a spec."""
    told = run.spec.get("environment") if run.spec else None
    if not told:
        return None
    found: dict[str, Any] = {"name": told.get("name", ""), "version": told.get("version", "")}
    part = _parts(run).first()
    interpreters = interpreters_of(part.node) if part else ()
    try:
        resolved = environments.resolve(EnvironmentRef(**found), interpreters)
    except SpecError:
        return found
    found |= {"version": resolved.version, "kind": resolved.kind, "requirements": list(resolved.requirements)}
    interpreter = next(
        (item for item in interpreters if not resolved.python or item.path == resolved.python), None
    )
    if interpreter:
        found["interpreter"] = {"path": interpreter.path, "version": interpreter.version}
    return found


def _parts(run: Run) -> QuerySet[AttemptNode]:
    parts = AttemptNode.objects.select_related("node", "attempt")
    return parts.filter(attempt__run=run, attempt__number=run.attempt).order_by("node_rank")


def _node(part: AttemptNode) -> dict[str, Any]:
    node = part.node
    placed: dict[str, Any] = next(
        (item for item in part.attempt.placement if item.get("name") == node.name), {}
    )
    uuids = list(placed.get("gpus", ()))
    known = {gpu.uuid: gpu for gpu in Gpu.objects.filter(uuid__in=uuids)}
    return {
        "name": node.name,
        "hostname": node.hostname,
        "driver": node.driver,
        "cuda": node.cuda,
        "agent": node.agent_version,
        "versions": {str(name): str(version) for name, version in part.fact.get("versions", {}).items()},
        "gpus": [_gpu(uuid, known.get(uuid)) for uuid in uuids],
    }


def _gpu(uuid: str, gpu: Gpu | None) -> dict[str, Any]:
    if gpu is None:
        return {"uuid": uuid}
    return {"uuid": uuid, "name": gpu.name, "memory_bytes": gpu.memory_bytes}
