"""OpenAPI schemas of the telemetry answers, which orjson encodes without a serializer."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes

Schema = dict[str, Any]


def object_of(**fields: Schema) -> Schema:
    """Returns the schema of an object with these required fields; a trailing underscore is removed."""
    named = {name.rstrip("_"): field for name, field in fields.items()}
    return {"type": "object", "properties": named, "required": list(named)}


def list_of(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def response_schemas(schema: Schema) -> dict[tuple[int, str], Any]:
    return {(200, "application/json"): schema, (200, "text/csv"): OpenApiTypes.STR}


TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
MOMENT: Schema = {"type": "integer", "description": "Unix seconds by the hub's clock."}
_INDEX: Schema = {"type": ["integer", "null"]}
_NUMBERS: Schema = {
    **list_of({"type": ["number", "null"]}),
    "description": "One value for each of `times`; null if it is unknown.",
}
_CURVES: Schema = {
    "type": "object",
    "additionalProperties": object_of(mean=_NUMBERS, max=_NUMBERS),
    "description": "The curve of each metric, by key; metrics without values are absent.",
}
_GRID = {"step_s": WHOLE, "times": list_of(MOMENT)}
NODE = object_of(
    node=TEXT,
    **_GRID,
    host=_CURVES,
    gpus=list_of(object_of(uuid=TEXT, index=_INDEX, name=TEXT, series=_CURVES)),
)
SPAN = {"from_": MOMENT, "to": MOMENT}
SERIES: Schema = {"allOf": [NODE, object_of(**SPAN)]}
HEAT = object_of(
    metric=TEXT, **SPAN, **_GRID, rows=list_of(object_of(node=TEXT, uuid=TEXT, index=_INDEX, mean=_NUMBERS))
)
_TABLE = list_of(object_of(key=TEXT, label=TEXT, unit=TEXT))
METRIC_TABLES = object_of(gpu=_TABLE, host=_TABLE)
