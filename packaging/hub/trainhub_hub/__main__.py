"""`trainhub-hub`, which is `manage.py` of the project in this package."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

APP = Path(__file__).resolve().parent / "app"


def main() -> int:
    sys.path.insert(0, str(APP))
    return int(import_module("manage").main())


if __name__ == "__main__":
    sys.exit(main())
