"""The fields of an experiment that need no decision: those with a counterpart in a spec, and those that are
left out, each with what the user must know."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trainhub_sdk.determined.config import ERROR, HINT, WARNING, ExperimentConfig

NOTE_TAG = "mlflow.note.content"
DEFAULT_RESTARTS = 5
MAX_NAME, MAX_RETRIES, MAX_GRACE_S, MAX_KEPT = 200, 100, 3600, 100
_NOT_IN_EXPERIMENT = re.compile(r"[^A-Za-z0-9 ._-]")
_MACHINES = {"cuda", "gpu", "cpu", "rocm"}
_OF_THE_LOOP = "only Determined's own training loop reads it: the script decides."
_OF_THE_CLUSTER = "is left out: it is for a cluster of Determined."
_TRANSLATED = [
    "name",
    "description",
    "labels",
    "workspace",
    "project",
    "entrypoint",
    "data",
    "hyperparameters",
    "searcher",
    "max_restarts",
    "preemption_timeout",
    "reproducibility",
    "resources",
    "environment",
    "bind_mounts",
    "checkpoint_storage",
]
_LEFT_OUT: Mapping[str, tuple[str, str]] = {
    "debug": (HINT, "is left out: the script sets its own logging."),
    "profiling": (HINT, "is left out: the hub always records GPUs and nodes, on the tab Metrics."),
    "retention_policy": (HINT, "is left out: the hub keeps logs as its operator has set it."),
    "log_policies": (WARNING, "is left out: a cause of a failure is named on the page of the run."),
    "integrations": (WARNING, "is left out: webhooks are set in the workspace, data are inputs of the run."),
    "slurm": (WARNING, _OF_THE_CLUSTER),
    "pbs": (WARNING, _OF_THE_CLUSTER),
    **dict.fromkeys(
        [
            "checkpoint_policy",
            "min_checkpoint_period",
            "min_validation_period",
            "perform_initial_validation",
            "scheduling_unit",
            "records_per_epoch",
            "optimizations",
            "tensorboard_storage",
        ],
        (HINT, _OF_THE_LOOP),
    ),
}
_RESOURCES: Mapping[str, tuple[str, str]] = {
    "weight": (HINT, "is left out: the share of a group is set by an operator (docs/fair-share.md)."),
    "native_parallel": (HINT, "is left out: it was removed from Determined."),
    "agent_label": (WARNING, "is left out: cluster= chooses the machines."),
    "shm_size": (HINT, "is left out: runs in containers have the shared memory of their node."),
    "devices": (WARNING, "is left out: a run gets its GPUs, and no further devices."),
}
_KNOWN_RESOURCES = ("slots_per_trial", "resource_pool", "priority", "max_slots", "is_single_node")
_ENVIRONMENT: Mapping[str, tuple[str, str]] = {
    "force_pull_image": (HINT, "is left out: an environment of an image has a fixed digest."),
    "registry_auth": (WARNING, "is left out: a registry's sign-in is given to the environment, as a secret."),
    "pod_spec": (WARNING, _OF_THE_CLUSTER),
    "add_capabilities": (WARNING, "is left out: runs get no further rights."),
    "drop_capabilities": (HINT, "is left out: runs have no rights of their own."),
    "proxy_ports": (WARNING, "is left out: the hub forwards no ports of runs."),
    "ports": (WARNING, "is left out: the hub forwards no ports of runs."),
}


def mention_left_out(config: ExperimentConfig) -> None:
    """Adds a finding for each field that has no counterpart."""
    for name in config.values:
        if name in _LEFT_OUT:
            config.add(*_reordered(str(name), _LEFT_OUT[name]))
        elif name not in _TRANSLATED:
            config.add(WARNING, str(name), "is left out: it is no field of an experiment that is known.")
    for part, table, translated in (
        ("resources", _RESOURCES, _KNOWN_RESOURCES),
        ("environment", _ENVIRONMENT, ("image", "environment_variables")),
    ):
        for name in config.mapping(part):
            unknown = (WARNING, "is left out: it is no field that is known.")
            if name not in translated:
                config.add(*_reordered(f"{part}.{name}", table.get(name, unknown)))


def read_names(config: ExperimentConfig) -> dict[str, Any]:
    """Returns display_name, experiment and tags."""
    name = str(config.get("name", ""))
    project = str(config.get("project", "") or name)
    experiment = _NOT_IN_EXPERIMENT.sub("_", project).strip(" ._-")[:128].strip()
    if project and experiment != project:
        field = "project" if config.get("project") else "name"
        config.add(HINT, field, f"the experiment is called {experiment or 'default'!r} on the hub.")
    if config.get("workspace"):
        config.add(HINT, "workspace", "is left out: the token of the hub belongs to a workspace.")
    labels = config.get("labels", [])
    tags = {str(label): "" for label in labels} if isinstance(labels, list) else {}
    if config.get("description"):
        tags[NOTE_TAG] = str(config.get("description"))
    fields = {"display_name": name[:MAX_NAME], "experiment": experiment, "tags": tags}
    return {key: value for key, value in fields.items() if value}


def read_limits(config: ExperimentConfig) -> dict[str, int]:
    """Returns the field limits. Determined tries a trial again five times unless it is told otherwise."""
    retries = config.integer("max_restarts", DEFAULT_RESTARTS)
    if config.get("max_restarts") is None:
        config.add(HINT, "max_restarts", f"is {retries}, as Determined has it where nothing is said.")
    limits = {"retries": min(retries, MAX_RETRIES)}
    if config.get("preemption_timeout") is not None:
        grace_s = config.integer("preemption_timeout", MAX_GRACE_S, least=1)
        limits["grace_s"] = min(grace_s, MAX_GRACE_S)
    return limits


def read_variables(config: ExperimentConfig, *, has_gpus: bool) -> dict[str, str]:
    """Returns the variables of `environment.environment_variables`, a list of NAME=VALUE or one for each
    kind of machine."""
    field = "environment.environment_variables"
    value = config.get(field, [])
    if isinstance(value, Mapping) and set(value) <= _MACHINES:
        value = _of_machine(value, has_gpus) or []
    if not isinstance(value, list):
        config.add(ERROR, field, "must be a list of NAME=VALUE, or such lists for cuda and cpu.")
        return {}
    variables = {}
    for number, item in enumerate(value):
        name, separator, text = str(item).partition("=")
        if separator:
            variables[name] = text
        else:
            config.add(WARNING, f"{field}.{number}", f"{name} has no value, and is left out.")
    return variables


def mention_image(config: ExperimentConfig, environment: str, *, has_gpus: bool) -> None:
    """Says what becomes of the image. `environment`: of the hub, chosen by the user."""
    image = config.get("environment.image")
    if isinstance(image, Mapping):
        image = _of_machine(image, has_gpus)
    if image and not environment:
        config.add(
            WARNING,
            "environment.image",
            f"{image} is not used: environment= names an environment of the hub, which may be made of this "
            "image (docs/environments.md).",
        )
    elif not environment:
        text = (
            "Determined's image brought its libraries: environment= names an environment with those needed."
        )
        config.add(WARNING, "environment", text)


def read_checkpoint(config: ExperimentConfig) -> dict[str, int]:
    """Returns the field checkpoint."""
    storage = config.mapping("checkpoint_storage")
    if not storage:
        return {}
    text = "is left out: the hub keeps checkpoints, or a datastore that the spec names (docs/checkpoints.md)."
    config.add(HINT, "checkpoint_storage", text)
    names = [name for name in ("save_trial_latest", "save_trial_best") if name in storage]
    count = sum(config.integer(f"checkpoint_storage.{name}", 1) for name in names)
    return {"keep": min(max(count, 1), MAX_KEPT)} if names else {}


def mention_mounts(config: ExperimentConfig) -> None:
    """Says for each mounted folder what the script and the nodes must do."""
    mounts = config.get("bind_mounts", [])
    for number, mount in enumerate(mounts if isinstance(mounts, list) else []):
        host, inside = (
            (mount.get("host_path"), mount.get("container_path")) if isinstance(mount, Mapping) else ("", "")
        )
        field = f"bind_mounts.{number}"
        if host == inside:
            config.add(WARNING, field, f"{host} must exist on the nodes, or be an input of the run.")
        else:
            text = f"nothing is mounted: let the script read {host} of the nodes, not {inside}, or an input."
            config.add(WARNING, field, text)


def public_config(config: ExperimentConfig) -> dict[str, Any]:
    """Returns what scripts read of their configuration in the run, without secrets."""
    public = {
        name: config.values[name]
        for name in ("name", "data", "searcher", "hyperparameters")
        if name in config.values
    }
    data = config.get("data", {})
    if isinstance(data, Mapping) and data.get("secrets"):
        public["data"] = {key: value for key, value in data.items() if key != "secrets"}
        config.add(
            WARNING,
            "data.secrets",
            "is left out, the spec would show it: store it as a secret of the hub, and name that in a "
            "variable (docs/secrets.md).",
        )
    return public


def _of_machine(values: Mapping[str, Any], has_gpus: bool) -> Any:
    """Returns the value for the kind of machine that the run gets, None if there is none."""
    kinds = ("cuda", "gpu") if has_gpus else ("cpu",)
    return next((values[kind] for kind in kinds if values.get(kind)), None)


def _reordered(name: str, row: tuple[str, str]) -> tuple[str, str, str]:
    severity, message = row
    return severity, name, message
