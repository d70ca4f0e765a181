from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.azureml.hyperdrive.search_hub import SearchHub
from tests.azureml.stub_hub import StubHub, serving
from trainhub_azureml import environment, notices
from trainhub_azureml.data import dry_run_data
from trainhub_azureml.hyperdrive import process_end, search_driver
from trainhub_azureml.lazy_names import OtherModules
from trainhub_azureml.runner import NAMES


@pytest.fixture(scope="module")
def stub_server() -> Iterator[StubHub]:
    with serving() as hub:
        yield hub


@pytest.fixture
def stub_hub(stub_server: StubHub, monkeypatch: pytest.MonkeyPatch) -> StubHub:
    """The hub of this process, as new."""
    url = stub_server.url
    stub_server.__init__()  # type: ignore[misc]
    stub_server.url = url
    monkeypatch.setenv("TRAINHUB_URL", url)
    monkeypatch.setenv("TRAINHUB_TOKEN", "secret")
    return stub_server


@pytest.fixture
def search_hub(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SearchHub]:
    """The hub of this process, for searches, with a script `train.py` in the current folder."""
    (own_folder / "train.py").write_text("print(1)\n")
    monkeypatch.setattr(search_driver, "FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(search_driver, "LONGEST_PAUSE_S", 0.02)
    hub = SearchHub()
    with serving(hub):
        monkeypatch.setenv("TRAINHUB_URL", hub.url)
        monkeypatch.setenv("TRAINHUB_TOKEN", "secret")
        yield hub
        # What a test has left may not go on beside the next one, nor keep this process.
        for driver in process_end._drivers:
            driver._is_over.set()


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder and a home without anything."""
    for name in [name for name in os.environ if name.startswith(("TRAINHUB_", "MLFLOW_", "AZUREML_"))]:
        if name != "TRAINHUB_TEST_CACHE":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setattr(notices, "_printed", set())
    for module, memory in (
        (dry_run_data, "_uploaded"),
        (dry_run_data, "_registered"),
        (environment, "_registered"),
    ):
        monkeypatch.setattr(module, memory, {})
    return project


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`import azureml` finds the names of this package."""
    monkeypatch.syspath_prepend(NAMES)
    yield
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not OtherModules]
    for name in [name for name in sys.modules if name.split(".")[0] == "azureml"]:
        del sys.modules[name]


@pytest.fixture
def execute(names: None, own_folder: Path) -> Callable[[str], dict[str, Any]]:
    """Executes the text of a script that submits. Returns its variables."""

    def run(text: str) -> dict[str, Any]:
        variables: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(text, "submit.py", "exec"), variables)  # noqa: S102 - a script of the user
        return variables

    return run
