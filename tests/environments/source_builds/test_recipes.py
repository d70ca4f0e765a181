"""What the recipes add for the frameworks of the curated environments, by their real locks."""

from __future__ import annotations

import pytest

from environments.curated import SETS, curated_lock
from environments.lock_file import read_lock
from environments.source_builds.recipe import Recipe, recipe_for

CPP20 = ("-std=c++20",)
WITHOUT_XLA = ("-UTENSORFLOW_VERSION", "-DTENSORFLOW_VERSION=0")
FLAGS = {
    "TrainHub-PyTorch-2.15": [CPP20],
    "TrainHub-PyTorch-2.13": [CPP20],
    "TrainHub-PyTorch-2.12": [CPP20],
    "TrainHub-PyTorch-2.11": [],
    "TrainHub-TensorFlow-2.21": [WITHOUT_XLA],
    "TrainHub-TensorFlow-CUDA-2.21": [WITHOUT_XLA],
    "TrainHub-TensorFlow-CPU-2.21": [WITHOUT_XLA],
    "TrainHub-TensorFlow-2.20": [],
    "TrainHub-TensorFlow-2.19": [],
}


def recipe_of(project: str, version: str) -> Recipe:
    recipe = recipe_for(project, version)
    assert recipe is not None
    return recipe


@pytest.mark.parametrize(("name", "flags"), FLAGS.items())
def test_horovod_is_built_for_the_frameworks_of_each_lock(name: str, flags: list[tuple[str, ...]]) -> None:
    horovod = recipe_of("horovod", "0.28.1")
    locked = {package.name: package.version for package in read_lock(curated_lock(name))}
    is_torch = "PyTorch" in name
    framework = "PYTORCH" if is_torch else "TENSORFLOW"
    other = "TENSORFLOW" if is_torch else "PYTORCH"
    variables = horovod.build_variables(locked)
    assert variables[f"HOROVOD_WITH_{framework}"] == "1"
    assert variables[f"HOROVOD_WITHOUT_{other}"] == "1"
    assert [item.flags for item in horovod.flags_for(locked)] == flags
    (present,) = horovod.present_frameworks(locked)
    module = "horovod.torch" if is_torch else "horovod.tensorflow"
    assert f"import {module} as" in present.check


def test_every_recipe_has_checks_that_are_python() -> None:
    for project, version in (("horovod", "0.28.1"), ("deepspeed", "0.19.8")):
        for framework in recipe_of(project, version).frameworks:
            compile(framework.check, project, "exec")


def test_the_packages_of_the_curated_sets_without_a_wheel_have_recipes() -> None:
    lines = {line for item in SETS for line in item.spec.requirements}
    for project in ("horovod", "deepspeed"):
        versions = {line.partition("==")[2] for line in lines if line.startswith(f"{project}==")}
        assert versions
        assert all(recipe_for(project, version) for version in versions)
