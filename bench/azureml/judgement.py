"""Whether a RunSpec is the one that a script means. The expectations stand in `expectations.json`, by what
the public documentation of the SDK v1 says of each call; docs/benchmarks.md says how they were made."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

EXPECTATIONS = Path(__file__).with_name("expectations.json")
# An argument that is data: the spec has a text of its own for it.
DATA = "*"
AT_LEAST = "at least"
_PACKAGE = re.compile(r"[A-Za-z0-9._-]+")
_CURATED = "TrainHub-"


class DryRun(NamedTuple):
    """What a dry run has printed: the spec, and the request for the environment that it would make."""

    spec: Mapping[str, Any]
    environment_body: Mapping[str, Any] | None


def load_expectations() -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = json.loads(EXPECTATIONS.read_text())
    return rows


def read_dry_run(output: str) -> DryRun | None:
    """Returns what the first submission printed, None if there was none."""
    values = list(_json_values(output))
    index = next((index for index, value in enumerate(values) if _is_spec(value)), None)
    if index is None:
        return None
    following = values[index + 1] if index + 1 < len(values) else {}
    return DryRun(values[index], following if following.get("kind") in _BODIES else None)


_BODIES = ("pip", "conda", "image", "dockerfile")


def _is_spec(value: Mapping[str, Any]) -> bool:
    return "experiment" in value and "environment" in value and ("script" in value or "command" in value)


def _json_values(output: str) -> Iterator[dict[str, Any]]:
    """Yields the objects that begin at the start of a line."""
    decoder, position = json.JSONDecoder(), 0
    while True:
        start = 0 if output.startswith("{", position) and position == 0 else output.find("\n{", position) + 1
        if start == 0 and position:
            return
        try:
            value, position = decoder.raw_decode(output, start)
        except ValueError:
            position = start + 1
            if output.find("\n{", position) < 0:
                return
            continue
        yield value


def differences(expected: Mapping[str, Any], run: DryRun) -> list[str]:
    """Returns a sentence for each field of the spec that is not what the script means."""
    actual = {
        "experiment": run.spec["experiment"],
        "script": run.spec.get("script", ""),
        "distribution": distribution_of(run.spec),
        "environment": environment_of(run),
    }
    wrong = [
        f"{field}: {actual[field]!r} instead of {expected[field]!r}"
        for field in actual
        if not _same(field, actual[field], expected.get(field, ""))
    ]
    return wrong + _wrong_launch(expected, run.spec)


def _same(field: str, actual: Any, expected: Any) -> bool:
    if field == "environment" and expected[0] == AT_LEAST:  # the framework of an estimator, by its name
        return actual[0] == "packages" and set(expected[1]) <= set(actual[1])
    return bool(actual == expected)


def distribution_of(spec: Mapping[str, Any]) -> list[Any]:
    """Returns the framework, the number of nodes, and that of all processes."""
    distribution = spec.get("distribution") or {}
    kind = distribution.get("type", "")
    nodes = distribution.get("node_count", 1)
    if kind == "mpi":
        return [kind, nodes, nodes * distribution.get("process_count_per_node", 1)]
    if kind == "pytorch":
        return [kind, nodes, distribution.get("process_count") or nodes]
    if kind == "tensorflow":
        workers = distribution.get("worker_count", 1)
        processes = workers + distribution.get("parameter_server_count", 0)
        return [kind, processes, processes]
    nodes = (spec.get("resources") or {}).get("node_count", 1)
    return [kind, nodes, nodes]


def environment_of(run: DryRun) -> list[Any]:
    """Returns what the environment is made of: `packages` with their names, `image` with its name,
    `dockerfile`, `curated` with the framework, or `node`."""
    body = run.environment_body
    if body is None:
        name = str(run.spec["environment"]["name"])
        curated = name.removeprefix(_CURATED).rpartition("-")[0]
        return ["curated", curated] if name.startswith(_CURATED) else ["node"]
    if body["kind"] == "image":
        return ["image", body["image"]]
    if body["kind"] == "dockerfile":
        return ["dockerfile"]
    lines = body["requirements"] if body["kind"] == "pip" else _conda_lines(body["conda"])
    return ["packages", package_names(lines)]


def package_names(lines: Sequence[str]) -> list[str]:
    """Returns the names of packages without python, pip, and those of Azure."""
    matches = (_PACKAGE.match(line.rpartition("::")[2].strip()) for line in lines if line[:1] not in "-#")
    names = {match[0].lower().replace("_", "-") for match in matches if match}
    return sorted(name for name in names if name not in ("python", "pip") and not name.startswith("azureml"))


def _conda_lines(text: str) -> list[str]:
    items = [line.strip() for line in text.partition("dependencies:")[2].splitlines()]
    return [item[2:].strip().strip("'\"") for item in items if item[:2] == "- " and not item.endswith(":")]


def _wrong_launch(expected: Mapping[str, Any], spec: Mapping[str, Any]) -> list[str]:
    if "command" in expected:
        line, command = expected["command"], spec.get("command") or []
        text = command[2].replace("$$", "$") if command[:2] == ["bash", "-c"] else shlex.join(command)
        plain = line if command[:2] == ["bash", "-c"] else shlex.join(shlex.split(line))
        pattern = ".+".join(map(re.escape, plain.replace("'*'", DATA).split(DATA)))
        return [] if re.fullmatch(pattern, text, re.S) else [f"command: {text!r} instead of {line!r}"]
    arguments = [str(value) for value in spec.get("arguments") or ()]
    count = len(expected["arguments"])
    base, rest = arguments[:count], arguments[count:]
    fits = len(base) == count and all(
        value in (DATA, own) for value, own in zip(expected["arguments"], base, strict=True)
    )
    names = {name.lstrip("-") for name in rest[::2]}
    if not fits or names != set(expected.get("search", ())):
        return [f"arguments: {arguments} instead of {expected['arguments']} {expected.get('search', '')}"]
    return []
