"""Which of a job's processes this is."""

from __future__ import annotations

import os

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


def process_rank(environ: Mapping[str, str] = os.environ) -> int:
    """Returns the rank of this process, 0 if it has none."""
    for name in _VARIABLES:
        if environ.get(name, "").isdigit():
            return int(environ[name])
    if not environ.get("TF_CONFIG"):
        return 0
    import json

    try:
        task = json.loads(environ["TF_CONFIG"]).get("task") or {}
        is_worker = task.get("type") == "worker"
        return int(task.get("index") or 0) if is_worker else 0
    except (ValueError, AttributeError, TypeError):
        return 0
