"""The GPUs that are unhealthy: a critical alert about the GPU itself fires."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from django.db.models import QuerySet

from clusters.alerts.rules import GPU_RULES, RULES, is_about_run
from clusters.models import Alert
from trainhub_launch.severity import CRITICAL
from workspaces.database.compiled_queries import compiled

# After a run that hangs, the next one finds a healthy GPU.
HEALTH_KINDS = tuple(rule.kind for rule in GPU_RULES if not is_about_run(rule))


class KnownGpu(Protocol):
    @property
    def uuid(self) -> str: ...

    @property
    def parent(self) -> str: ...


def faults_of(gpus: Iterable[KnownGpu]) -> dict[str, str]:
    """Returns the UUIDs of those of the `gpus` that are unhealthy, each with its fault, such as "XID 48".

    A MIG device is unhealthy if the GPU is that it is a part of."""
    by_subject: dict[str, list[str]] = {}
    for subject, kind, facts in _firing():
        by_subject.setdefault(subject, []).append(_cause(kind, facts))
    if not by_subject:
        return {}
    both = {gpu.uuid: [*by_subject.get(gpu.uuid, ()), *by_subject.get(gpu.parent, ())] for gpu in gpus}
    return {uuid: ", ".join(dict.fromkeys(causes)) for uuid, causes in both.items() if causes}


@compiled
def _firing() -> QuerySet[Alert, tuple[str, str, dict[str, object]]]:
    firing = Alert.objects.filter(state="firing", severity=CRITICAL, kind__in=HEALTH_KINDS).order_by("pk")
    return firing.values_list("subject", "kind", "facts")


def _cause(kind: str, facts: dict[str, object]) -> str:
    # Alerts that fired under an earlier version have no cause.
    return str(facts.get("cause") or RULES[kind].title)
