"""The software a run can ask for: an interpreter of the node, or a curated set of packages."""

from __future__ import annotations

from collections.abc import Collection

from trainhub_launch.errors import SpecError
from trainhub_launch.order import EnvironmentSpec
from trainhub_launch.report import Interpreter
from trainhub_launch.spec import EnvironmentRef

SYSTEM = "system"
CURATED: tuple[EnvironmentSpec, ...] = (
    EnvironmentSpec(
        name="TrainHub-PyTorch-2.13",
        version="1",
        kind="venv",
        requirements=("torch==2.13.0", "numpy", "scikit-learn", "mpi4py"),
    ),
    EnvironmentSpec(
        name="TrainHub-TensorFlow-2.21",
        version="1",
        kind="venv",
        # tf-keras, which `fit` under MultiWorkerMirroredStrategy still needs, requires plain tensorflow: with
        # tensorflow-cpu beside it two builds would lie on top of each other.
        requirements=("tensorflow==2.21.*", "tf-keras==2.21.*", "numpy", "scikit-learn"),
    ),
)


def names() -> tuple[str, ...]:
    return (SYSTEM, *(environment.name for environment in CURATED))


def resolve(ref: EnvironmentRef, interpreters: Collection[Interpreter]) -> EnvironmentSpec:
    """What `ref` stands for on a node that has `interpreters`; raises SpecError naming what there is instead."""
    if ref.name == SYSTEM:
        return _system(ref.version, interpreters)
    found = [environment for environment in CURATED if environment.name == ref.name]
    if not found:
        raise SpecError("environment.name", f"{ref.name!r} is not an environment; choose one of {', '.join(names())}")
    for environment in found:
        if ref.version in ("", environment.version):
            return environment
    versions = ", ".join(environment.version for environment in found)
    raise SpecError("environment.version", f"{ref.name} has no version {ref.version!r}; it has {versions}")


def _system(version: str, interpreters: Collection[Interpreter]) -> EnvironmentSpec:
    if not version:
        return EnvironmentSpec(name=SYSTEM, version="", kind="system")
    for interpreter in interpreters:
        exact = version in (interpreter.path, interpreter.version)
        if exact or interpreter.version.startswith(f"{version}."):
            return EnvironmentSpec(name=SYSTEM, version=interpreter.version, kind="system", python=interpreter.path)
    has = ", ".join(f"{item.version} ({item.path})" for item in interpreters) or "none"
    raise SpecError("environment.version", f"no Python {version!r} is on the chosen node; it has {has}")
