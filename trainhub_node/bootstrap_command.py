"""The command that starts a process of the agent's own code; see `trainhub_node.bootstrap`."""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
# -I and -S: no variable, no user's folder and no `sitecustomize` of the run may change what such a process
# does. They also save 20 ms at each start.
PYTHON_OPTIONS = ("-I", "-S", "-X", "utf8")
AGENT_WRAPPER = (sys.executable, *PYTHON_OPTIONS, str(PACKAGE / "bootstrap.py"))
