from __future__ import annotations

import pytest

from environments import catalog, changes, curated
from environments.kinds.pip import PYPI
from tests.environments.locks import LOCK, failed, locked
from tests.people import make_workspace
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import Interpreter
from trainhub_launch.spec import EnvironmentRef
from workspaces.access import Principal
from workspaces.models import Workspace

HERE = (Interpreter("/usr/bin/python3", "3.11.7"), Interpreter("/opt/python3.12/bin/python", "3.12.1"))


class TestSystem:
    def test_without_a_version_is_the_nodes_own_choice(self, workspace: Workspace) -> None:
        assert catalog.resolve(EnvironmentRef("system"), HERE, workspace).python == ""

    @pytest.mark.parametrize("version", ["3.12", "3.12.1", "/opt/python3.12/bin/python"])
    def test_takes_the_interpreter_that_is_meant(self, version: str, workspace: Workspace) -> None:
        assert (
            catalog.resolve(EnvironmentRef("system", version), HERE, workspace).python
            == "/opt/python3.12/bin/python"
        )

    def test_does_not_take_3_1_for_3_11(self, workspace: Workspace) -> None:
        with pytest.raises(
            SpecError, match=r"no Python '3\.1' .* it has 3\.11\.7 \(/usr/bin/python3\)"
        ) as error:
            catalog.resolve(EnvironmentRef("system", "3.1"), HERE, workspace)
        assert error.value.field == "environment.version"


class TestCurated:
    def test_has_its_packages(self, workspace: Workspace) -> None:
        environment_spec = catalog.resolve(EnvironmentRef("TrainHub-PyTorch-2.13"), (), workspace)
        assert "torch==2.13.0" in environment_spec.requirements
        assert environment_spec.kind == "venv"

    def test_a_version_that_is_not_there_names_those_that_are(self, workspace: Workspace) -> None:
        with pytest.raises(SpecError, match="it has 1"):
            catalog.resolve(EnvironmentRef("TrainHub-PyTorch-2.13", "9"), (), workspace)

    def test_an_unknown_name_lists_all(self, workspace: Workspace) -> None:
        with pytest.raises(SpecError, match=r"system, TrainHub-PyTorch-2\.13"):
            catalog.resolve(EnvironmentRef("nope"), (), workspace)

    def test_names_are_told_once_each(self, workspace: Workspace) -> None:
        assert len(set(catalog.environment_names(workspace))) == len(catalog.environment_names(workspace))

    def test_says_what_a_node_must_bring_besides_pip(self, workspace: Workspace) -> None:
        sentences = {environment.name: curated.describe(environment) for environment in curated.CURATED}
        assert sentences["TrainHub-PyTorch-2.13"].endswith("mpi4py.")
        assert "Open MPI on the node, and g++" in sentences["TrainHub-DeepSpeed-0.19"]
        assert "builds Horovod from source, once" in sentences["TrainHub-Horovod-0.28"]
        assert "builds Horovod from source, once" in sentences["TrainHub-Horovod-TensorFlow-0.28"]


class TestOwn:
    def test_without_a_version_is_the_newest_locked_one(self, who: Principal) -> None:
        locked(who)
        locked(who)
        failed(who)
        changes.create_version(who, "mine", "pip", "x", "3.11")
        environment_spec = catalog.resolve(EnvironmentRef("mine"), HERE, who.workspace)
        assert (environment_spec.version, environment_spec.lock, environment_spec.requirements) == (
            "2",
            LOCK,
            ("tinylib==1.0",),
        )
        assert (environment_spec.kind, environment_spec.python) == ("venv", "/usr/bin/python3")

    def test_names_its_python_and_what_the_node_has(self, who: Principal) -> None:
        locked(who, python="3.10")
        with pytest.raises(
            SpecError, match=r"mine 1 needs Python 3\.10, .* it has 3\.11\.7 \(/usr/bin/python3\), 3\.12\.1"
        ) as error:
            catalog.resolve(EnvironmentRef("mine"), HERE, who.workspace)
        assert error.value.field == "environment.version"

    def test_that_is_not_locked_says_so(self, who: Principal) -> None:
        changes.create_version(who, "mine", "pip", "x", "3.11")
        failed(who)
        for ref, words in (
            (EnvironmentRef("mine", "1"), "mine 1 is still being resolved; submit again when it is locked"),
            (EnvironmentRef("mine"), r"mine 2 could not be resolved \(No index has a package x\); edit it"),
            (EnvironmentRef("mine", "3"), "mine has no version '3'; it has 2, 1"),
            (EnvironmentRef("nope"), "'nope' is not an environment; choose one of system, mine, TrainHub"),
        ):
            with pytest.raises(SpecError, match=words):
                catalog.find(ref, who.workspace)

    def test_is_not_found_by_another_workspace(self, who: Principal) -> None:
        locked(who)
        other = make_workspace("other")
        assert "mine" not in catalog.environment_names(other)
        with pytest.raises(SpecError, match="is not an environment"):
            catalog.find(EnvironmentRef("mine"), other)

    def test_gives_its_indexes_to_agents_that_do_not_read_locks(self, who: Principal) -> None:
        locked(who, "a", "-i http://a/s\n--extra-index-url http://b/s\nx")
        locked(who, "b", "--extra-index-url http://b/s\nx")
        locked(who, "c", "x")
        index_urls = [catalog.find(EnvironmentRef(name), who.workspace).index_urls for name in "abc"]
        assert index_urls == [("http://a/s", "http://b/s"), (PYPI, "http://b/s"), ()]
