"""What a job finds of its data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.azureml.stub_hub import RUN, StubHub
from tests.hub import PROJECT
from trainhub_azureml.data.dataset import Dataset
from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.run import Run


@pytest.fixture
def run(stub_hub: StubHub, own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The run of a job with files, a table and an object, and a folder for output."""
    (own_folder / "birds").mkdir()
    (own_folder / "birds" / "owl.txt").write_text("hoot")
    (own_folder / "table").mkdir()
    (own_folder / "table" / "a.csv").write_text("x,y\n1,2\n3,4\n")
    table = {"kind": "delimited"}
    data = {
        "inputs": {
            "birds": {"id": "birds:3"},
            "one": {"id": "birds:3", "below": "owl.txt"},
            "iris": {"id": "my iris:1", "below": "a.csv", "table": table},
            "files": {"id": "files", "is_object": True},
        },
        "outputs": {"model": "outputs/model"},
    }
    monkeypatch.setenv("TRAINHUB_RUN_ID", RUN)
    monkeypatch.setenv("AZUREML_RUN_DATA", json.dumps(data))
    for name, folder in (("BIRDS", "birds"), ("ONE", "birds"), ("IRIS", "table"), ("FILES", "birds")):
        monkeypatch.setenv(f"TRAINHUB_INPUT_{name}", str(own_folder / folder))
    monkeypatch.setattr("trainhub_azureml.run._context", {})
    context: Run = Run.get_context()
    return context


def test_files_are_paths_and_the_folders_of_outputs_are_there(run: Run, own_folder: Path) -> None:
    assert run.input_datasets["birds"] == str(own_folder / "birds")
    assert run.input_datasets["one"] == str(own_folder / "birds" / "owl.txt")
    assert sorted(run.input_datasets) == ["birds", "files", "iris", "one"]
    assert run.output_datasets == {"model": "outputs/model"}
    assert (own_folder / "outputs" / "model").is_dir()
    assert Run(None, "other").input_datasets == {}


def test_datasets_are_inputs_of_the_run(run: Run, own_folder: Path) -> None:
    files: Any = run.input_datasets["files"]
    assert (files.to_path(), files.name) == (["/owl.txt"], None)
    with files.mount() as mounted:
        assert mounted.mount_point == str(own_folder / "birds")
    workspace = run.experiment.workspace
    by_name: Any = Dataset.get_by_name(workspace, "birds")
    assert (by_name.id, by_name.download("copy")) == ("birds:3", [str(own_folder / "copy" / "owl.txt")])
    by_id: Any = Dataset.get_by_id(workspace, id="my iris:1")
    assert (type(by_id).__name__, by_id.version) == ("TabularDataset", 1)
    assert Dataset.get_by_id(workspace, "files").id is None
    with pytest.raises(UserErrorException, match="Give the dataset birds:4 to the run"):
        Dataset.get_by_id(workspace, "birds:4")


FRAMES = """
import os, pandas
from trainhub_azureml.data.datasets import TabularDataset
from trainhub_azureml.data.sources import LocalPath
from trainhub_azureml.data.tables import TableFormat
os.mkdir('t')
for number in (1, 2):
    frame = pandas.DataFrame({'x': [number, number], 'y': ['07', 'b']})
    frame.to_csv(f't/{number}.csv', index=False)
    frame.to_parquet(f'{number}.parquet')
frame.to_json('2.jsonl', orient='records', lines=True)
def read(table, path, count=None):
    dataset = TabularDataset([LocalPath(path)], table)
    frame = (dataset if count is None else dataset.take(count)).to_pandas_dataframe()
    return [list(frame.columns), *frame.values.tolist()]
print(read(TableFormat(), 't'))
print(read(TableFormat(is_typed=False, has_header=False), 't/1.csv', 2))
print(read(TableFormat('parquet'), '2.parquet', 1))
print(read(TableFormat('json_lines'), '2.jsonl', 3))
"""


@pytest.mark.slow
def test_tables_become_data_frames(mlflow_python: str, own_folder: Path) -> None:
    done = subprocess.run(
        [mlflow_python, "-c", FRAMES],
        cwd=own_folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "[['x', 'y'], [1, '07'], [1, 'b'], [2, '07'], [2, 'b']]",
        "[['Column1', 'Column2'], ['x', 'y'], ['1', '07']]",
        "[['x', 'y'], [2, '07']]",
        "[['x', 'y'], [2, '07'], [2, 'b']]",
    ], done.stdout + done.stderr


def test_tables_need_pandas(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserErrorException, match="needs pandas: add it to the environment of the run"):
        run.input_datasets["iris"].to_pandas_dataframe()
