"""An experiment of Determined as runs of a hub."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainhub_sdk.determined import fields
from trainhub_sdk.determined.config import ConfigFinding, ExperimentConfig, load_config
from trainhub_sdk.determined.entrypoint import (
    DEEPSPEED,
    HOROVOD,
    TENSORFLOW,
    TORCH,
    Launch,
    framework_hint,
    read_entrypoint,
)
from trainhub_sdk.determined.placement import SLOTS, Slots, choose_cluster, place_slots, read_priority
from trainhub_sdk.determined.script_imports import mention_imports
from trainhub_sdk.determined.sweep import Sweep, read_trials
from trainhub_sdk.errors import TrainHubError
from trainhub_sdk.job.archive import job_archive, python_path
from trainhub_sdk.spec import Distribution, Mpi, PyTorch, RunSpec, TensorFlow

if TYPE_CHECKING:
    from trainhub_sdk.client import Client
    from trainhub_sdk.records.machines import Cluster, Node
    from trainhub_sdk.run import Run

FILE_NAME = "trainhub_determined.pyz"
IGNORE_FILE = ".detignore"
HYPERPARAMETERS, CONFIGURATION, SLOT_IDS = "DET_HPARAMS", "DET_EXPERIMENT_CONFIG", "DET_SLOT_IDS"
SWEEP_TAG, TRIAL_TAG = "determined.sweep", "determined.trial"


class DeterminedExperiment:
    """`specs`: the RunSpec of each run, as JSON and without its source; `spec`: the first, which is the only
    one unless the experiment searches; `sweep`: how it searches, None if it does not; `findings`: what was
    left out, changed or guessed; `folder`: of the code, None if unknown; `ignore`: the lines of its
    .detignore."""

    def __init__(
        self,
        specs: Sequence[Mapping[str, Any]],
        sweep: Sweep | None,
        findings: Sequence[ConfigFinding],
        folder: Path | None,
    ) -> None:
        self.specs = [dict(spec) for spec in specs]
        self.sweep = sweep
        self.findings = list(findings)
        self.folder = folder
        # The same for each call of `submit`, so that one that was interrupted can be repeated.
        self._id = uuid.uuid4().hex

    @property
    def spec(self) -> dict[str, Any]:
        return self.specs[0]

    @property
    def ignore(self) -> list[str]:
        file = self.folder / IGNORE_FILE if self.folder is not None else None
        return file.read_text(encoding="utf-8").splitlines() if file is not None and file.is_file() else []

    def submit(self, client: Client, folder: str | Path | None = None) -> list[Run]:
        """Submits a run for each spec, of the code in `folder` or in that of the configuration. Runs of a
        search have the tag `determined.sweep` in common. Calling it again makes no second runs. Returns the
        runs. Raises FolderRefused, and HubRefused for what the hub does not take."""
        code = folder or self.folder
        if code is None:
            raise TrainHubError("folder: name the folder of the code, which a dict does not say.")
        source = {"type": "snapshot", "id": client.upload_folder(code, {FILE_NAME: job_package()})}
        return [
            client.submit(
                {**self._with_tags(spec, number), "source": source}, idempotency_key=f"{self._id}{number}"
            )
            for number, spec in enumerate(self.specs, 1)
        ]

    def _with_tags(self, spec: Mapping[str, Any], number: int) -> dict[str, Any]:
        if self.sweep is None:
            return dict(spec)
        tags = {SWEEP_TAG: self._id[:12], TRIAL_TAG: str(number)}
        return {**spec, "tags": {**spec.get("tags", {}), **tags}}


def job_package() -> bytes:
    """Returns the archive with which a run can import `determined`."""
    return job_archive(("trainhub_sdk",), "trainhub_sdk/determined/names/")


def read_experiment(
    config: str | Path | Mapping[str, Any],
    folder: str | Path | None = None,
    *,
    cluster: str = "",
    environment: str = "",
    gpus_per_node: int | None = None,
    seed: int | None = None,
    clusters: Sequence[Cluster] = (),
    nodes: Sequence[Node] = (),
) -> DeterminedExperiment:
    """`config`: a file, YAML or JSON, or what stands in one; `folder`: of the code, by default that of the
    file. `cluster`, `environment`: of the hub. `gpus_per_node`: how many GPUs a node has, by default as the
    `nodes` of the hub have them. `seed`: of the values that a search draws.

    Raises ConfigRefused for what cannot become a spec, and TrainHubError for a file that cannot be read."""
    data = load_config(config)
    if folder is None and data.file:
        folder = Path(data.file).parent
    code = Path(folder) if folder is not None else None
    launch = read_entrypoint(data, code)
    trials = read_trials(data, seed)
    slots = place_slots(data, choose_cluster(data, cluster, clusters), nodes, gpus_per_node)
    spec = _spec(data, launch, slots, environment)
    fields.mention_left_out(data)
    fields.mention_mounts(data)
    framework_hint(data, launch.launcher)
    mention_imports(data, code, launch.fields.get("script", ""))
    data.check()
    specs = [_with_hyperparameters(spec, values) for values in trials.hyperparameters]
    return DeterminedExperiment(specs, trials.sweep, data.findings, code)


def _spec(config: ExperimentConfig, launch: Launch, slots: Slots, environment: str) -> dict[str, Any]:
    has_gpus = slots.gpus_per_node > 0
    fields.mention_image(config, environment, has_gpus=has_gpus)
    variables = fields.read_variables(config, has_gpus=has_gpus)
    variables["PYTHONPATH"] = python_path(variables.get("PYTHONPATH", ""), FILE_NAME)
    variables[CONFIGURATION] = json.dumps(fields.public_config(config), default=str)
    ids = range(slots.slots_per_node if config.get(SLOTS) != 0 else 0)
    variables[SLOT_IDS] = json.dumps(list(ids))
    seed = config.get("reproducibility.experiment_seed")
    if seed is not None:
        variables["DET_TRIAL_SEED"] = str(seed)
    distribution = _distribution(launch, slots)
    spec = RunSpec(
        distribution=distribution,
        cluster=slots.cluster,
        node_count=slots.node_count if slots.node_count > 1 else None,
        gpus_per_node=slots.gpus_per_node,
        environment=environment,
        environment_variables=variables,
        **launch.fields,
    ).to_json()
    # In full: zero is a value here, which the hub would not assume by itself everywhere.
    spec["limits"] = fields.read_limits(config)
    optional = {"priority": read_priority(config), "checkpoint": fields.read_checkpoint(config)}
    return {**spec, **fields.read_names(config), **{key: value for key, value in optional.items() if value}}


def _distribution(launch: Launch, slots: Slots) -> Distribution | None:
    per_node = launch.process_count_per_node or slots.slots_per_node
    if launch.launcher == TORCH:
        backend = "nccl" if slots.gpus_per_node else "gloo"
        return PyTorch(per_node * slots.node_count, slots.node_count, backend)
    if launch.launcher in (DEEPSPEED, HOROVOD):
        return Mpi(per_node, slots.node_count)
    if launch.launcher == TENSORFLOW:
        # One process on each node, which has all its GPUs.
        return TensorFlow(slots.node_count) if slots.node_count > 1 else None
    # A launcher of the user's own, started once on each node.
    return PyTorch(None, slots.node_count) if slots.node_count > 1 else None


def _with_hyperparameters(spec: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    variables = {**spec["environment_variables"], HYPERPARAMETERS: json.dumps(values, default=str)}
    return {**spec, "environment_variables": variables}
