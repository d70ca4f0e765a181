"""Starts a script as `python SCRIPT` would, with the names of the SDK v1 first on its path and on that of the
processes that it starts."""

from __future__ import annotations

import os
import runpy
import sys

# Scripts that only say `import urllib` rely on this: the SDK v1 had imported it.
import urllib.request  # noqa: F401
from collections.abc import Sequence

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
NAMES = os.path.join(_PACKAGE, "names")


def put_names_first() -> None:
    """Changes the path of this process and of those that it starts. Modules of `azureml` that were imported
    from elsewhere are forgotten."""
    folders = [NAMES, os.path.dirname(_PACKAGE)]
    present = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [NAMES, *(entry for entry in present if entry not in folders), folders[1]]
    )
    sys.path[:] = [NAMES, *(entry for entry in sys.path if entry != NAMES)]
    if folders[1] not in sys.path:
        sys.path.append(folders[1])
    for name in [name for name in sys.modules if name.split(".")[0] == "azureml"]:
        del sys.modules[name]


def run_script(script: str, arguments: Sequence[str]) -> None:
    """Runs a script to its end. Raises what it raises, and SystemExit if there is no such script."""
    if not os.path.isfile(script):
        raise SystemExit(f"There is no script {script}.")
    put_names_first()
    # What `python SCRIPT` would put first, in place of the folder of this module's start.
    sys.path.insert(1, os.path.dirname(os.path.abspath(script)))
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")
