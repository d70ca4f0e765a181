from __future__ import annotations

from packaging.requirements import Requirement

from environments import curated
from environments.contents.package_set import FOLDER, packages_of_environment
from environments.imports.distributions import (
    distribution_for,
    is_known_distribution,
    is_namespace,
    providers_of,
)
from environments.imports.standard_library import is_standard
from environments.requirement_list import repeated_packages, with_requirement
from tests.environments.locks import failed, locked
from trainhub_launch.spec import EnvironmentRef
from workspaces.access import Principal
from workspaces.models import Workspace


def test_lists_of_curated_environments_hold_what_these_name(workspace: Workspace) -> None:
    """`.ci/curated-packages` makes them anew."""
    names = {f"{item.name}.{item.version}.txt" for item in curated.CURATED}
    assert {path.name for path in FOLDER.glob("*.txt")} <= names
    for item in curated.CURATED:
        if (FOLDER / f"{item.name}.{item.version}.txt").exists():
            packages = packages_of_environment(EnvironmentRef(item.name), workspace, "3.11.7")
            assert packages is not None
            for requirement in map(Requirement, item.requirements):
                assert requirement.specifier.contains(packages.versions[requirement.name]), requirement


def test_packages_of_a_curated_environment_depend_on_python(workspace: Workspace) -> None:
    def versions(python: str) -> object:
        packages = packages_of_environment(EnvironmentRef("TrainHub-PyTorch-2.13"), workspace, python)
        return packages and packages.has_any("exceptiongroup")

    # Not known for a Python for which the list was not resolved, and without any.
    assert [versions(python) for python in ("3.10.4", "3.11.7", "3.9.2", "")] == [True, False, None, None]


def test_packages_of_an_own_environment_are_those_of_its_lock(who: Principal) -> None:
    locked(who)
    failed(who, "other")
    packages = packages_of_environment(EnvironmentRef("mine"), who.workspace, "")
    assert packages is not None
    assert (packages.name, packages.python, dict(packages.versions)) == ("mine 1", "3.11", {"tinylib": "1.0"})
    for name in ("other", "system", "nope"):
        assert packages_of_environment(EnvironmentRef(name), who.workspace, "3.11.7") is None


def test_names_of_distributions() -> None:
    pairs = {
        "cv2": "opencv-python-headless",
        "yaml": "pyyaml",
        "sklearn.datasets": "scikit-learn",
        "apex": "",
    }
    assert {module: distribution_for(module) for module in pairs} == pairs
    assert distribution_for("some_thing.inner") == "some-thing"
    assert providers_of("torch.utils.tensorboard.SummaryWriter") == ("tensorboard", "tb-nightly")
    assert providers_of("some_thing") is None
    assert is_namespace("google")
    assert not is_namespace("torch")
    assert is_known_distribution("nvidia-cuda-runtime")
    assert not is_known_distribution("acme-training")


def test_the_standard_library_by_version() -> None:
    assert is_standard("imp", "3.11")
    assert not is_standard("imp", "3.12")
    assert is_standard("tomllib", "3.11")
    assert not is_standard("tomllib", "3.10")
    assert is_standard("json", "3.13")


def test_changes_of_requirements() -> None:
    text = "# mine\nNumPy==2.1.0 \\\n    --hash=sha256:" + "a" * 64 + "\ntorch\n"
    assert with_requirement(text, "numpy<2") == "# mine\nnumpy<2\ntorch"
    assert with_requirement(text, "pandas").splitlines()[-2:] == ["torch", "pandas"]
    assert with_requirement("", "pandas") == "pandas"


def test_packages_that_are_named_twice() -> None:
    text = (
        "numpy\ntorch; python_version < '3.9'\n-i https://a/simple\nNumPy<2\ntorch; python_version >= '3.9'"
    )
    assert repeated_packages(text) == {"numpy": [1, 4]}
