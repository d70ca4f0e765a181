"""Data among the arguments of a run becomes inputs and outputs of its spec."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.azureml.stub_hub import StubHub

Execute = Callable[[str], dict[str, Any]]
BEGIN = """
from azureml.core import Dataset, Datastore, Environment, Experiment, ScriptRunConfig, Workspace
from azureml.core.runconfig import DataReferenceConfiguration, RunConfiguration
from azureml.data import OutputFileDatasetConfig
from azureml.data.data_reference import DataReference
ws = Workspace.from_config()
store = ws.get_default_datastore()
def submit(*arguments, **others):
    if arguments:
        others.update(script='train.py', arguments=list(arguments))
    config = ScriptRunConfig(source_directory='src', compute_target='cpu', **others)
    return Experiment(ws, 'birds').submit(config)
"""
UPLOAD = "store.upload(src_dir='./data', target_path='birds', overwrite=True, show_progress=True)\n"


@pytest.fixture(autouse=True)
def project(own_folder: Path, stub_hub: StubHub) -> Path:
    files = {
        "src/train.py": "",
        "config.json": json.dumps({"subscription_id": "s", "resource_group": "g", "workspace_name": "team"}),
        "data/2024/owl.txt": "hoot",
        "data/a.csv": "x,y\n1,2\n",
        "data/b.csv": "x,y\n3,4\n",
    }
    for name, text in files.items():
        path = own_folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    stub_hub.data.datastores = {
        "share": {"name": "share", "kind": "folder", "path": "/mnt/share"},
        "team": {"name": "team", "kind": "azure_blob", "account": "acc", "container": "team"},
        "uploads": {"name": "uploads", "kind": "hub"},
    }
    return own_folder


def spec_of(hub: StubHub) -> dict[str, Any]:
    """The fields of the last spec that data has to do with."""
    spec = hub.bodies("/api/v1/runs/")[-1]
    data = spec["environment_variables"].get("AZUREML_RUN_DATA")
    fields = {name: spec[name] for name in ("arguments", "command", "inputs", "outputs") if name in spec}
    return {**fields, **({"data": json.loads(data)} if data else {})}


class TestFiles:
    def test_that_were_uploaded_become_a_dataset_and_are_sent_once(
        self, execute: Execute, stub_hub: StubHub
    ) -> None:
        text = (
            "submit('--data', Dataset.File.from_files((store, 'birds')).as_named_input('birds').as_mount())"
        )
        for _ in range(2):
            execute(BEGIN + UPLOAD + text)
            assert spec_of(stub_hub) == {
                "arguments": ["--data", "$TRAINHUB_INPUT_BIRDS"],
                "inputs": {"birds": {"dataset": "uploads-birds", "version": 1, "mode": "download"}},
                "data": {"inputs": {"birds": {"id": "uploads-birds:1"}}},
            }
        assert sorted(stub_hub.data.sent) == ["birds/2024/owl.txt", "birds/a.csv", "birds/b.csv"]
        listed = stub_hub.data.datasets["uploads-birds"]["versions"]
        assert [sorted(version) for version in listed] == [["2024/owl.txt", "a.csv", "b.csv"]]

    def test_of_one_file_give_its_path_and_patterns_choose(self, execute: Execute, stub_hub: StubHub) -> None:
        text = """
one = Dataset.File.from_files(path=[(store, 'birds/2024/owl.txt')])
tables = Dataset.File.from_files((store, 'birds/**/*.csv'))
assert tables.to_path() == ['/a.csv', '/b.csv']
submit(one.as_download('here'), tables.as_named_input('tables').as_download())
"""
        execute(BEGIN + UPLOAD + text)
        spec = spec_of(stub_hub)
        assert spec["arguments"] == ["$TRAINHUB_INPUT_BIRDS_2024_OWL_TXT/owl.txt", "$TRAINHUB_INPUT_TABLES"]
        assert spec["inputs"]["birds_2024_owl_txt"]["dataset"] == "uploads-birds-2024-owl.txt"

    def test_in_a_store_elsewhere_are_an_input_of_it(
        self, execute: Execute, stub_hub: StubHub, capsys: pytest.CaptureFixture[str]
    ) -> None:
        text = """
submit(Dataset.File.from_files((Datastore.get(ws, 'team'), 'x/**')).as_named_input('x').as_mount(),
       Dataset.File.from_files(Datastore.get(ws, 'share').path('y')).as_named_input('y').as_download(),
       Dataset.File.from_files((Datastore(ws, 'share'), 'z')).as_named_input('z'))
