"""The spec of a run in a few lines."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any


def summarize_spec(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields a title and a text for each part that is not as it is by default."""
    words = [spec["script"], *spec.get("arguments", ())] if spec.get("script") else spec.get("command") or ()
    if words:
        yield "runs", shlex.join([str(word) for word in words])
    resources = spec.get("resources") or {}
    facts = [
        f"{key.replace('_', ' ')} {value}" for key, value in resources.items() if value and key != "cluster"
    ]
    distribution = spec.get("distribution") or {}
    facts += [f"{key.replace('_', ' ')} {value}" for key, value in distribution.items() if value]
    if facts:
        yield "resources", ", ".join(facts)
    environment = spec.get("environment") or {}
    if environment.get("name"):
        version = f"@{environment['version']}" if environment.get("version") else ""
        yield "environment", f"{environment['name']}{version}"
    for name, place in (spec.get("inputs") or {}).items():
        yield "input", f"{name} = {_input(place)}"
    for name, value in (spec.get("environment_variables") or {}).items():
        text = f"secret {value['secret']}" if isinstance(value, Mapping) else value
        yield "variable", f"{name} = {text}"
    for name, value in (spec.get("tags") or {}).items():
        yield "tag", f"{name} = {value}" if value else name


def _input(value: Mapping[str, Any]) -> str:
    place = value.get("dataset") or value.get("datastore") or ""
    version = f"@{value['version']}" if value.get("version") else ""
    path = f":{value['path']}" if value.get("path") else ""
    return f"{place}{version}{path}"
