"""The configuration of an experiment, and what is said about it on its way to a spec."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from trainhub_sdk.errors import ConfigRefused, TrainHubError
from trainhub_sdk.yaml_text import parse_yaml

ERROR, WARNING, HINT = "error", "warning", "hint"


class ConfigFinding(NamedTuple):
    """What became of a field. `severity`: `error` if there can be no run, `warning` if the run will do
    something else than before, `hint` if it is good to know; `line`: in the file, None if unknown."""

    field: str
    severity: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        return f"{place}{self.field}: {self.message}"


class ExperimentConfig:
    """`values`: the configuration; `file`: its name, "" if it was none; `findings`: what was said so far."""

    def __init__(self, values: Mapping[str, Any], file: str = "", lines: Mapping[str, int] | None = None):
        self.values = values
        self.file = file
        self.findings: list[ConfigFinding] = []
        self._lines = lines or {}

    def get(self, path: str, default: Any = None) -> Any:
        """Returns the value of a field such as `resources.slots_per_trial`, `default` if it is not there or
        null."""
        value: Any = self.values
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        return default if value is None else value

    def integer(self, path: str, default: int, least: int = 0) -> int:
        """Returns the value of a field that must be a whole number; `default` besides an error if it is
        none."""
        value = self.get(path, default)
        if isinstance(value, int) and not isinstance(value, bool) and value >= least:
            return value
        self.add(ERROR, path, f"must be a whole number of at least {least}, not {value!r}.")
        return default

    def mapping(self, path: str) -> Mapping[str, Any]:
        """Returns the value of a field that must be an object; an empty one besides an error if it is
        none."""
        value = self.get(path, {})
        if isinstance(value, Mapping):
            return value
        self.add(ERROR, path, f"must be an object, not {value!r}.")
        return {}

    def line(self, path: str) -> int | None:
        """Returns the line of a field, or of the nearest one around it."""
        while path and path not in self._lines:
            path = path.rpartition(".")[0]
        return self._lines.get(path)

    def add(self, severity: str, field: str, message: str) -> None:
        self.findings.append(ConfigFinding(field, severity, message, self.line(field)))

    def check(self) -> None:
        """Raises ConfigRefused if there is an error among the findings."""
        errors = [finding for finding in self.findings if finding.severity == ERROR]
        if errors:
            begin = f"{self.file}: " if self.file else ""
            raise ConfigRefused("\n".join(f"{begin}{error}" for error in errors), self.findings)


def load_config(config: str | Path | Mapping[str, Any]) -> ExperimentConfig:
    """Returns the configuration in a file, YAML or JSON, or the one given. Raises TrainHubError if it cannot
    be read."""
    if isinstance(config, Mapping):
        return ExperimentConfig(config)
    path = Path(config)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise TrainHubError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise TrainHubError(f"{path} is not text: {error}.") from error
    lines: Mapping[str, int] = {}
    if path.suffix == ".json":
        try:
            values = json.loads(text)
        except ValueError as error:
            raise TrainHubError(f"{path} is not JSON: {error}.") from error
    else:
        values, lines = parse_yaml(text, str(path))
    if not isinstance(values, Mapping):
        raise TrainHubError(f"{path} must hold an object, the configuration of an experiment.")
    return ExperimentConfig(values, str(path), lines)