"""
        execute(BEGIN + text)
        assert spec_of(stub_hub) == {
            "arguments": ["$TRAINHUB_INPUT_X", "$TRAINHUB_INPUT_Y", "z"],
            "inputs": {
                "x": {"datastore": "team", "path": "x", "mode": "download"},
                "y": {"datastore": "share", "path": "y", "mode": "mount"},
                "z": {"datastore": "share", "path": "z", "mode": "mount"},
            },
            "data": {"inputs": {"x": {"id": "x"}, "y": {"id": "y"}, "z": {"id": "z", "is_object": True}}},
        }
        notes = capsys.readouterr().err
        assert "x is not mounted: each node downloads it before the run starts." in notes
        assert "y is read where it lies, and not downloaded." in notes

    def test_of_an_address_become_a_dataset(self, execute: Execute, stub_hub: StubHub, project: Path) -> None:
        (project / "trainhub-azureml.toml").write_text('[address."https://x.example/sets"]\npath = "data"\n')
        text = (
            "submit(Dataset.File.from_files('https://x.example/sets/a.csv').as_named_input('a').as_mount())"
        )
        execute(BEGIN + text)
        spec = spec_of(stub_hub)
        name = spec["inputs"]["a"]["dataset"]
        assert (name[:6], spec["arguments"]) == ("a.csv-", ["$TRAINHUB_INPUT_A/a.csv"])
        assert stub_hub.data.sent == ["a.csv"]

    def test_in_a_command_are_words_for_a_shell(self, execute: Execute, stub_hub: StubHub) -> None:
        text = """
data = Dataset.File.from_files((store, 'birds')).as_named_input('birds')
submit(command=['python train.py --data', data.as_mount(), '--epochs 5'])
"""
        execute(BEGIN + UPLOAD + text)
        words = ["python", "train.py", "--data", "$TRAINHUB_INPUT_BIRDS", "--epochs", "5"]
        assert spec_of(stub_hub)["command"] == words
        execute(BEGIN + UPLOAD + text.replace("'--epochs 5'", "'&& ls'"))
        line = 'python train.py --data "$$TRAINHUB_INPUT_BIRDS" && ls'
        assert spec_of(stub_hub)["command"] == ["bash", "-c", line]


class TestRegistered:
    def test_files_and_tables_are_found_by_name_and_version(
        self, execute: Execute, stub_hub: StubHub
    ) -> None:
        text = """
files = Dataset.File.upload_directory('data', (store, 'birds'), show_progress=False)
files = files.register(ws, 'my birds', description='All.', tags={'species': 'owl'}, create_new_version=True)
table = Dataset.Tabular.from_delimited_files((store, 'birds/a.csv'), separator=',').register(ws, 'iris')
again = table.register(ws, 'iris')
assert (files.name, files.version, files.id, files.tags) == ('my birds', 1, 'my birds:1', {'species': 'owl'})
assert (table.id, again.id, sorted(ws.datasets)) == ('iris:1', 'iris:1', ['iris', 'my birds'])
found = Dataset.get_by_name(ws, name='my birds', version='latest')
assert sorted(found.download('copy')) and open('copy/2024/owl.txt').read() == 'hoot'
iris = Dataset.get_by_id(ws, id='iris:1')
submit(found.as_named_input('birds').as_mount(), '--table', iris.as_named_input('t'))
"""
        execute(BEGIN + text)
        facts = {"id": "iris:1", "below": "a.csv", "table": {"kind": "delimited"}}
        assert spec_of(stub_hub) == {
            "arguments": ["$TRAINHUB_INPUT_BIRDS", "--table", "iris:1"],
            "inputs": {
                "birds": {"dataset": "my-birds", "version": 1, "mode": "download"},
                "t": {"dataset": "iris", "version": 1, "mode": "download"},
            },
            "data": {"inputs": {"birds": {"id": "my birds:1"}, "t": facts}},
        }
        assert len(stub_hub.data.sent) == 3

    def test_other_files_need_a_new_version(self, execute: Execute, stub_hub: StubHub) -> None:
        text = """
from azureml.exceptions import UserErrorException
first = Dataset.File.from_files((store, 'birds/a.csv')).register(ws, 'x')
second = Dataset.File.from_files((store, 'birds/b.csv'))
try:
    second.register(ws, 'x')
except UserErrorException as error:
    refusal = str(error)
versions = first.version, second.register(ws, 'x', create_new_version=True).version
missing = []
for call in (lambda: Dataset.get_by_name(ws, 'y'), lambda: Dataset.get_by_name(ws, 'x', 7)):
    try:
        call()
    except UserErrorException as error:
        missing.append(str(error))
"""
        variables = execute(BEGIN + UPLOAD + text)
        assert "with other files: give create_new_version=True" in variables["refusal"]
        assert variables["versions"] == (1, 2)
        assert variables["missing"] == [
            "There is no dataset y on the hub; there are: x.",
            "The dataset x has no version 7.",
        ]

    def test_a_folder_of_a_store_is_listed_by_the_hub(self, execute: Execute, stub_hub: StubHub) -> None:
        text = """
