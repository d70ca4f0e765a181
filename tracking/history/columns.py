"""The columns of a run table: keys of the filter's grammar, each with what it is called and how it is
ordered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracking.history.table_query import Question
from tracking.models import Metric
from tracking.search import FilterError
from tracking.search.parser import parse_key, parse_order
from tracking.search.tree import Key, OrderBy
from tracking.search.vocabulary import Kind

ATTRIBUTES: dict[str, str] = {
    "number": "Run",
    "experiment": "Experiment",
    "framework": "Framework",
    "cluster": "Cluster",
    "environment": "Environment",
    "duration": "Duration",
    "gpu_hours": "GPU-hours",
    "submitted": "Started",
    "end_time": "Ended",
    "user_id": "By",
    "kind": "Kind",
    "attempt": "Attempt",
    "priority": "Priority",
    "run_id": "Id",
}
"""Those that can be shown, as they are called."""
USUAL = ("number", "experiment", "framework", "cluster", "duration", "submitted", "user_id")
SELDOM = frozenset({"framework", "cluster", "user_id"})
"""Left out of the usual columns where the window is not wide."""
NUMBERS = frozenset({"number", "duration", "gpu_hours", "attempt", "priority"})
USUAL_METRICS = 2
NO_METRICS = ("epoch", "step", "global_step", "time", "lr", "learning_rate")
"""What nearly every script logs, and nobody compares runs by."""
VALIDATION = ("val", "eval", "test", "dev")
TELLING = (
    "loss",
    "acc",
    "f1",
    "auc",
    "error",
    "score",
    "bleu",
    "rouge",
    "perplexity",
    "reward",
    "rmse",
    "mae",
    "mse",
    "iou",
)


@dataclass(frozen=True)
class Column:
    """`text` is how addresses spell it. `is_main`: shown on a phone too; `is_seldom`: in wide windows
    alone."""

    key: Key
    text: str
    is_main: bool = False
    is_seldom: bool = False

    @property
    def label(self) -> str:
        return (
            ATTRIBUTES.get(self.key.name, self.key.name) if self.key.kind is Kind.ATTRIBUTE else self.key.name
        )

    @property
    def part(self) -> str:
        """Beside the label: `min` or `max`."""
        return "" if self.key.part == "last" else self.key.part

    @property
    def is_number(self) -> bool:
        return self.key.kind is Kind.METRIC or (self.key.kind is Kind.ATTRIBUTE and self.key.name in NUMBERS)

    @property
    def classes(self) -> str:
        width = "" if self.is_main else "th-roomy-only" if self.is_seldom else "th-wide-only"
        return f"{'th-num' if self.is_number else ''} {width}".strip()


@dataclass(frozen=True)
class Head:
    """`order` of the rows by this column: ascending, descending or none; `address` changes it."""

    column: Column
    order: str
    address: str


def chosen(question: Question) -> list[Column]:
    """Those that the address names; raises FilterError."""
    return _marked([parse_key(text) for text in question.columns])


def usual(runs: Sequence[str]) -> list[Column]:
    """For who has not chosen: what most of these runs log, and what one wants to know of every run."""
    counted = Counter(Metric.objects.filter(run_id__in=runs).values_list("key", flat=True))
    ranked = sorted(counted, key=lambda key: (*_interest(key), -counted[key], key))
    metrics = [Key(Kind.METRIC, key) for key in ranked[:USUAL_METRICS]]
    keys = [Key(Kind.ATTRIBUTE, name) for name in USUAL]
    return _marked([*keys[:2], *metrics, *keys[2:]], seldom=SELDOM)


def _interest(key: str) -> tuple[bool, bool, bool]:
    """Sorts what runs are compared by in front."""
    low = key.lower()
    is_telling = any(word in low for word in TELLING)
    return (
        low in NO_METRICS or low.startswith("system/"),
        not is_telling,
        not any(word in low for word in VALIDATION),
    )


def heads(question: Question, columns: Iterable[Column]) -> list[Head]:
    orders = {}
    for text in question.order:
        order = parse_order(text)
        orders[order.key] = "descending" if order.descending else "ascending"
    return [
        Head(column, orders.get(column.key, "none"), _reordered(question, column, orders))
        for column in columns
    ]


def valid_groups(question: Question) -> list[Key]:
    """Raises FilterError."""
    found = [parse_key(text) for text in question.groups]
    for key, text in zip(found, question.groups, strict=True):
        if key.kind not in (Kind.PARAM, Kind.TAG) and key.name not in ("experiment", "state", "user_id"):
            raise FilterError(
                "Runs are grouped by params, tags, experiment, state or user_id", 0, text, "group"
            )
    return found


def _reordered(question: Question, column: Column, orders: dict[Key, str]) -> str:
    """Where runs are compared by it the greatest is wanted first; then the other way, then as they came."""
    ways = (
        [True, False] if column.is_number or column.key.name in ("submitted", "end_time") else [False, True]
    )
    is_first = list(orders)[:1] == [column.key]
    at = 1 + ways.index(orders[column.key] == "descending") if is_first else 0
    order = (str(OrderBy(column.key, ways[at])),) if at < len(ways) else ()
    return question.address(order=order)


def _marked(keys: Sequence[Key], seldom: frozenset[str] = frozenset()) -> list[Column]:
    main = next((key for key in keys if key.kind is Kind.METRIC), keys[0] if keys else None)
    return [
        Column(key, str(key), key == main, key.kind is Kind.ATTRIBUTE and key.name in seldom) for key in keys
    ]
