"""The quota of disk for what clients of MLflow's protocol store."""

from __future__ import annotations

from jobs.models import Run
from jobs.quotas import disk_quota
from tracking.callers import Caller
from tracking.mlflow.protocol.errors import DENIED, MlflowError


def check_disk_room(caller: Caller, size_bytes: int = 0, *, run: Run | None = None, field: str) -> None:
    """Raises MlflowError, naming `field`, if a quota of disk leaves no room for a file of this size (0: not
    known yet). Files of an active run always have room."""
    try:
        disk_quota.check_room(caller.workspace, caller.user, size_bytes, run=run, field=field)
    except disk_quota.DiskQuotaExceeded as error:
        raise MlflowError(DENIED, f"{error.field}: {error.message}.") from error
