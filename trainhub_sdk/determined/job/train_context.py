"""What a training reports: its metrics become curves of the run, its progress and status tags."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from trainhub_sdk.job.metric_names import metric_key
from trainhub_sdk.job.metric_values import number_of
from trainhub_sdk.job.sender import Metric, Tag

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trainhub_sdk.determined.job.distributed_context import DistributedContext
    from trainhub_sdk.job.sender import Sender

logger = logging.getLogger("determined.core")
TRAINING, VALIDATION = "training", "validation"
PROGRESS_TAG, STATUS_TAG, EXIT_TAG = "determined.progress", "determined.status", "determined.early_exit"
# The node reads the event files below it.
TENSORBOARD_FOLDER = "logs/tensorboard"


class TrainContext:
    """`sender`: to the run of this process, None outside of runs, where the values are logged as text."""

    def __init__(self, sender: Sender | None, distributed: DistributedContext) -> None:
        self._sender = sender
        self._distributed = distributed
        self._dropped: set[str] = set()

    def report_training_metrics(
        self, steps_completed: int, metrics: Mapping[str, Any], batch_metrics: Any = None
    ) -> None:
        """Adds a point to the curves `training/NAME`. Only rank 0 may call it, as with all reports."""
        self.report_metrics(TRAINING, steps_completed, metrics)
        if batch_metrics:
            self._mention_once("batch_metrics", "is not kept: report each batch with its own step.")

    def report_validation_metrics(self, steps_completed: int, metrics: Mapping[str, Any]) -> None:
        """Adds a point to the curves `validation/NAME`."""
        self.report_metrics(VALIDATION, steps_completed, metrics)

    def report_metrics(self, group: str, steps_completed: int, metrics: Mapping[str, Any]) -> None:
        """Adds a point to the curves `GROUP/NAME`. What is no number is left out, with a line in the log."""
        self._require_chief("report metrics")
        now = int(time.time() * 1000)
        if self._sender is None:
            logger.info("%s metrics at step %s: %s", group, steps_completed, dict(metrics))
            return
        for name, value in metrics.items():
            number = number_of(value)
            if number is None:
                self._mention_once(f"{group}/{name}", "is no number, and is not kept.")
            else:
                self._sender.add(Metric(metric_key(f"{group}/{name}"), number, int(steps_completed), now))

    def report_progress(self, progress: float) -> None:
        """`progress`: the share of the training that is done, 0 to 1. Raises ValueError for other numbers."""
        self._require_chief("report progress")
        if not 0 <= progress <= 1:
            raise ValueError(f"report_progress: give a share from 0 to 1, not {progress}.")
        self._tag(PROGRESS_TAG, f"{progress:.4g}")

    def set_status(self, status: str) -> None:
        self._require_chief("set the status")
        self._tag(STATUS_TAG, str(status))

    def report_early_exit(self, reason: Any) -> None:
        self._require_chief("report an early exit")
        self._tag(EXIT_TAG, str(getattr(reason, "value", reason)))

    def get_tensorboard_path(self) -> Path:
        """Returns a folder for event files, which the hub reads while they grow."""
        path = Path(TENSORBOARD_FOLDER).absolute()
        path.mkdir(parents=True, exist_ok=True)
        return path

    def upload_tensorboard_files(self, *_selection: Any, **_others: Any) -> None:
        """Does nothing: the node sends the event files by itself."""

    def _tag(self, key: str, value: str) -> None:
        if self._sender is None:
            logger.info("%s: %s", key, value)
        else:
            self._sender.add(Tag(key, value))

    def _require_chief(self, action: str) -> None:
        if self._distributed.rank != 0:
            raise RuntimeError(f"Only rank 0 may {action}, and this is rank {self._distributed.rank}.")

    def _mention_once(self, name: str, sentence: str) -> None:
        if name not in self._dropped:
            self._dropped.add(name)
            logger.warning("%s %s", name, sentence)
