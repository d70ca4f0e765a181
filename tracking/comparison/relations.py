"""Params and metrics as axes, for the plots in static/js/compare/relations.js."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from jobs.models import Run
from tracking.comparison.figures import FigureRow
from tracking.comparison.selected_runs import ComparedRun
from tracking.comparison.tables import ComparisonTable
from tracking.params import number_of

MAX_AXES = 300
DEFAULT_PARAM_COUNT, USUAL_METRICS = 6, 2


def plot_data(
    runs: Sequence[ComparedRun], params: ComparisonTable, figures: Sequence[FigureRow]
) -> dict[str, object]:
    """Returns {runs: [{id, number, name}], axes: [{id, label, kind, values}], usual: [ids]}; a value is a
    number, a text or null."""
    axes = [
        *(
            _param_axis(row.name, [cell.text for cell in row.cells])
            # Params that differ come first, so that MAX_AXES cuts off those with equal values.
            for row in sorted(params.rows, key=lambda row: not row.differs)
        ),
        *(_metric_axis(row) for row in figures),
    ][:MAX_AXES]
    _tell_apart(axes)
    different = [
        axis["id"] for axis in axes if axis["kind"] == "param" and len(set(map(str, axis["values"]))) > 1
    ]
    metrics = sorted((axis["id"] for axis in axes if axis["kind"] == "metric"), key=_metric_rank)
    return {
        "runs": [{"id": item.run.pk, "number": item.run.number, "name": item.name} for item in runs],
        "axes": axes,
        "usual": [*different[:DEFAULT_PARAM_COUNT], *metrics[:USUAL_METRICS]],
    }


def group_options(runs: Sequence[Run], params: ComparisonTable, chosen: str) -> list[dict[str, object]]:
    """Returns the params that the runs can be grouped by: those with a value that several runs share."""
    options = [
        {"name": f"params.{row.name}", "word": row.name, "is_chosen": chosen == f"params.{row.name}"}
        for row in params.rows
        if len({cell.whole for cell in row.cells if cell.text is not None}) < len(runs)
    ]
    if chosen and not any(option["is_chosen"] for option in options):
        # The chosen key stays in the list even if it is a tag, or a param whose values all differ.
        options.append({"name": chosen, "word": chosen.partition(".")[2], "is_chosen": True})
    return options[:MAX_AXES]


def group_subjects(by: str, groups: Mapping[str, Sequence[Run]]) -> list[dict[str, str]]:
    name = by.partition(".")[2]
    return [
        {
            "id": f"group:{value}",
            "label": f"{name} = {value}" if value else f"without {name}",
            "title": f"Run{'s' if len(runs) > 1 else ''} {', '.join(str(run.number) for run in runs)}",
        }
        for value, runs in groups.items()
    ]


def _param_axis(name: str, texts: Sequence[str | None]) -> dict[str, Any]:
    numbers = [None if text is None else number_of(text) for text in texts]
    is_numeric = all(
        number is not None for number, text in zip(numbers, texts, strict=True) if text is not None
    )
    return {
        "id": f"params.{name}",
        "label": name,
        "kind": "param",
        "values": numbers if is_numeric else list(texts),
    }


def _metric_axis(row: FigureRow) -> dict[str, Any]:
    values = [
        figure.value if figure.value is not None and math.isfinite(figure.value) else None
        for figure in row.last
    ]
    return {"id": f"metrics.{row.key}", "label": row.key, "kind": "metric", "values": values}


def _tell_apart(axes: Sequence[dict[str, Any]]) -> None:
    """Adds the kind to the labels of a param and a metric of one name."""
    counts = Counter(axis["label"] for axis in axes)
    for axis in axes:
        if counts[axis["label"]] > 1:
            axis["label"] = f"{axis['label']} ({axis['kind']})"


def _metric_rank(name: str) -> tuple[int, str]:
    """Sorts metrics of validation data first and system metrics last."""
    key = name.removeprefix("metrics.")
    prefixes = ("eval", "val", "test", "valid", "validation")
    return (0 if key.startswith(prefixes) else 2 if key.startswith("system/") else 1, key)
