from trainhub_sdk.determined.job.checkpoint_context import CheckpointContext
from trainhub_sdk.determined.job.core_context import (
    Context,
    DownloadMode,
    EarlyExitReason,
    TensorboardMode,
    init,
)
from trainhub_sdk.determined.job.distributed_context import DistributedContext, DummyDistributedContext
from trainhub_sdk.determined.job.preempt_context import PreemptContext, PreemptMode
from trainhub_sdk.determined.job.searcher_context import (
    SearcherContext,
    SearcherMode,
    SearcherOperation,
    Unit,
)
from trainhub_sdk.determined.job.train_context import TrainContext

__all__ = [
    "CheckpointContext",
    "Context",
    "DistributedContext",
    "DownloadMode",
    "DummyDistributedContext",
    "EarlyExitReason",
    "PreemptContext",
    "PreemptMode",
    "SearcherContext",
    "SearcherMode",
    "SearcherOperation",
    "TensorboardMode",
    "TrainContext",
    "Unit",
    "init",
]
