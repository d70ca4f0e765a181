from __future__ import annotations

import pytest

from jobs import environments
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import Interpreter
from trainhub_launch.spec import EnvironmentRef

HERE = (Interpreter("/usr/bin/python3", "3.11.7"), Interpreter("/opt/python3.12/bin/python", "3.12.1"))


class TestSystem:
    def test_without_a_version_is_the_nodes_own_choice(self) -> None:
        assert environments.resolve(EnvironmentRef("system"), HERE).python == ""

    @pytest.mark.parametrize("version", ["3.12", "3.12.1", "/opt/python3.12/bin/python"])
    def test_takes_the_interpreter_that_is_meant(self, version: str) -> None:
        assert (
            environments.resolve(EnvironmentRef("system", version), HERE).python
            == "/opt/python3.12/bin/python"
        )

    def test_does_not_take_3_1_for_3_11(self) -> None:
        with pytest.raises(
            SpecError, match=r"no Python '3\.1' .* it has 3\.11\.7 \(/usr/bin/python3\)"
        ) as error:
            environments.resolve(EnvironmentRef("system", "3.1"), HERE)
        assert error.value.field == "environment.version"


class TestCurated:
    def test_has_its_packages(self) -> None:
        found = environments.resolve(EnvironmentRef("TrainHub-PyTorch-2.13"), ())
        assert "torch==2.13.0" in found.requirements
        assert found.kind == "venv"

    def test_a_version_that_is_not_there_names_those_that_are(self) -> None:
        with pytest.raises(SpecError, match="it has 1"):
            environments.resolve(EnvironmentRef("TrainHub-PyTorch-2.13", "9"), ())

    def test_an_unknown_name_lists_all(self) -> None:
        with pytest.raises(SpecError, match=r"system, TrainHub-PyTorch-2\.13"):
            environments.resolve(EnvironmentRef("nope"), ())

    def test_names_are_told_once_each(self) -> None:
        assert len(set(environments.environment_names())) == len(environments.environment_names())

    def test_says_what_a_node_must_bring_besides_pip(self) -> None:
        said = {environment.name: environments.describe(environment) for environment in environments.CURATED}
        assert said["TrainHub-PyTorch-2.13"].endswith("mpi4py.")
        assert "Open MPI on the node, and g++" in said["TrainHub-DeepSpeed-0.19"]
        assert "PIP_FIND_LINKS" in said["TrainHub-Horovod-0.28"]
        assert "PIP_FIND_LINKS" in said["TrainHub-Horovod-TensorFlow-0.28"]
