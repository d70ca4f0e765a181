"""What a process of a run can know about it: `determined.get_cluster_info()`."""

from __future__ import annotations

import json
import os

from trainhub_sdk.determined.job.checkpoint_folder import newest_checkpoint
from trainhub_sdk.determined.job.distributed_context import DistributedContext

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RUN_ID, ATTEMPT, URL = "TRAINHUB_RUN_ID", "TRAINHUB_ATTEMPT", "TRAINHUB_URL"
_infos: dict[str, ClusterInfo] = {}


class TrialInfo:
    """`trial_id`: the same in each attempt of a run, and another one in each run; `hparams`: the
    hyperparameters."""

    def __init__(self, run_id: str) -> None:
        self.trial_id = self.experiment_id = int(run_id[:8], 16)
        self.trial_seed = int(os.environ.get("DET_TRIAL_SEED") or self.trial_id % 2**31)
        self.hparams: dict[str, Any] = json.loads(os.environ.get("DET_HPARAMS") or "{}")
        self._config = experiment_config()


class ClusterInfo:
    """`slot_ids`: of the GPUs of this node; `container_rank`: the number of this node in the run;
    `container_addrs`: the address of the first node, and "" for each further one, which is not known;
    `latest_checkpoint`: with which the run goes on, None if it begins."""

    task_type = "TRIAL"

    def __init__(self) -> None:
        run_id = os.environ[RUN_ID]
        self.master_url = os.environ.get(URL, "")
        self.cluster_id = self.agent_id = ""
        self.task_id = run_id
        self.allocation_id = f"{run_id}.{os.environ.get(ATTEMPT, '1')}"
        self.slot_ids: list[int] = _slot_ids()
        ranks = DistributedContext.of_process()
        self.container_rank, node_count = ranks.cross_rank, ranks.cross_size
        address = os.environ.get("MASTER_ADDR", "127.0.0.1")
        self.container_addrs = [address, *[""] * (node_count - 1)]
        self.container_slot_counts = [len(self.slot_ids)] * node_count
        self.latest_checkpoint: str | None = newest_checkpoint()
        self.trial = TrialInfo(run_id)

    @property
    def user_data(self) -> dict[str, Any]:
        """The field `data` of the configuration."""
        data: dict[str, Any] = self.trial._config.get("data") or {}
        return data

    @property
    def gpu_uuids(self) -> list[str]:
        return visible_gpus()


def get_cluster_info() -> ClusterInfo | None:
    """Returns what is known about the run of this process, always the same; None outside of runs."""
    run_id = os.environ.get(RUN_ID, "")
    if run_id and run_id not in _infos:
        _infos[run_id] = ClusterInfo()
    return _infos.get(run_id)


def experiment_config() -> dict[str, Any]:
    """Returns what the run knows of the configuration of the experiment."""
    config: dict[str, Any] = json.loads(os.environ.get("DET_EXPERIMENT_CONFIG") or "{}")
    return config


def visible_gpus() -> list[str]:
    return [uuid for uuid in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if uuid]


def _slot_ids() -> list[int]:
    if os.environ.get("DET_SLOT_IDS"):
        return list(json.loads(os.environ["DET_SLOT_IDS"]))
    return list(range(len(visible_gpus())))
