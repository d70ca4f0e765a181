"""`trainhub-hub`, which is `manage.py` of the project in this package."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

from trainhub_hub.first_process import run_as_init

APP = Path(__file__).resolve().parent / "app"


def main() -> int:
    if os.getpid() == 1:
        return run_as_init(_run)
    return _run()


def _run() -> int:
    sys.path.insert(0, str(APP))
    return int(import_module("manage").main())


if __name__ == "__main__":
    sys.exit(main())
