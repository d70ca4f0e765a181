"""The tab of a run's page with what its script told besides numbers: parameters, tags, the data it read, the
models it logged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from jobs.models import Run, RunTag
from jobs.states import FINAL
from jobs.views.tabs import Tab
from tracking.models import LoggedModel, Param, RunInput
from tracking.notes import TAG as NOTE
from tracking.search.tree import Comparison, Key
from tracking.search.vocabulary import Kind

CLIENTS = "mlflow."
"""Tags that begin so are the client's own words, for programs rather than for people."""
SNIPPET = 'mlflow.log_params({"lr": 0.01, "seed": 1})'
SEARCHABLE = 200
"""A longer value is not looked for whole."""


@dataclass(frozen=True)
class Row:
    """`url`: the runs that were told the same."""

    key: str
    value: str
    url: str


def context(run: Run, _: int, __: HttpRequest) -> dict[str, Any]:
    tags = [*RunTag.objects.filter(run=run).exclude(key=NOTE).order_by("key").values_list("key", "value")]
    return {
        "params": rows(Kind.PARAM, Param.objects.filter(run=run).order_by("key").values_list("key", "value")),
        "told_tags": rows(Kind.TAG, (tag for tag in tags if not tag[0].startswith(CLIENTS))),
        "client_tags": rows(Kind.TAG, (tag for tag in tags if tag[0].startswith(CLIENTS))),
        "inputs": list(RunInput.objects.filter(run=run)),
        "logged": list(LoggedModel.objects.filter(run=run, deleted_at=None).order_by("created_at")),
        "is_final": run.state in FINAL,
        "snippet": SNIPPET,
    }


def rows(kind: Kind, told: Iterable[tuple[str, str]]) -> list[Row]:
    return [Row(key, value, _same(kind, key, value)) for key, value in told]


def _same(kind: Kind, key: str, value: str) -> str:
    if len(value) > SEARCHABLE:
        return ""
    return f"{reverse('runs')}?{urlencode({'filter': str(Comparison(Key(kind, key), '=', value))})}"


def shows(run: Run) -> bool:
    """Once there is something, or while there may come something."""
    if run.state not in FINAL:
        return True
    told = (Param.objects, RunTag.objects, RunInput.objects, LoggedModel.objects)
    return any(kind.filter(run=run).exists() for kind in told)


TAB = Tab("Parameters", context, shows=shows)
