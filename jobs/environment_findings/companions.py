"""Packages that a kind of run needs beside its framework, packages that are named twice, and loggers."""

from __future__ import annotations

from collections.abc import Iterator

from environments.contents.package_set import PackageSet
from environments.imports.scan_process import SourceImports
from environments.requirement_list import repeated_packages
from jobs.environment_findings.missing_modules import Links
from trainhub_launch.errors import SpecError
from trainhub_launch.findings import Finding
from trainhub_launch.spec import RunSpec

FIELD = "environment.name"
MAX_NAMED = 5
# Distributions that write metrics of their own accord, or for a script.
_LOGGERS = (
    *("mlflow", "mlflow-skinny", "tensorboard", "tb-nightly", "tensorboardx", "wandb", "comet-ml", "neptune"),
    *("clearml", "aim", "swanlab", "trackio", "dvclive"),
)
_TRAINING = ("torch", "tensorflow", "keras", "jax", "sklearn", "xgboost", "lightgbm")
_MPI = "mpi"


def mpi_findings(
    spec: RunSpec, packages: PackageSet, imports: SourceImports, links: Links
) -> Iterator[Finding]:
    """Yields what DeepSpeed and Lightning need in an MPI run: without mpi4py they do not learn their rank."""
    if spec.distribution is None or spec.distribution.type != _MPI or packages.has_any("mpi4py"):
        return
    if imports.imports("deepspeed"):
        consequence = "DeepSpeed finds its rank through mpi4py in an MPI run, and fails without it"
    elif imports.imports("lightning", "pytorch_lightning"):
        consequence = (
            "in an MPI run Lightning finds its rank through mpi4py, and each process trains alone without it"
        )
    else:
        return
    link = links(["mpi4py"], "")
    remedy = (
        f"{packages.name} lacks it: add mpi4py"
        if link
        else f"choose an environment that has it, not {packages.name}"
    )
    yield Finding(
        "warning",
        FIELD,
        f"{consequence}; {packages.name} lacks it: {remedy}",
        "Add mpi4py" if link else "",
        link,
    )


def logger_findings(packages: PackageSet, imports: SourceImports, links: Links) -> Iterator[Finding]:
    """Says that no metrics will be logged, if nothing in environment and source could log any."""
    nothing_logs = imports.mentions_logger is False and not packages.has_any(*_LOGGERS)
    if not (nothing_logs and imports.is_complete and not imports.is_opaque and imports.imports(*_TRAINING)):
        return
    # For a curated environment this would be said of every run in it, and a copy may not be possible.
    link = links(["mlflow-skinny"], "") if packages.source else ""
    if link:
        yield Finding(
            "hint",
            FIELD,
            f"{packages.name} lacks mlflow, and the source names no program that logs, so the run will show "
            "no metrics of the training; add mlflow-skinny, and call mlflow.log_metric in the script",
            "Add mlflow-skinny",
            link,
        )


def repeated_package_findings(packages: PackageSet) -> Iterator[Finding]:
    try:
        repeated = repeated_packages(packages.source) if packages.source else {}
    except SpecError:
        # The source is not a list of requirements.
        return
    for name, lines in list(repeated.items())[:MAX_NAMED]:
        numbers = " and ".join(str(line) for line in lines[:2])
        yield Finding(
            "hint",
            FIELD,
            f"lines {numbers} of the requirements of {packages.name} both name {name}; keep one",
        )