place = Dataset.File.from_files((Datastore.get(ws, 'share'), 'y'))
versions = [place.register(ws, 'y', create_new_version=new).version for new in (False, False, True)]
submit(Dataset.get_by_name(ws, 'y', 1).as_mount())
"""
        assert execute(BEGIN + text)["versions"] == [1, 1, 2]
        assert spec_of(stub_hub)["inputs"] == {"y": {"dataset": "y", "version": 1, "mode": "mount"}}


class TestReferences:
    def test_are_variables_of_azure(self, execute: Execute, stub_hub: StubHub) -> None:
        text = """
share = Datastore.get(ws, 'share')
reference = share.path('y').as_mount()
assert str(reference) == '$AZUREML_DATAREFERENCE_share_y', str(reference)
named = DataReference(datastore=store, data_reference_name='one', path_on_datastore='birds/a.csv')
config = RunConfiguration()
config.data_references = {'one': named.to_config(), 'share_y': reference.to_config()}
submit('--y', reference, '--one', str(named), run_config=config)
"""
        execute(BEGIN + UPLOAD + text)
        spec = spec_of(stub_hub)
        assert spec["arguments"] == ["--y", "$TRAINHUB_INPUT_SHARE_Y", "--one", "$TRAINHUB_INPUT_ONE/a.csv"]
        assert spec["inputs"]["share_y"] == {"datastore": "share", "path": "y", "mode": "mount"}

    def test_of_an_estimator_are_inputs(self, execute: Execute, stub_hub: StubHub) -> None:
        text = """
from azureml.train.estimator import Estimator
inputs = [Datastore.get(ws, 'share').path('y').as_mount()]
Experiment(ws, 'birds').submit(Estimator('src', entry_script='train.py', compute_target='cpu', inputs=inputs))
"""
        execute(BEGIN + text)
        assert spec_of(stub_hub)["inputs"] == {
            "share_y": {"datastore": "share", "path": "y", "mode": "mount"}
        }

    def test_a_sentence_may_name_the_container(self, execute: Execute) -> None:
        text = "sentence = 'Container: ' + store.container_name + ', account: ' + store.account_name"
        assert execute(BEGIN + text)["sentence"] == "Container: uploads, account: trainhub"


class TestOutputs:
    def test_go_to_the_datastore_of_their_destination(self, execute: Execute, stub_hub: StubHub) -> None:
        text = """
out = OutputFileDatasetConfig(name='model', destination=(Datastore.get(ws, 'team'), 'results/{run-id}/x'))
submit('--out', out.as_upload(overwrite=True), OutputFileDatasetConfig('other').as_mount())
"""
        execute(BEGIN + text)
        assert spec_of(stub_hub) == {
            "arguments": ["--out", "outputs/model", "outputs/other"],
            "outputs": {"datastore": "team", "path": "results"},
            "data": {"outputs": {"model": "outputs/model", "other": "outputs/other"}},
        }

    def test_stay_on_the_hub_if_that_is_the_datastore(self, execute: Execute, stub_hub: StubHub) -> None:
        execute(BEGIN + "submit('--out', OutputFileDatasetConfig('model', destination=(store, 'results')))")
        assert "outputs" not in spec_of(stub_hub)


class TestDryRun:
    def test_makes_nothing_on_the_hub(
        self,
        execute: Execute,
        stub_hub: StubHub,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setenv("TRAINHUB_DRY_RUN", "1")
        text = "submit(Dataset.File.from_files((store, 'birds')).as_named_input('birds').as_mount())"
        with pytest.raises(SystemExit):
            execute(BEGIN + UPLOAD + text)
        output = capsys.readouterr()
        spec, _ = json.JSONDecoder().raw_decode(output.out)
        assert spec["inputs"] == {"birds": {"dataset": "uploads-birds", "mode": "download"}}
        assert "3 files are not uploaded to workspaceblobstore/birds in a dry run." in output.err
        assert stub_hub.data.datasets == {}

    def test_needs_no_hub(
        self,
        execute: Execute,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.delenv("TRAINHUB_URL")
        monkeypatch.setenv("TRAINHUB_DRY_RUN", "1")
        with pytest.raises(SystemExit):
            execute(BEGIN + "submit(store.path('birds').as_mount())")
        output = capsys.readouterr()
        inputs = {"workspaceblobstore_birds": {"datastore": "workspaceblobstore", "path": "birds"}}
        assert json.loads(output.out)["inputs"] == inputs
        assert "No hub was asked for the datastore workspaceblobstore." in output.err
