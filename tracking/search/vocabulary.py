"""The vocabulary of filters: kinds of keys, attributes with their types, operators. Pure."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    METRIC = "metrics"
    PARAM = "params"
    TAG = "tags"
    ATTRIBUTE = "attributes"
    DATASET = "datasets"


class Type(StrEnum):
    TEXT = "text"
    WORD = "word"
    NUMBER = "number"
    TIME = "time"
    FLAG = "flag"


KINDS: dict[str, Kind] = {
    "metric": Kind.METRIC,
    "metrics": Kind.METRIC,
    "param": Kind.PARAM,
    "params": Kind.PARAM,
    "parameter": Kind.PARAM,
    "parameters": Kind.PARAM,
    "tag": Kind.TAG,
    "tags": Kind.TAG,
    "attribute": Kind.ATTRIBUTE,
    "attributes": Kind.ATTRIBUTE,
    "attr": Kind.ATTRIBUTE,
    "run": Kind.ATTRIBUTE,
    "dataset": Kind.DATASET,
    "datasets": Kind.DATASET,
}
"""Kinds by the prefixes that filters may use."""

ATTRIBUTES: dict[str, Type] = {
    "run_id": Type.TEXT,
    "run_name": Type.TEXT,
    "status": Type.WORD,
    "start_time": Type.TIME,
    "end_time": Type.TIME,
    "user_id": Type.TEXT,
    "artifact_uri": Type.TEXT,
    "state": Type.WORD,
    "reason": Type.WORD,
    "kind": Type.WORD,
    "number": Type.NUMBER,
    "experiment": Type.TEXT,
    "experiment_id": Type.TEXT,
    "cluster": Type.TEXT,
    "environment": Type.TEXT,
    "framework": Type.WORD,
    "submitted": Type.TIME,
    "duration": Type.NUMBER,
    "gpu_hours": Type.NUMBER,
    "priority": Type.NUMBER,
    "attempt": Type.NUMBER,
    "parent": Type.TEXT,
    "archived": Type.FLAG,
    "pinned": Type.FLAG,
    "starred": Type.FLAG,
    "mine": Type.FLAG,
}
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
PARTS = ("last", "min", "max")
"""Of a metric: `metrics.loss` is the last value, `min(metrics.loss)` the smallest."""

ORDER = ("=", "!=", ">", ">=", "<", "<=")
TEXT = ("=", "!=", "LIKE", "ILIKE", "IN", "NOT IN")
NULLS = ("IS NULL", "IS NOT NULL")
OPERATORS: dict[Kind | Type, tuple[str, ...]] = {
    Kind.METRIC: (*ORDER, *NULLS),
    Kind.PARAM: (*ORDER, "LIKE", "ILIKE", "IN", "NOT IN", *NULLS),
    Kind.TAG: (*TEXT, *NULLS),
    Kind.DATASET: TEXT,
    Type.TEXT: (*TEXT, *NULLS),
    Type.WORD: TEXT,
    Type.NUMBER: (*ORDER, "IN", "NOT IN", *NULLS),
    Type.TIME: (*ORDER, *NULLS),
    Type.FLAG: ("=", "!="),
}
