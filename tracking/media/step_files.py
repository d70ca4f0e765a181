"""Groups files that show the same thing at different steps: images, sounds, tables, figures and pages.

MLflow's `log_image(image, key=…, step=…)` writes key and step into the file's name. In other paths the step
is the number behind "step", "epoch" or "iteration"."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from tracking.artifacts.file_responses import IMAGES, PAGES, SOUNDS, TABLES

# A document is a table or a figure. Which one, a JSON file tells only by its content.
IMAGE, SOUND, DOCUMENT, PAGE = "image", "sound", "document", "page"
# Of TensorBoard's event files, not of a file per step.
HISTOGRAM = "histogram"
KINDS = {
    **dict.fromkeys(IMAGES, IMAGE),
    **dict.fromkeys(SOUNDS, SOUND),
    **dict.fromkeys((".json", *TABLES), DOCUMENT),
    **dict.fromkeys(PAGES, PAGE),
}
# More steps of a series are thinned out evenly, so that the page stays small.
MAX_STEPS = 500
MAX_SERIES = 200
# MLflow 3 separates by "+" and writes "~" for "/" in keys; MLflow 2 used "%" and "#".
_MLFLOW = re.compile(
    r"images/(?P<key>.+)(?P<mark>[+%])step(?P=mark)(?P<step>-?\d{1,18})(?P=mark)timestamp(?P=mark)"
    r"(?P<id>(?P<at>\d{1,18})(?P=mark)[0-9a-z-]+)(?P<small>(?P=mark)compressed)?\.(?:png|webp)"
)
_SLASHES = str.maketrans("~#", "//")
_NUMBERED = re.compile(r"(?<![a-z])(step|epoch|iteration|iter)([ _=-]?)0*(\d{1,15})(?!\d)", re.IGNORECASE)


@dataclass(frozen=True)
class StepFile:
    """A file at one step. `small_path`: a smaller version of the same image, "" without one. Of two files of
    the same step the one that was logged last counts; `logged_ms`: Unix time in ms, 0 if it is not known."""

    step: int
    path: str
    small_path: str = ""
    logged_ms: int = 0


@dataclass(frozen=True)
class MediaSeries:
    """Files of one key, ordered by step, each step once. `kind`: one of KINDS' values, or HISTOGRAM, whose
    files have no path."""

    key: str
    kind: str
    files: tuple[StepFile, ...]


def group_step_files(paths: Iterable[str]) -> tuple[MediaSeries, ...]:
    """Returns the series among these paths, documents last, each ordered by key. Paths without a step are
    left out."""
    by_series: dict[tuple[str, str], dict[str, StepFile]] = defaultdict(dict)
    for path in paths:
        kind = KINDS.get(PurePosixPath(path).suffix.lower())
        if kind is not None:
            _add(by_series, kind, path)
    # Many series of JSON files must not displace images.
    series = sorted(
        by_series.items(), key=lambda item: (item[0][1] == DOCUMENT, item[0][0].casefold(), item[0])
    )
    return tuple(
        MediaSeries(key, kind, _by_step(files.values())) for (key, kind), files in series[:MAX_SERIES]
    )


def _add(by_series: dict[tuple[str, str], dict[str, StepFile]], kind: str, path: str) -> None:
    logged = _MLFLOW.fullmatch(path)
    if logged is not None:
        # The image and its smaller version have the same time and id.
        files = by_series[logged["key"].translate(_SLASHES), kind]
        file = files.get(logged["id"]) or StepFile(int(logged["step"]), path, logged_ms=int(logged["at"]))
        files[logged["id"]] = replace(file, small_path=path) if logged["small"] else replace(file, path=path)
        return
    # The last number is the step: of "epoch_1/step_20.png" it is 20, and each epoch is a series.
    numbers = list(_NUMBERED.finditer(path))
    # A checkpoint's folder has a step, too, and its JSON files are the model's configuration.
    is_setting = path.lower().endswith(".json") and numbers and numbers[-1].start() < path.rfind("/")
    if numbers and not is_setting:
        number = numbers[-1]
        key = f"{path[: number.start(3)].rstrip('0')}*{path[number.end(3) :]}"
        by_series[key, kind][path] = StepFile(int(number[3]), path)


def _by_step(files: Iterable[StepFile]) -> tuple[StepFile, ...]:
    latest = {file.step: file for file in sorted(files, key=lambda file: (file.step, file.logged_ms))}
    ordered = list(latest.values())
    if len(ordered) <= MAX_STEPS:
        return tuple(ordered)
    last = len(ordered) - 1
    return tuple(ordered[round(index * last / (MAX_STEPS - 1))] for index in range(MAX_STEPS))
