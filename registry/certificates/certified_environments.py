"""The environments that the certificates of models name: a model may outlive the run that made it."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from registry.models import ModelVersion

ENVIRONMENT = "environment"


def certified_environments() -> set[tuple[int, str, str]]:
    """Returns workspace id, name and version of each environment that a certificate names."""
    rows = ModelVersion.objects.exclude(certificate="").values_list("model__workspace_id", "certificate")
    return {
        (workspace, name, version)
        for workspace, certificate in rows.iterator()
        for name, version in _environments(orjson.loads(certificate))
    }


def _environments(value: object) -> Iterator[tuple[str, str]]:
    """Yields what stands under `environment` anywhere: of a run, and of the job that it belongs to."""
    if isinstance(value, list):
        for item in value:
            yield from _environments(item)
    elif isinstance(value, dict):
        environment = value.get(ENVIRONMENT)
        if isinstance(environment, dict):
            yield str(environment.get("name", "")), str(environment.get("version", ""))
        for item in value.values():
            yield from _environments(item)
