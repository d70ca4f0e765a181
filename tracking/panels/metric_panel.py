"""Panels that people arrange: charts with an x axis and metrics of their choice, read from JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from tracking.curves.curve_query import MAX_SMOOTHING, parse_axis
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields

MAX_PANELS = 60
MAX_METRICS = 12
MAX_TITLE_LENGTH = 100
MAX_KEY_LENGTH = 250
MAX_WIDTH = 3
_FLAGS = ("log_x", "log_y", "is_pinned")


@dataclass(frozen=True)
class MetricPanel:
    """A chart. `x`: step, time, relative or metrics.NAME. `width`: in columns, 1 to 3. `smoothing`: the
    weight of the moving average, from 0 to below 1. A pinned panel stands before those that are not."""

    metrics: tuple[str, ...]
    title: str = ""
    x: str = "step"
    log_x: bool = False
    log_y: bool = False
    smoothing: float = 0.0
    width: int = 1
    is_pinned: bool = False

    def to_json(self) -> dict[str, object]:
        return asdict(self) | {"metrics": list(self.metrics)}


def read_panels(value: object) -> tuple[MetricPanel, ...]:
    """Returns the panels of a JSON list, pinned ones first. Raises SpecError with the field that is wrong."""
    if not isinstance(value, list):
        raise SpecError("panels", "must be a list of panels")
    if len(value) > MAX_PANELS:
        raise SpecError("panels", f"may hold at most {MAX_PANELS} panels, not {len(value)}; remove some")
    panels = [_read_panel(Fields(item, f"panels[{index}]")) for index, item in enumerate(value)]
    return tuple(sorted(panels, key=lambda panel: not panel.is_pinned))


def panels_json(panels: Iterable[MetricPanel]) -> list[dict[str, object]]:
    return [panel.to_json() for panel in panels]


def _read_panel(fields: Fields) -> MetricPanel:
    flags = {name: _flag(fields, name) for name in _FLAGS}
    panel = MetricPanel(
        metrics=_metrics(fields),
        title=fields.text("title", longest=MAX_TITLE_LENGTH).strip(),
        x=_axis(fields),
        smoothing=_smoothing(fields),
        width=fields.integer("width", 1, least=1, most=MAX_WIDTH),
        **flags,
    )
    fields.finish()
    return panel


def _metrics(fields: Fields) -> tuple[str, ...]:
    value, path = fields.raw("metrics", []), fields.path("metrics")
    if not isinstance(value, list) or not all(isinstance(key, str) for key in value):
        raise SpecError(path, "must be a list of metric names, such as loss")
    # Reads each name with the checks of a text: its length, and characters that cannot be stored.
    items: Mapping[str, object] = {str(index): key for index, key in enumerate(value)}
    names = Fields(items, path)
    keys = tuple(dict.fromkeys(names.text(name, required=True, longest=MAX_KEY_LENGTH) for name in items))
    if not keys:
        raise SpecError(path, "must name at least one metric")
    if len(keys) > MAX_METRICS:
        raise SpecError(path, f"may name at most {MAX_METRICS} metrics, not {len(keys)}: add another panel")
    return keys


def _axis(fields: Fields) -> str:
    text = fields.text("x", "step", longest=MAX_KEY_LENGTH + len("metrics."))
    parse_axis(fields.path("x"), text)
    return text


def _flag(fields: Fields, name: str) -> bool:
    value = fields.raw(name, False)
    if not isinstance(value, bool):
        raise SpecError(fields.path(name), "must be true or false")
    return value


def _smoothing(fields: Fields) -> float:
    value = fields.raw("smoothing", 0.0)
    # `bool` is a subclass of `int`. NaN compares as false.
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_SMOOTHING:
        return float(value)
    raise SpecError(fields.path("smoothing"), f"must be a number from 0 to {MAX_SMOOTHING}")
