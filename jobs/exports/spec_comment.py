"""The spec in a comment of an exported file, from which an import gets what the format cannot hold."""

from __future__ import annotations

import json
from typing import Any

from trainhub_launch.spec import RunSpec, SnapshotSource
from trainhub_launch.spec_reader import read_spec

MARK = "# trainhub-spec: "
# A spec whose code is not on the hub yet, as an import of a foreign file returns it.
NO_SOURCE = SnapshotSource(id="")
# A spec is read only with a source.
_ANY_SOURCE = {"type": "snapshot", "id": "0" * 64}


def spec_json(spec: RunSpec) -> dict[str, Any]:
    """Returns the spec as JSON, without a source if it has none."""
    data = spec.to_json()
    return data if spec.source != NO_SOURCE else {key: data[key] for key in data if key != "source"}


def read_spec_json(data: Any) -> RunSpec:
    """Returns the spec in JSON that may lack a source. Raises SpecError."""
    if not isinstance(data, dict) or "source" in data:
        return read_spec(data)
    return read_spec({**data, "source": _ANY_SOURCE}).with_source(NO_SOURCE)


def comment_lines(spec: RunSpec) -> list[str]:
    """Returns the lines of the comment. Values of secrets are not in a spec."""
    return [
        "# Written by TrainHub from a run's spec. Change what you like: when TrainHub reads the file again,",
        "# your changes count, and the next line only fills in what this format cannot hold.",
        f"{MARK}{json.dumps(spec_json(spec))}",
    ]


def find_comment(text: str) -> tuple[int, str] | None:
    """Returns the number of the line with the spec, from 1, and its JSON; None if there is none."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(MARK):
            return number, line[len(MARK) :]
    return None
