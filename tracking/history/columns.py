"""The columns of the run table: keys of the filter grammar, with labels and links to sort by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracking.history.table_query import TableQuery
from tracking.models import Metric
from tracking.search import FilterError
from tracking.search.parser import parse_key, parse_order
from tracking.search.tree import Key, OrderBy
from tracking.search.vocabulary import KeyKind

# Labels of the attributes that can be columns.
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
DEFAULT_ATTRIBUTES = ("number", "experiment", "framework", "cluster", "duration", "submitted", "user_id")
# Default columns that only wide windows show.
WIDE_ONLY = frozenset({"framework", "cluster", "user_id"})
NUMBERS = frozenset({"number", "duration", "gpu_hours", "attempt", "priority"})
DEFAULT_METRIC_COUNT = 2
# Metrics that most scripts log but that are not useful for a comparison.
UNINTERESTING_METRICS = ("epoch", "step", "global_step", "time", "lr", "learning_rate")
VALIDATION = ("val", "eval", "test", "dev")
INTERESTING_WORDS = (
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
class TableColumn:
    """`text` is the key in URLs. `is_main`: also shown on phones; `is_seldom`: only in wide windows."""

    key: Key
    text: str
    is_main: bool = False
    is_seldom: bool = False

    @property
    def label(self) -> str:
        return (
            ATTRIBUTES.get(self.key.name, self.key.name)
            if self.key.kind is KeyKind.ATTRIBUTE
            else self.key.name
        )

    @property
    def part(self) -> str:
        """`min` or `max`, shown next to the label."""
        return "" if self.key.part == "last" else self.key.part

    @property
    def is_number(self) -> bool:
        return self.key.kind is KeyKind.METRIC or (
            self.key.kind is KeyKind.ATTRIBUTE and self.key.name in NUMBERS
        )

    @property
    def classes(self) -> str:
        width = "" if self.is_main else "th-roomy-only" if self.is_seldom else "th-wide-only"
        return f"{'th-num' if self.is_number else ''} {width}".strip()


@dataclass(frozen=True)
class ColumnHeader:
    """`order` is ascending, descending or none; `address` is the link that changes it."""

    column: TableColumn
    order: str
    address: str


def selected_columns(table_query: TableQuery) -> list[TableColumn]:
    """Returns the columns in the URL. Raises FilterError."""
    return _build_columns([parse_key(text) for text in table_query.columns])


def default_columns(runs: Sequence[str]) -> list[TableColumn]:
    """Returns the default columns: important attributes, and the metrics that most of these runs log."""
    counts = Counter(Metric.objects.filter(run_id__in=runs).values_list("key", flat=True))
    ranked = sorted(counts, key=lambda key: (*_interest(key), -counts[key], key))
    metrics = [Key(KeyKind.METRIC, key) for key in ranked[:DEFAULT_METRIC_COUNT]]
    keys = [Key(KeyKind.ATTRIBUTE, name) for name in DEFAULT_ATTRIBUTES]
    return _build_columns([*keys[:2], *metrics, *keys[2:]], seldom=WIDE_ONLY)


def _interest(key: str) -> tuple[bool, bool, bool]:
    """Returns the sort key of a metric, which puts metrics that are useful for comparisons first."""
    low = key.lower()
    is_interesting = any(word in low for word in INTERESTING_WORDS)
    return (
        low in UNINTERESTING_METRICS or low.startswith("system/"),
        not is_interesting,
        not any(word in low for word in VALIDATION),
    )


def column_headers(table_query: TableQuery, columns: Iterable[TableColumn]) -> list[ColumnHeader]:
    orders = {}
    for text in table_query.order:
        order = parse_order(text)
        orders[order.key] = "descending" if order.descending else "ascending"
    return [
        ColumnHeader(column, orders.get(column.key, "none"), _sort_link(table_query, column, orders))
        for column in columns
    ]


def valid_groups(table_query: TableQuery) -> list[Key]:
    """Returns the keys that runs are grouped by. Raises FilterError for one that is not allowed."""
    keys = [parse_key(text) for text in table_query.groups]
    for key, text in zip(keys, table_query.groups, strict=True):
        is_attribute = key.kind is KeyKind.ATTRIBUTE and key.name in ("experiment", "state", "user_id")
        if key.kind not in (KeyKind.PARAM, KeyKind.TAG) and not is_attribute:
            raise FilterError(
                "Runs are grouped by params, tags, experiment, state or user_id", 0, text, "group"
            )
    return keys


def _sort_link(table_query: TableQuery, column: TableColumn, orders: dict[Key, str]) -> str:
    """Returns the link of a header: it cycles through both directions, the largest first for numbers, and no
    order."""
    directions = (
        [True, False] if column.is_number or column.key.name in ("submitted", "end_time") else [False, True]
    )
    # Only the first key of the order cycles through the directions; any other column starts with its first.
    is_first = list(orders)[:1] == [column.key]
    at = 1 + directions.index(orders[column.key] == "descending") if is_first else 0
    # After the last direction follows no order.
    order = (str(OrderBy(column.key, directions[at])),) if at < len(directions) else ()
    return table_query.address(order=order)


def _build_columns(keys: Sequence[Key], seldom: frozenset[str] = frozenset()) -> list[TableColumn]:
    main = next((key for key in keys if key.kind is KeyKind.METRIC), keys[0] if keys else None)
    return [
        TableColumn(key, str(key), key == main, key.kind is KeyKind.ATTRIBUTE and key.name in seldom)
        for key in keys
    ]
