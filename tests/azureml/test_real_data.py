"""A folder of this machine becomes a dataset of a whole hub, and a job reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.azureml.submit_process import run_script
from tests.hub import Hub

pytestmark = pytest.mark.slow
READ = """
import argparse, os
from azureml.core import Dataset, Run
parser = argparse.ArgumentParser()
for name in ('data', 'one', 'table', 'reference', 'out'):
    parser.add_argument('--' + name)
args = parser.parse_args()
run = Run.get_context()
assert sorted(os.listdir(args.data)) == ['2024', 'iris.csv'], os.listdir(args.data)
assert open(os.path.join(args.data, '2024', 'owl.txt')).read() == 'hoot'
assert run.input_datasets['birds'] == args.data
assert open(args.one).read() == open(os.path.join(args.reference, 'iris.csv')).read()
table = Dataset.get_by_id(run.experiment.workspace, id=args.table)
assert (table.name, table.version) == ('iris', 1)
with open(os.path.join(args.out, 'sum.txt'), 'w') as file:
    file.write('3')
"""
DATA = """
from azureml.core import Dataset, Environment, Experiment, ScriptRunConfig, Workspace
from azureml.data import OutputFileDatasetConfig
ws = Workspace('s', 'g', 'team')
env = Environment('plain')
env.python.user_managed_dependencies = True
store = ws.get_default_datastore()
birds = Dataset.File.upload_directory('data', (store, 'birds')).register(ws, 'birds', create_new_version=True)
table = Dataset.Tabular.from_delimited_files((store, 'birds/iris.csv')).register(ws, 'iris')
assert birds.download('copy') and open('copy/2024/owl.txt').read() == 'hoot'
one = Dataset.File.from_files((store, 'birds/iris.csv')).as_named_input('one').as_download()
arguments = ['--data', birds.as_named_input('birds').as_mount(), '--one', one,
             '--table', table.as_named_input('t'), '--reference', store.path('birds').as_mount(),
             '--out', OutputFileDatasetConfig('result')]
config = ScriptRunConfig(source_directory='src', script='train.py', arguments=arguments, environment=env,
                         compute_target=list(ws.compute_targets)[0])
run = Experiment(ws, 'birds').submit(config)
run.wait_for_completion(show_output=True)
run.download_file('outputs/result/sum.txt', 'sum.txt')
assert open('sum.txt').read() == '3'
print('all was read')
"""


def test_a_folder_that_was_uploaded_is_read_by_a_job(hub: Hub, tmp_path: Path) -> None:
    files = {"data/2024/owl.txt": "hoot", "data/iris.csv": "x,y\n1,2\n"}
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = run_script(hub, tmp_path, DATA, READ)
    assert done.stdout.endswith("all was read\n"), done.stdout + done.stderr
