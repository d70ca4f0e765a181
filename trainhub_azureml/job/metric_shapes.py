"""What a run has logged, read back in the shapes of the SDK v1."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trainhub_azureml.job.run_writer import TABLES
from trainhub_azureml.job.tag_names import KIND_TAG, NAME_TAG, TEXT_TAG, TEXTS_TAG
from trainhub_sdk.errors import NotFound

if TYPE_CHECKING:
    from trainhub_sdk.job.hub_calls import HubCalls


def read_metrics(calls: HubCalls, run_id: str, name: str | None = None) -> dict[str, Any]:
    """Returns for each name a value, where it was logged once; a list, where often; {column: list} of a
    table; the path of an image. Raises TrainHubError."""
    data = calls.run(run_id)["data"]
    tags = {tag["key"]: tag["value"] for tag in data.get("tags") or ()}
    kinds = _with_prefix(tags, KIND_TAG)
    names = _with_prefix(tags, NAME_TAG)
    metrics: dict[str, Any] = {}
    for key in [metric["key"] for metric in data.get("metrics") or ()]:
        table = key.rpartition("/")[0]
        own_name = names.get(key, key)
        if kinds.get(table) == "table" or name not in (None, own_name):
            continue
        values = calls.history(run_id, key)
        metrics[own_name] = values[0] if len(values) == 1 and kinds.get(key) != "list" else values
    for key, text in _with_prefix(tags, TEXT_TAG).items():
        texts = tags.get(f"{TEXTS_TAG}{key}")
        metrics[names.get(key, key)] = json.loads(texts) if texts else text
    for key, kind in kinds.items():
        own_name = names.get(key, key)
        if name not in (None, own_name):
            continue
        if kind == "table":
            metrics[own_name] = _read_table(calls, run_id, key)
        elif kind.startswith("image "):
            metrics[own_name] = kind.partition(" ")[2]
    return metrics if name is None else {key: value for key, value in metrics.items() if key == name}


def _read_table(calls: HubCalls, run_id: str, key: str) -> dict[str, list[Any]]:
    try:
        table = json.loads(calls.read_file(run_id, f"{TABLES}/{key}.json"))
    except NotFound:
        return {}  # the process that has logged it has not stored it yet
    return {column: [row[index] for row in table["data"]] for index, column in enumerate(table["columns"])}


def _with_prefix(tags: dict[str, str], prefix: str) -> dict[str, str]:
    return {key[len(prefix) :]: value for key, value in tags.items() if key.startswith(prefix)}
