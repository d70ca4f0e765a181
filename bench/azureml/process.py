"""The process of one submit script: runs it as `trainhub azureml run` does, and writes how it ended.

python -m bench.azureml.process REPORT SCRIPT
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

from bench.azureml.downloads import replace_downloads
from trainhub_azureml.exceptions import AzureMLException
from trainhub_azureml.runner import run_script
from trainhub_sdk.errors import TrainHubError

PACKAGES = ("trainhub_azureml", "trainhub_sdk", "azureml")
ENDED, EXIT, REFUSED, OURS, FOREIGN = (
    "ended",
    "exit",
    "refused",
    "exception of ours",
    "exception of the script",
)


def main() -> int:
    report, script = sys.argv[1:]
    replace_downloads()
    try:
        run_script(script, [])
        outcome: dict[str, Any] = {"kind": ENDED}
    except SystemExit as error:
        outcome = {"kind": EXIT, "message": str(error.code or "")}
    except BaseException as error:  # whatever a script raises
        traceback.print_exc()
        outcome = explain(error, script)
    Path(report).write_text(json.dumps(outcome))
    return 0


def explain(error: BaseException, script: str) -> dict[str, Any]:
    """Returns the kind of an exception, its text, the line of the script, and the place of ours if one of
    our modules raised it or lacks what the script uses."""
    frames = traceback.extract_tb(error.__traceback__)
    line = next((frame.lineno for frame in reversed(frames) if frame.filename == script), 0)
    last = frames[-1]
    place = f"{Path(last.filename).name}:{last.lineno}"
    return {
        "kind": kind_of(error, last.filename),
        "type": type(error).__name__,
        "message": str(error),
        "line": line,
        "place": place,
    }


def kind_of(error: BaseException, last_file: str) -> str:
    """Returns REFUSED for a sentence, OURS for another exception that comes from our modules, or from a
    member or parameter that one of our objects lacks."""
    if isinstance(error, (AzureMLException, TrainHubError)):
        return REFUSED
    if isinstance(error, ImportError) and str(error).startswith("azureml."):
        return REFUSED
    if any(f"/{package}/" in last_file for package in PACKAGES):
        return OURS
    if isinstance(error, AttributeError) and _is_ours(getattr(error, "obj", None)):
        return OURS
    if isinstance(error, TypeError) and str(error).split("(")[0].split(".")[0] in _own_names():
        return OURS
    if isinstance(error, TypeError) and any(f"'{name}' object" in str(error) for name in _own_names()):
        return OURS
    return FOREIGN


def _is_ours(value: object) -> bool:
    module = value.__name__ if isinstance(value, type(sys)) else str(type(value).__module__)
    if isinstance(value, type):
        module = value.__module__
    return module.split(".")[0] in PACKAGES


def _own_names() -> set[str]:
    """Returns the names of all classes and functions of our modules that the script has loaded."""
    modules = [module for name, module in sys.modules.items() if name.split(".")[0] in PACKAGES]
    return {name for module in modules for name, value in vars(module).items() if _is_ours(value)}


if __name__ == "__main__":
    sys.exit(main())
