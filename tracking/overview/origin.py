"""Where a run came from: the run it was cloned from, its clones, and the data that its script named."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from jobs.models import Run
from tracking.models import LoggedModel, RunInput

MAX_CLONES = 5
MAX_INPUTS = 6
CONTEXT = "mlflow.data.context"
# Where MLflow's kinds of sources keep their address, in the order of preference.
LOCATION_KEYS = ("uri", "url", "path")


@dataclass(frozen=True)
class Origin:
    """`original`: the run that this one was cloned from, without spec and preview, or None. `compare_url`
    compares the two, and is empty if the original is deleted. `clones`: the first MAX_CLONES of `clone_count`
    clones that are not deleted."""

    original: Run | None
    compare_url: str
    clones: tuple[Run, ...]
    clone_count: int

    @property
    def more_clones(self) -> int:
        return self.clone_count - len(self.clones)


@dataclass(frozen=True)
class InputRow:
    """A data set or model that a run logged as its input. `location`: its URI, URL or path; empty if its
    source names none. `context`: what it was used for, such as "training"; empty if not logged."""

    name: str
    location: str
    context: str


def read_origin(run: Run) -> Origin:
    """Returns the run's origin and its clones."""
    known_runs = Run.objects.filter(workspace=run.workspace_id).defer("preview", "spec")
    original = known_runs.filter(pk=run.cloned_from_id).first() if run.cloned_from_id else None
    clones = known_runs.filter(cloned_from=run, deleted_at=None).order_by("number")
    compare_url = ""
    if original is not None and original.deleted_at is None:
        compare_url = (
            f"{reverse('compare')}?{urlencode({'runs': f'{original.number},{run.number}'}, safe=',')}"
        )
    return Origin(original, compare_url, tuple(clones[:MAX_CLONES]), clones.count())


def read_inputs(run: Run) -> list[InputRow]:
    """Returns at most MAX_INPUTS + 1 inputs of the run, in the order in which they were logged."""
    inputs = list(RunInput.objects.filter(run=run)[: MAX_INPUTS + 1])
    # The name of an input that is a model is the model's id.
    models = dict(
        LoggedModel.objects.filter(pk__in=[item.name for item in inputs], deleted_at=None).values_list(
            "pk", "name"
        )
    )
    return [
        InputRow(models.get(item.name, item.name), _location(item.source), item.tags.get(CONTEXT, ""))
        for item in inputs
    ]


def _location(source: str) -> str:
    """Returns the URI, URL or path in a source, which MLflow's clients write as JSON; other text as it is."""
    try:
        fields = json.loads(source)
    except (ValueError, RecursionError):
        return source
    if not isinstance(fields, dict):
        return source
    texts = (fields.get(key) for key in LOCATION_KEYS)
    return next((text for text in texts if isinstance(text, str) and text), "")
