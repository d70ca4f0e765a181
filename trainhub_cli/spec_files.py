"""A spec in a file: JSON, or YAML where Python can read that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainhub_sdk.errors import TrainHubError
from trainhub_sdk.spec import read_spec_file
from trainhub_sdk.yaml_text import parse_yaml


def load_spec(path: Path) -> tuple[dict[str, Any], Path | None]:
    """Returns the RunSpec in a file, and the folder that it names as its source with
    `{"type": "local", "path": "./folder"}`, relative to the file; None if it names none. Raises
    TrainHubError."""
    data = _read_yaml(path) if path.suffix in (".yaml", ".yml") else read_spec_file(path)
    # The description of an example has its spec inside.
    if "title" in data and isinstance(data.get("spec"), dict):
        data = dict(data["spec"])
    source = data.get("source")
    if not isinstance(source, dict) or source.get("type") != "local":
        return data, None
    unknown = sorted(set(source) - {"type", "path"})
    if unknown:
        raise TrainHubError(f"source.{unknown[0]}: a local source has the fields type and path only.")
    if not isinstance(source.get("path"), str) or not source["path"].strip():
        raise TrainHubError("source.path: name the folder of the code, relative to the spec file.")
    del data["source"]
    return data, path.parent / source["path"]


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        data = parse_yaml(path.read_text(encoding="utf-8"), str(path)).value
    except OSError as error:
        raise TrainHubError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise TrainHubError(f"{path} is not YAML: {error}.") from error
    if not isinstance(data, dict):
        raise TrainHubError(f"{path} must hold an object, a RunSpec.")
    return data
