"""The vocabulary of filters: kinds of keys, attributes with their types, operators. Pure."""

from __future__ import annotations

from enum import StrEnum


class KeyKind(StrEnum):
    METRIC = "metrics"
    PARAM = "params"
    TAG = "tags"
    ATTRIBUTE = "attributes"
    DATASET = "datasets"


class AttributeType(StrEnum):
    TEXT = "text"
    WORD = "word"
    NUMBER = "number"
    TIME = "time"
    FLAG = "flag"


# Kinds by the prefixes that filters may use.
KINDS: dict[str, KeyKind] = {
    "metric": KeyKind.METRIC,
    "metrics": KeyKind.METRIC,
    "param": KeyKind.PARAM,
    "params": KeyKind.PARAM,
    "parameter": KeyKind.PARAM,
    "parameters": KeyKind.PARAM,
    "tag": KeyKind.TAG,
    "tags": KeyKind.TAG,
    "attribute": KeyKind.ATTRIBUTE,
    "attributes": KeyKind.ATTRIBUTE,
    "attr": KeyKind.ATTRIBUTE,
    "run": KeyKind.ATTRIBUTE,
    "dataset": KeyKind.DATASET,
    "datasets": KeyKind.DATASET,
}

ATTRIBUTES: dict[str, AttributeType] = {
    "run_id": AttributeType.TEXT,
    "run_name": AttributeType.TEXT,
    "status": AttributeType.WORD,
    "start_time": AttributeType.TIME,
    "end_time": AttributeType.TIME,
    "user_id": AttributeType.TEXT,
    "artifact_uri": AttributeType.TEXT,
    "state": AttributeType.WORD,
    "reason": AttributeType.WORD,
    "kind": AttributeType.WORD,
    "number": AttributeType.NUMBER,
    "experiment": AttributeType.TEXT,
    "experiment_id": AttributeType.TEXT,
    "cluster": AttributeType.TEXT,
    "environment": AttributeType.TEXT,
    "framework": AttributeType.WORD,
    "submitted": AttributeType.TIME,
    "duration": AttributeType.NUMBER,
    "gpu_hours": AttributeType.NUMBER,
    "priority": AttributeType.NUMBER,
    "attempt": AttributeType.NUMBER,
    "parent": AttributeType.TEXT,
    "archived": AttributeType.FLAG,
    "pinned": AttributeType.FLAG,
    "starred": AttributeType.FLAG,
    "mine": AttributeType.FLAG,
}
# The spellings of `created` and `run name` are those of MLflow.
OTHER_NAMES: dict[str, str] = {
    "created": "start_time",
    "Created": "start_time",
    "run name": "run_name",
    "Run name": "run_name",
    "Run Name": "run_name",
    "name": "run_name",
    "user": "user_id",
    "id": "run_id",
    "experiment_name": "experiment",
    "created_at": "submitted",
}
DATASET_KEYS = ("name", "digest", "context")
# Of a metric: `metrics.loss` is the last value, `min(metrics.loss)` the smallest.
PARTS = ("last", "min", "max")

ORDER = ("=", "!=", ">", ">=", "<", "<=")
TEXT = ("=", "!=", "LIKE", "ILIKE", "IN", "NOT IN")
NULLS = ("IS NULL", "IS NOT NULL")
OPERATORS: dict[KeyKind | AttributeType, tuple[str, ...]] = {
    KeyKind.METRIC: (*ORDER, *NULLS),
    KeyKind.PARAM: (*ORDER, "LIKE", "ILIKE", "IN", "NOT IN", *NULLS),
    KeyKind.TAG: (*TEXT, *NULLS),
    KeyKind.DATASET: TEXT,
    AttributeType.TEXT: (*TEXT, *NULLS),
    AttributeType.WORD: TEXT,
    AttributeType.NUMBER: (*ORDER, "IN", "NOT IN", *NULLS),
    AttributeType.TIME: (*ORDER, *NULLS),
    AttributeType.FLAG: ("=", "!="),
}
