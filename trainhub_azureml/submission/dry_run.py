"""Whether this process prints what it would submit, and submits nothing."""

from __future__ import annotations

import os

DRY_RUN = "TRAINHUB_DRY_RUN"


def is_dry_run() -> bool:
    return os.environ.get(DRY_RUN, "") not in ("", "0")
