"""The YAML of conda, as people have it and as attackers write it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from environments.conda.environment_file import read_environment_file
from environments.kinds.conda import CondaKind
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields

FORGE = "https://conda.anaconda.org/conda-forge"
# As Azure ML's documentation has them.
AZURE = """name: project_environment
dependencies:
  - python=3.10
  - pip=20.2.4
  - scikit-learn
  - pip:
    # Required packages for AzureML execution, history, and data preparation.
    - azureml-defaults
    - inference-schema[numpy-support]==1.5
channels:
  - anaconda
  - conda-forge
"""
TRAINING = """channels:
- conda-forge
dependencies:
- python=3.10
- pip
- pip:
  - torch==2.3.0 --hash=sha256:{hash}
  - --extra-index-url https://download.example/whl/cpu
prefix: /opt/miniconda/envs/train
""".replace("{hash}", "a" * 64)


def refused(text: str) -> str:
    with pytest.raises(SpecError) as error:
        CondaKind().check(text)
    assert error.value.field == "conda"
    return error.value.message


class TestReading:
    def test_files_of_azure_ml(self) -> None:
        parsed = read_environment_file(AZURE)
        assert parsed.channels == ("https://conda.anaconda.org/anaconda", FORGE)
        assert parsed.dependencies == ("python=3.10", "pip=20.2.4", "scikit-learn")
        assert parsed.pip is not None
        assert parsed.pip.requirements == ("azureml-defaults", "inference-schema[numpy-support]==1.5")
        training = read_environment_file(TRAINING)
        assert training.dependencies == ("python=3.10", "pip")
        assert training.pip is not None
        assert training.pip.extra_index_urls == ("https://download.example/whl/cpu",)
        assert training.names == ("python=3.10", "pip", "torch==2.3.0")

    def test_channels(self, settings: Any, tmp_path: Path) -> None:
        settings.CONDA_CHANNEL_FOLDERS = [str(tmp_path)]
        channels = f"[nodefaults, defaults, file://{tmp_path}/ours, 'http://mirror/x/']"
        text = f"channels: {channels}\ndependencies: [python]"
        CondaKind().check(text)
        assert read_environment_file(text).channels == (
            "https://repo.anaconda.com/pkgs/main",
            "https://repo.anaconda.com/pkgs/r",
            f"file://{tmp_path}/ours",
            "http://mirror/x",
        )
        assert read_environment_file("dependencies: [python]").channels == (FORGE,)
        settings.CONDA_CHANNEL_ALIAS = "https://mirror.example/conda"
        named = read_environment_file("channels: [conda-forge]\ndependencies: ['conda-forge::numpy >=2,<3']")
        assert named.channels == ("https://mirror.example/conda/conda-forge",)
        assert named.dependencies == ("https://mirror.example/conda/conda-forge::numpy >=2,<3",)

    @pytest.mark.parametrize(
        "dependency",
        ["numpy", "numpy=2.1", "numpy==2.1.0", "'numpy>=2,<3'", "python 3.10.*", "pkg=1.2=py310_0"],
    )
    def test_dependencies(self, dependency: str) -> None:
        parsed = read_environment_file(f"dependencies:\n- {dependency}\n")
        assert parsed.dependencies == (dependency.strip("'"),)

    def test_an_object_is_read_like_the_yaml(self) -> None:
        data = {"channels": ["conda-forge"], "dependencies": ["python=3.10", {"pip": ["torch", "numpy<2"]}]}
        source = CondaKind().read_body(Fields({"conda": data}))
        assert read_environment_file(source).names == ("python=3.10", "torch", "numpy<2")
        assert CondaKind().read_body(Fields({"conda": AZURE})) == AZURE


class TestRefusal:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (
                "dependencies:\n- !!python/object/apply:os.system [id]\n",
                "line 2: the tag '!!python/object/apply:os.system' is",
            ),
            ("a: &a [x]\nb: *a\n", "line 2: *a is not possible here"),
            ("dependencies: " + "[" * 60000, "line 1: has more than 6 levels"),
            ("dependencies:\n- python\n  - pip\n bad: [", "line "),
            ("", "is empty"),
            ("- python\n", "must be a mapping with 'dependencies'"),
            ("channels: [conda-forge]\n", "has no 'dependencies'"),
            ("dependencies: []\n", "names no package of conda"),
            ("dependencies: python\n", "line 1: 'dependencies' must be a list"),
            (
                "dependencies:\n- python\nvariables:\n  A: b\n",
                "line 3: 'variables' has no meaning here: set them as ",
            ),
            ("dependencies: [a]\ndependencies: [b]\n", "line 2: 'dependencies' is given twice"),
            ("dependencies:\n- [a]\n", "line 2: a dependency must be a text"),
            ("dependencies:\n- conda: [a]\n", "line 2: a dependency is a text such as"),
            ("dependencies:\n- pip: [a]\n- pip: [b]\n", "line 3: 'pip:' is given twice"),
            (
                "dependencies:\n- a\n- pip:\n  - b\n  - -e .\n",
                "line 5: -e is not possible here: remove the line",
            ),
            (
                "dependencies:\n- a\n- pip:\n  - -r requirements.txt\n",
                "line 4: -r is not possible here: copy",
            ),
            (
                "dependencies:\n- a\n- pip:\n  - a @ git+https://x/y\n",
                "line 4: nothing below 'pip:' is built",
            ),
            ("dependencies:\n- https://x/y.conda\n", "line 2: a file or an address cannot be installed here"),
            ("dependencies:\n- ./y.tar.bz2\n", "line 2: a file or an address cannot be installed here"),
            ("dependencies:\n- numpy[url=http://x]\n", "line 2: 'numpy[url=http://x]' is not a package"),
            (
                "dependencies:\n- other::numpy\n",
                "line 2: 'other' is not in the list of channels; add it there",
            ),
            ("dependencies:\n- __cuda\n", "line 2: '__cuda' says what the nodes have; give its version"),
            (
                "channels:\n- https://me:pw@host/x\ndependencies: [a]\n",
                "line 2: the address of a channel must not hold",
            ),
            (
                "channels:\n- https://host/t/abc/x\ndependencies: [a]\n",
                "line 2: the address of a channel must not hold",
            ),
            (
                "channels:\n- file:///etc\ndependencies: [a]\n",
                "ask an operator to add the folder (CONDA_CHANNEL_FOLDERS)",
            ),
            ("channels:\n- ftp://host/x\ndependencies: [a]\n", "line 2: 'ftp://host/x' is not a channel"),
            ("channels:\n- https://host:99999/x\ndependencies: [a]\n", "check its port"),
            ("dependencies: [a]\n" + "#" * 140000, "must have at most 128 KiB"),
            ("dependencies: [\x00]\n", "is not YAML: it has a character"),
        ],
    )
    def test_names_line_and_remedy(self, text: str, words: str) -> None:
        started = time.process_time()
        assert words in refused(text)
        assert time.process_time() - started < 1

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (3, "must be an object like the YAML"),
            ({"dependencies": ["a", 3]}, "dependencies, item 2: must be a text"),
            ({"dependencies": {"a": 1}}, "dependencies must be a text or a list"),
            ({"dependencies": [{"pip": [1]}]}, "dependencies, item 1: must be a text"),
            ({"packages": []}, "'packages' has no meaning here"),
        ],
    )
    def test_of_an_object_names_its_place(self, data: object, words: str) -> None:
        with pytest.raises(SpecError) as error:
            CondaKind().read_body(Fields({"conda": data}))
        assert words in error.value.message
