"""The files that scripts bring along: the workspace's configuration, the mapping, lists of packages."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.azureml.stub_hub import StubHub
from trainhub_azureml.conda_dependencies import CondaDependencies
from trainhub_azureml.exceptions import AuthenticationException, UserErrorException
from trainhub_azureml.local_files.conda_yaml import parse_conda
from trainhub_azureml.local_files.mapping import load_mapping
from trainhub_azureml.local_files.toml_subset import parse_subset, parse_toml
from trainhub_azureml.submission.job_package import job_package
from trainhub_azureml.workspace import Workspace

LONG = {"subscription_id": "s", "resource_group": "g", "workspace_name": "team"}
SCOPE = {"Id": None, "Scope": "/subscriptions/s/resourceGroups/g/providers/X/workspaces/team"}
MAPPING = """
# names of this hub
[compute."gpu-V100-2"]
cluster = "dgx"  # two nodes
gpus_per_node = 2

[compute.local]
cluster = 'cpu'

[environment."AzureML-PyTorch-1.6-GPU"]
requirements = [
  "torch==2.13.0",  # new
  "numpy<1.24",
]

[datastore.workspaceblobstore]
path = "/srv/data"
"""


class TestWorkspace:
    @pytest.mark.parametrize("folder", [".azureml", ".", "aml_config"])
    @pytest.mark.parametrize("content", [LONG, SCOPE])
    def test_both_forms_in_all_places(
        self, folder: str, content: dict[str, str], own_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (own_folder / folder).mkdir(exist_ok=True)
        (own_folder / folder / "config.json").write_text(json.dumps(content))
        (own_folder / "a" / "b").mkdir(parents=True)
        monkeypatch.chdir(own_folder / "a" / "b")
        workspace = Workspace.from_config()
        assert (workspace.name, workspace.resource_group, workspace.subscription_id) == ("team", "g", "s")
        assert isinstance(workspace.location, str)

    def test_a_path_and_a_name(self, own_folder: Path) -> None:
        (own_folder / "sub").mkdir()
        (own_folder / "sub" / "other.json").write_text(json.dumps(LONG))
        assert Workspace.from_config(path="sub/other.json").name == "team"
        assert Workspace.from_config(path=own_folder / "sub", _file_name="other.json").name == "team"
        with pytest.raises(UserErrorException, match="there is no nowhere"):
            Workspace.from_config(path="nowhere")

    @pytest.mark.parametrize("text", ["{", "[]", "{}"])
    def test_a_wrong_file(self, text: str, own_folder: Path) -> None:
        (own_folder / "config.json").write_text(text)
        with pytest.raises(UserErrorException, match=r"config\.json"):
            Workspace.from_config()

    def test_without_a_file_it_is_that_of_the_token(self, stub_hub: StubHub) -> None:
        assert Workspace.from_config().name == "vision"

    def test_without_a_hub_it_says_how_to_sign_in(self) -> None:
        with pytest.raises(UserErrorException, match="trainhub login"):
            Workspace.from_config()
        with pytest.raises(AuthenticationException, match="trainhub login"):
            _ = Workspace("s", "g", "w").compute_targets

    def test_writing(self, own_folder: Path) -> None:
        Workspace("s", "g", "w").write_config()
        assert json.loads((own_folder / ".azureml" / "config.json").read_text())["workspace_name"] == "w"
        assert Workspace.from_config().name == "w"

    def test_the_token_for_mlflow_is_not_in_the_address(
        self, stub_hub: StubHub, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "")
        monkeypatch.delenv("MLFLOW_TRACKING_TOKEN")
        assert Workspace("s", "g", "w").get_mlflow_tracking_uri() == stub_hub.url
        assert os.environ["MLFLOW_TRACKING_TOKEN"] == "secret"


class TestMapping:
    def test_what_it_says(self, own_folder: Path) -> None:
        (own_folder / "trainhub-azureml.toml").write_text(MAPPING)
        mapping = load_mapping()
        assert mapping.compute_for("GPU-v100-2") == ("dgx", 2)
        assert mapping.compute_for("local") == ("cpu", None)
        environment = mapping.environment_for("azureml-pytorch-1.6-gpu")
        assert environment is not None
        assert environment.requirements == ("torch==2.13.0", "numpy<1.24")
        assert parse_subset(MAPPING) == parse_toml(MAPPING)

    def test_it_may_lie_beside_the_profiles(self, own_folder: Path) -> None:
        folder = Path(os.environ["HOME"]) / ".config" / "trainhub"
        folder.mkdir(parents=True)
        (folder / "trainhub-azureml.toml").write_text(MAPPING)
        assert load_mapping().compute_for("local") is not None

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ('[computer.x]\ncluster = "a"', "[computer] is none of"),
            ("[compute.x]\ngpus_per_node = 2", "needs cluster"),
            ('[compute.x]\ncluster = "a"\ngpus_per_node = "2"', 'must be a whole number or "all"'),
            ('[compute.x]\ncluster = "a"\ngpus_per_node = -1', "must be a whole number"),
            ('[compute.x]\ncluster = "a"\nnodes = 1', "has nodes, which is none of"),
            ("[environment.x]\n", "needs either use or requirements"),
            ("[compute.x\n", "cannot be read"),
        ],
    )
    def test_what_is_wrong_names_its_place(self, text: str, sentence: str, own_folder: Path) -> None:
        (own_folder / "trainhub-azureml.toml").write_text(text)
        with pytest.raises(UserErrorException) as error:
            load_mapping()
        assert sentence in str(error.value)
        assert "trainhub-azureml.toml" in str(error.value)

    @pytest.mark.parametrize("text", ["x", "x = ", "x = 1.5", "[a", 'x = "1" y', "x = [1, date]"])
    def test_the_subset_refuses_the_rest_with_the_line(self, text: str) -> None:
        with pytest.raises(ValueError, match="line 2"):
            parse_subset(f"\n{text}\n")


class TestPackages:
    def test_a_conda_file(self) -> None:
        text = """name: x  # comment
