"""`determined.core.init`: what a script needs of its run, in one object."""

from __future__ import annotations

import enum
import logging
import os
from pathlib import Path

from trainhub_sdk.determined.job import checkpoint_folder
from trainhub_sdk.determined.job.checkpoint_context import CheckpointContext
from trainhub_sdk.determined.job.cluster_info import RUN_ID, URL, experiment_config, get_cluster_info
from trainhub_sdk.determined.job.distributed_context import DistributedContext
from trainhub_sdk.determined.job.preempt_context import PreemptContext, PreemptMode
from trainhub_sdk.determined.job.searcher_context import SearcherContext
from trainhub_sdk.determined.job.train_context import TrainContext
from trainhub_sdk.job.sender import Sender

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trainhub_sdk.job.hub_calls import HubCalls

logger = logging.getLogger("determined.core")


class TensorboardMode(enum.Enum):
    AUTO = "AUTO"
    MANUAL = "MANUAL"


class DownloadMode(enum.Enum):
    LocalWorkersShareDownload = "LOCAL_WORKERS_SHARE_DOWNLOAD"
    NoSharedDownload = "NO_SHARED_DOWNLOAD"


class EarlyExitReason(enum.Enum):
    INVALID_HP = "EXITED_REASON_INVALID_HP"
    USER_REQUESTED_STOP = "EXITED_REASON_USER_REQUESTED_STOP"


class Context:
    """Its parts: `train`, `checkpoint`, `preempt`, `searcher`, `distributed`, `info`. Used in a `with`
    block."""

    def __init__(self, distributed: DistributedContext, sender: Sender | None, root: Path, mode: Any) -> None:
        self._sender = sender
        self.distributed = distributed
        self.info = get_cluster_info()
        self.train = TrainContext(sender, distributed)
        self.checkpoint = CheckpointContext(distributed, root)
        self.preempt = PreemptContext(distributed, mode)
        self.searcher = SearcherContext(experiment_config().get("searcher") or {}, distributed, self.train)

    def start(self) -> None:
        self.preempt.start()

    def close(self, *_error: object) -> None:
        """Returns when what was reported is sent, or after 20 s; the rest follows at the end of the
        process."""
        if self._sender is not None:
            self._sender.flush()
        self.preempt.close()
        self.distributed.close()

    def alert(
        self, title: str | None = None, description: str | None = None, level: str | None = "info"
    ) -> None:
        """Writes a line into the log."""
        number = logging.getLevelName(str(level or "info").upper().replace("WARN", "WARNING"))
        text = ": ".join(part for part in (title, description) if part)
        logger.log(number if isinstance(number, int) else logging.INFO, "%s", text)

    def __enter__(self) -> Context:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close(*error)


def init(
    *,
    distributed: DistributedContext | None = None,
    checkpoint_storage: Any = None,
    preempt_mode: Any = PreemptMode.WorkersAskChief,
    tensorboard_mode: Any = TensorboardMode.AUTO,
    **_others: Any,
) -> Context:
    """Returns the context of this process. Outside of runs, metrics are lines in the log, and checkpoints go
    to `checkpoint_storage`, a folder, or to `checkpoints`."""
    ranks = distributed or DistributedContext.of_process()
    run_id = os.environ.get(RUN_ID, "")
    root = checkpoint_folder.checkpoint_root()
    sender = None
    if run_id and os.environ.get(URL):
        sender = Sender(_connect, run_id)
    elif isinstance(checkpoint_storage, (str, os.PathLike)):
        root = Path(checkpoint_storage).absolute()
    return Context(ranks, sender, root, preempt_mode)


def _connect() -> HubCalls:
    # Imported when something is sent: it takes longer than the rest of the package.
    from trainhub_sdk.job.hub_calls import HubCalls

    return HubCalls.of_job(os.environ)
