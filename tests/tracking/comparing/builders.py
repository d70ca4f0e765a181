"""Runs that differ in what a test says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jobs import tags as tagging
from jobs.models import Run
from tests.tracking.builders import logged_run
from tests.tracking.curves.builders import log
from tracking import params as params_of_runs


def trained(
    name: str = "night",
    *,
    params: Mapping[str, str] | None = None,
    curves: Mapping[str, Iterable[float]] | None = None,
    tags: Mapping[str, str] | None = None,
    **fields: Any,
) -> Run:
    run = logged_run(name, **fields)
    params_of_runs.put(run.pk, run.experiment_id, params or {})
    tagging.set_tags(run, tags or {})
    if curves:
        log(run, **curves)
    return run
