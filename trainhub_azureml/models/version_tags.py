"""What a script says about a model, and the tags of the version that hold it on the hub."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

OWN = "azureml."
PROPERTY = "azureml.property/"
FRAMEWORK = "azureml.framework"
# The name of the folder that was registered, which the paths of its files do not have.
FOLDER = "azureml.folder"
_DATASETS = "azureml.datasets"


def version_tags(
    tags: Mapping[str, Any] | None,
    properties: Mapping[str, Any] | None,
    framework: Any,
    framework_version: Any,
    others: Mapping[str, Any],
) -> dict[str, str]:
    """Returns everything that a script says about a model as tags of its version."""
    values = {str(key): "" if value is None else str(value) for key, value in (tags or {}).items()}
    values.update({PROPERTY + str(key): str(value) for key, value in (properties or {}).items()})
    if framework is not None:
        values[FRAMEWORK] = f"{framework} {framework_version or ''}".strip()
    if others.get("datasets"):
        values[_DATASETS] = json.dumps([str(name) for name, *_ in others["datasets"]])
    return values


def tags_of_row(row: Mapping[str, Any]) -> dict[str, str]:
    """Returns all tags of a version that MLflow's protocol describes."""
    return {tag["key"]: tag["value"] for tag in row.get("tags") or ()}


def own_tags(tags: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tags that people and scripts have set."""
    return {key: value for key, value in tags.items() if not key.startswith((OWN, "trainhub."))}


def properties_of(tags: Mapping[str, Any]) -> dict[str, Any]:
    return {key[len(PROPERTY) :]: value for key, value in tags.items() if key.startswith(PROPERTY)}


def framework_of(tags: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Returns the framework and its version, None for what is not said."""
    framework, _, version = str(tags.get(FRAMEWORK, "")).partition(" ")
    return framework or None, version or None


def matches_list(values: Mapping[str, Any], conditions: Any) -> bool:
    """Returns whether tags or properties are as a list such as `['key', ['other', 'its value']]` says; a dict
    is taken too."""
    if isinstance(conditions, str):
        conditions = [conditions]
    pairs = list(conditions.items()) if isinstance(conditions, Mapping) else conditions or ()
    for condition in pairs:
        key, value = (condition, None) if isinstance(condition, str) else (*condition, None)[:2]
        if str(key) not in values or (value is not None and values[str(key)] != str(value)):
            return False
    return True
