"""A dry run makes nothing on the hub, and knows what the script has uploaded and registered."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.azureml.stub_hub import StubHub
from trainhub_azureml.exceptions import UserErrorException

Execute = Callable[[str], dict[str, Any]]
BEGIN = """
from azureml.core import Dataset, Environment, Experiment, ScriptRunConfig, Workspace
ws = Workspace.get('team')
store = ws.get_default_datastore()
def submit(**others):
    Experiment(ws, 'birds').submit(ScriptRunConfig('src', 'train.py', compute_target='cpu', **others))
"""
DATA = """
store.upload(src_dir='./data', target_path='birds')
assert Dataset.File.from_files((store, 'birds/*.csv')).to_path() == ['/a.csv', '/b.csv']
files = Dataset.File.from_files((store, 'birds'))
assert 'my birds' not in ws.datasets
files.register(ws, 'my birds', description='all', tags={'year': 2024})
assert files.name is None
birds = ws.datasets['my birds']
assert (birds.name, birds.version, birds.tags) == ('my birds', None, {'year': '2024'})
submit(arguments=[Dataset.get_by_name(ws, 'my birds').as_named_input('birds').as_mount()])
"""
ENVIRONMENT = """
own = Environment('my-birds')
own.python.conda_dependencies.add_pip_package('torch')
own.register(ws)
own.python.conda_dependencies.add_pip_package('pillow')
assert 'my-birds' in ws.environments
submit(environment=Environment.get(ws, 'my-birds'))
"""


@pytest.fixture(autouse=True)
def project(own_folder: Path, stub_hub: StubHub, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("src/train.py", "data/a.csv", "data/b.csv"):
        path = own_folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x\n1\n")
    monkeypatch.setenv("TRAINHUB_DRY_RUN", "1")


@pytest.fixture(params=[True, False], ids=["with-hub", "without-hub"])
def is_hub_known(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    is_known: bool = request.param
    if not is_known:
        monkeypatch.delenv("TRAINHUB_URL")
        monkeypatch.delenv("TRAINHUB_TOKEN")
    return is_known


def test_files_and_datasets_are_known(
    is_hub_known: bool, execute: Execute, stub_hub: StubHub, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        execute(BEGIN + DATA)
    spec, _ = json.JSONDecoder().raw_decode(capsys.readouterr().out)
    assert ("birds" in spec["inputs"], stub_hub.data.datasets) == (True, {})
    if is_hub_known:
        assert spec["inputs"] == {"birds": {"dataset": "my-birds", "mode": "download"}}


def test_environments_are_known(
    is_hub_known: bool, execute: Execute, stub_hub: StubHub, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        execute(BEGIN + ENVIRONMENT)
    output = capsys.readouterr()
    spec, end = json.JSONDecoder().raw_decode(output.out)
    body, _ = json.JSONDecoder().raw_decode(output.out, output.out.index("{", end))
    assert spec["environment"]["name"] == "my-birds"
    assert body["requirements"] == ["torch"]
    assert "The environment my-birds is not registered in a dry run." in output.err
    assert stub_hub.bodies("/api/v1/environments/") == []


def test_what_nothing_has_registered_is_not_there(execute: Execute) -> None:
    with pytest.raises(UserErrorException, match="There is no dataset birds on the hub"):
        execute(BEGIN + "Dataset.get_by_name(ws, 'birds')")
    with pytest.raises(UserErrorException, match="There is no environment birds on the hub"):
        execute(BEGIN + "Environment.get(ws, 'birds')")


def test_a_run_of_the_script_itself_is_not_opened(
    execute: Execute, stub_hub: StubHub, capsys: pytest.CaptureFixture[str]
) -> None:
    names = execute(BEGIN + "with Experiment(ws, 'here').start_logging() as run:\n    run.log('loss', 0.5)\n")
    assert names["run"].id.startswith("OfflineRun_")
    output = capsys.readouterr()
    assert (output.out, "no run was opened (TRAINHUB_DRY_RUN)" in output.err) == ("loss: 0.5\n", True)
    assert stub_hub.requests == []
