"""The Parameters tab of a run's page: params, tags, inputs and logged models."""

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
from tracking.search.vocabulary import KeyKind

# Prefix of tags that clients set for programs, not for people.
CLIENT_PREFIX = "mlflow."
SNIPPET = 'mlflow.log_params({"lr": 0.01, "seed": 1})'
# Longer values have no search link.
MAX_SEARCHABLE_LENGTH = 200


@dataclass(frozen=True)
class LoggedPair:
    """A param or tag; `url` lists the runs with the same value."""

    key: str
    value: str
    url: str


def context(run: Run, _: int, __: HttpRequest) -> dict[str, Any]:
    # The Notes tab shows the note.
    tags = [*RunTag.objects.filter(run=run).exclude(key=NOTE).order_by("key").values_list("key", "value")]
    return {
        "params": logged_pairs(
            KeyKind.PARAM, Param.objects.filter(run=run).order_by("key").values_list("key", "value")
        ),
        "user_tags": logged_pairs(KeyKind.TAG, (tag for tag in tags if not tag[0].startswith(CLIENT_PREFIX))),
        "client_tags": logged_pairs(KeyKind.TAG, (tag for tag in tags if tag[0].startswith(CLIENT_PREFIX))),
        "inputs": list(RunInput.objects.filter(run=run)),
        "logged": list(LoggedModel.objects.filter(run=run, deleted_at=None).order_by("created_at")),
        "is_final": run.state in FINAL,
        "snippet": SNIPPET,
    }


def logged_pairs(kind: KeyKind, pairs: Iterable[tuple[str, str]]) -> list[LoggedPair]:
    return [LoggedPair(key, value, _search_url(kind, key, value)) for key, value in pairs]


def _search_url(kind: KeyKind, key: str, value: str) -> str:
    if len(value) > MAX_SEARCHABLE_LENGTH:
        return ""
    return f"{reverse('runs')}?{urlencode({'filter': str(Comparison(Key(kind, key), '=', value))})}"


def has_logged_data(run: Run) -> bool:
    """Returns whether the tab is visible: it has content, or the run may still log some."""
    if run.state not in FINAL:
        return True
    pairs = (Param.objects, RunTag.objects, RunInput.objects, LoggedModel.objects)
    return any(kind.filter(run=run).exists() for kind in pairs)


TAB = Tab("Parameters", context, is_detail=True, shows=has_logged_data)
