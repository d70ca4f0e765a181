"""The environments that a run can request: an interpreter of the node, or a curated set of packages."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from trainhub_launch.errors import SpecError
from trainhub_launch.machine import Interpreter
from trainhub_launch.order import EnvironmentSpec
from trainhub_launch.spec import EnvironmentRef

SYSTEM = "system"


@dataclass(frozen=True)
class Succession:
    """That a curated environment has a newer `successor` ("" for none), or (`is_deprecated`) that a later
    version of the hub will not have it any more."""

    successor: str = ""
    is_deprecated: bool = False


# By the name of the old environment. It stays in CURATED as long as its runs can be started; none is old now.
SUCCESSIONS: dict[str, Succession] = {}
ONNX = "TrainHub-ONNX-1.23"
_TORCH = "torch==2.13.0"
_SCIENCE = ("numpy", "scikit-learn")
# Logging clients whose metrics the run's page shows.
_LOGGING = ("mlflow-skinny==3.17.*", "tensorboard==2.21.*")
CURATED: tuple[EnvironmentSpec, ...] = (
    EnvironmentSpec(
        name="TrainHub-PyTorch-2.13",
        version="1",
        kind="venv",
        requirements=(_TORCH, *_SCIENCE, *_LOGGING, "mpi4py"),
    ),
    EnvironmentSpec(
        # mpi4py: without it Lightning under MPI takes itself for the only process.
        name="TrainHub-Lightning-2.6",
        version="1",
        kind="venv",
        requirements=(_TORCH, "lightning==2.6.*", *_SCIENCE, *_LOGGING, "mpi4py"),
    ),
    EnvironmentSpec(
        name="TrainHub-Transformers-5",
        version="1",
        kind="venv",
        requirements=(_TORCH, "transformers==5.23.*", "accelerate==1.15.*", *_SCIENCE, *_LOGGING),
    ),
    EnvironmentSpec(
        # ninja: DeepSpeed compiles its operations when they are first used.
        name="TrainHub-DeepSpeed-0.19",
        version="1",
        kind="venv",
        requirements=(_TORCH, "deepspeed==0.19.8", "mpi4py", "ninja", *_SCIENCE),
    ),
    EnvironmentSpec(
        name="TrainHub-Horovod-0.28",
        version="1",
        kind="venv",
        requirements=(_TORCH, "horovod==0.28.1", *_SCIENCE, "mpi4py"),
    ),
    EnvironmentSpec(
        name="TrainHub-Horovod-TensorFlow-0.28",
        version="1",
        kind="venv",
        requirements=("tensorflow==2.21.*", "horovod==0.28.1", *_SCIENCE, "mpi4py"),
    ),
    EnvironmentSpec(
        name="TrainHub-TensorFlow-2.21",
        version="1",
        kind="venv",
        # tf-keras, which `fit` under MultiWorkerMirroredStrategy still needs, requires plain tensorflow: with
        # tensorflow-cpu beside it two builds would lie on top of each other. pandas: MLflow's autologging
        # does not load without.
        requirements=("tensorflow==2.21.*", "tf-keras==2.21.*", *_SCIENCE, *_LOGGING, "pandas"),
    ),
    EnvironmentSpec(
        # What an export needs beside the model's own code; cloudpickle reads the classes that MLflow packs
        # into a model.
        name=ONNX,
        version="1",
        kind="venv",
        requirements=(
            _TORCH,
            "onnx==1.23.*",
            "onnxscript==0.7.*",
            "onnxruntime==1.31.*",
            *_SCIENCE,
            "cloudpickle",
        ),
    ),
)


@dataclass(frozen=True)
class Install:
    """What pip downloads for an environment on a node that has nothing: packages, and bytes of wheels."""

    packages: int
    download_bytes: int


# The wheels that pip chooses from PyPI for CPython 3.11 on Linux (x86-64), measured in November 2026. PyTorch
# brings NVIDIA's libraries.
INSTALLS = {
    "TrainHub-PyTorch-2.13": Install(83, 2_842_000_000),
    "TrainHub-Lightning-2.6": Install(96, 2_848_000_000),
    "TrainHub-Transformers-5": Install(100, 2_867_000_000),
    "TrainHub-DeepSpeed-0.19": Install(49, 2_808_000_000),
    "TrainHub-Horovod-0.28": Install(42, 2_806_000_000),
    "TrainHub-Horovod-TensorFlow-0.28": Install(43, 682_000_000),
    "TrainHub-TensorFlow-2.21": Install(80, 722_000_000),
    ONNX: Install(44, 2_838_000_000),
}
# Package -> what the node needs for it besides pip.
_NEEDS = {
    "deepspeed": (
        "Needs Open MPI on the node, and g++ to compile DeepSpeed's operations when they are first used."
    ),
    "horovod": (
        "Needs Open MPI on the node, and Horovod's wheel where the node's PIP_FIND_LINKS points "
        "(docs/frameworks.md)."
    ),
}


# Packages that no index offers in a form that pip can install alone.
_PREPARED = ("horovod",)


def preparation(name: str) -> str:
    """Returns a sentence about what a node needs before it can build this curated environment; "" for all
    that pip can build alone."""
    requirements = next((item.requirements for item in CURATED if item.name == name), ())
    packages = {requirement.partition("==")[0] for requirement in requirements}
    return " ".join(_NEEDS[package] for package in _PREPARED if package in packages)


def succession_notice(name: str) -> str:
    """Returns a sentence about an environment that is deprecated or has a successor, with what to do; "" for
    all others."""
    succession = SUCCESSIONS.get(name)
    if succession is None:
        return ""
    remedy = (
        f"choose {succession.successor} for new runs"
        if succession.successor
        else "choose another environment for new runs"
    )
    if succession.is_deprecated:
        return f"{name} is deprecated, and a later version of this hub will not have it: {remedy}."
    return f"{name} has a newer successor: {remedy}."


def describe(environment: EnvironmentSpec) -> str:
    """Returns a sentence about the packages of a curated environment and what the node needs for it."""
    return " ".join([f"Packages: {', '.join(environment.requirements)}.", *needs_of(environment)])


def needs_of(environment: EnvironmentSpec) -> list[str]:
    """Returns a sentence for each thing that the environment needs on the node besides pip."""
    packages = {requirement.partition("==")[0] for requirement in environment.requirements}
    return [sentence for package, sentence in _NEEDS.items() if package in packages]


def matching(text: str) -> list[EnvironmentSpec]:
    """Returns the curated environments in whose name or packages each word of the text begins a word, so that
    `run` does not find `onnxruntime`."""
    patterns = [re.compile(rf"(?<![a-z0-9]){re.escape(word)}") for word in text.lower().split()]
    return [
        environment
        for environment in CURATED
        if all(pattern.search(_words_of(environment)) for pattern in patterns)
    ]


def environment_names() -> tuple[str, ...]:
    return (SYSTEM, *(environment.name for environment in CURATED))


def resolve(ref: EnvironmentRef, interpreters: Collection[Interpreter]) -> EnvironmentSpec:
    """Returns the environment for `ref` on a node that has `interpreters`.

    Raises SpecError with the available names or versions if there is no such environment."""
    if ref.name == SYSTEM:
        return _system(ref.version, interpreters)
    matches = [environment for environment in CURATED if environment.name == ref.name]
    if not matches:
        raise SpecError(
            "environment.name",
            f"{ref.name!r} is not an environment; choose one of {', '.join(environment_names())}",
        )
    for environment in matches:
        if ref.version in ("", environment.version):
            return environment
    versions = ", ".join(environment.version for environment in matches)
    raise SpecError("environment.version", f"{ref.name} has no version {ref.version!r}; it has {versions}")


def _words_of(environment: EnvironmentSpec) -> str:
    return " ".join((environment.name, *environment.requirements)).lower()


def _system(version: str, interpreters: Collection[Interpreter]) -> EnvironmentSpec:
    if not version:
        return EnvironmentSpec(name=SYSTEM, version="", kind="system")
    for interpreter in interpreters:
        exact = version in (interpreter.path, interpreter.version)
        if exact or interpreter.version.startswith(f"{version}."):
            return EnvironmentSpec(
                name=SYSTEM, version=interpreter.version, kind="system", python=interpreter.path
            )
    has = ", ".join(f"{item.version} ({item.path})" for item in interpreters) or "none"
    raise SpecError("environment.version", f"no Python {version!r} is on the chosen node; it has {has}")