channels: [conda-forge, 'defaults']
dependencies:
  - python=3.6.2
  - "numpy>=1.2,<2"
  - pip=20
  - pip:
    - torch==1.6.0
    - name @ git+https://host/x#egg=name
    - --extra-index-url https://host
  - scipy
"""
        packages = ["torch==1.6.0", "name @ git+https://host/x#egg=name", "--extra-index-url https://host"]
        assert parse_conda(text) == {
            "name": "x",
            "channels": ["conda-forge", "defaults"],
            "dependencies": ["python=3.6.2", "numpy>=1.2,<2", "pip=20", {"pip": packages}, "scipy"],
        }

    @pytest.mark.parametrize("text", ["a:\n  b: c", "- !!python/x y\nx", "dependencies: [a", "&x\n"])
    def test_what_conda_files_do_not_need_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match="line"):
            parse_conda(text)

    def test_writing_and_reading_gives_the_same(self, own_folder: Path) -> None:
        dependencies = CondaDependencies.create(
            conda_packages=["numpy>=1.2,<2", "conda-forge::scipy"],
            pip_packages=["a[x]==1; python_version > '3'", "name @ git+https://h/x#egg=y", "b>=1"],
            python_version="3.8",
        )
        dependencies.add_channel("pytorch")
        path = dependencies.save_to_file(own_folder, "env.yml")
        assert CondaDependencies(path) == dependencies
        assert dependencies.get_python_version() == "3.8"

    def test_a_package_replaces_another_version_of_it(self) -> None:
        dependencies = CondaDependencies.create(pip_packages=["scikit_learn==1.0"])
        dependencies.add_pip_package("scikit-learn==1.5")
        assert list(dependencies.pip_packages) == ["scikit-learn==1.5"]

    def test_a_file_of_requirements_is_taken_too(self, own_folder: Path) -> None:
        (own_folder / "requirements.txt").write_text("# x\nnumpy==1.0  # y\n\npandas\n")
        dependencies = CondaDependencies("requirements.txt")
        assert list(dependencies.pip_packages) == ["numpy==1.0", "pandas"]


def test_the_package_of_a_job_is_always_the_same() -> None:
    assert job_package() == job_package()
