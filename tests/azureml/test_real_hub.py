"""Scripts of the SDK v1 against a whole hub: submitted, waited for, read, registered."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.azureml.submit_process import run_script
from tests.hub import Hub
from trainhub_azureml.runner import NAMES

pytestmark = pytest.mark.slow
TRAIN = """
import os
assert os.environ['AZ_BATCHAI_TASK_INDEX'] == '0'
assert os.environ['AZUREML_RUN_ID'] == os.environ['TRAINHUB_RUN_ID']
from azureml.core import Run
run = Run.get_context()
for epoch in range(3):
    run.log('loss', 1 / (epoch + 1))
    run.log_row('epochs', epoch=epoch, note='n%d' % epoch)
run.log('Category', 'Red')
run.tag('best')
os.makedirs('outputs', exist_ok=True)
with open('outputs/model.pt', 'w') as file:
    file.write('weights')
run.upload_file('more/model.txt', 'outputs/model.pt')
with run.child_run('part') as child:
    child.log('x', 5)
from azureml.core.model import Model
from trainhub_sdk.errors import NotAllowed
ws = run.experiment.workspace
path = Model.get_model_path('flowers')
assert path == 'azureml-models/flowers/1/net', path
assert open(path + '/weights/a.bin', 'rb').read() == bytes(range(256))
own = Model.register(ws, 'outputs/model.pt', 'seeds', tags={'from': 'job'})
own.add_tags({'more': 'x'})
assert (own.id, own.run.id, own.tags) == ('seeds:1', run.id, {'from': 'job', 'more': 'x'}), own.serialize()
try:
    Model(ws, 'flowers').add_tags({'more': 'x'})
except NotAllowed as error:
    print(error)
print('trained in', run.experiment.name, run.experiment.workspace.name)
run.complete()
"""
SUBMIT = """
from azureml.core import Environment, Experiment, ScriptRunConfig, Workspace
from azureml.widgets import RunDetails
from azureml.core.model import Model
ws = Workspace('s', 'g', 'team')
Model.register(ws, 'net', 'flowers')
env = Environment('plain')
env.python.user_managed_dependencies = True
config = ScriptRunConfig(source_directory='src', script='train.py', environment=env,
                         compute_target=list(ws.compute_targets)[0])
run = Experiment(ws, 'birds').submit(config, tags={'k': 'v'})
RunDetails(run).show()
details = run.wait_for_completion(show_output=True)
assert (details['status'], details['runDefinition']['script']) == ('Completed', 'train.py')
metrics = run.get_metrics()
assert metrics['loss'] == [1.0, 0.5, 1 / 3], metrics
assert metrics['epochs'] == {'epoch': [0, 1, 2], 'note': ['n0', 'n1', 'n2']}, metrics
assert metrics['Category'] == 'Red', metrics
assert run.get_tags() == {'k': 'v', 'best': None}, run.get_tags()
files = run.get_file_names()
assert files == ['azureml-logs/70_driver_log.txt', 'more/model.txt', 'outputs/model.pt'], files
run.download_file(name='outputs/model.pt', output_file_path='./model/model.pt')
assert open('model/model.pt').read() == 'weights'
model = run.register_model(model_name='hawks', model_path='outputs/model.pt', properties={'p': 1})
assert (model.id, model.properties, ws.models['hawks'].version) == ('hawks:1', {'p': '1'}, 1)
assert [child.get_metrics() for child in run.get_children()] == [{'x': 5.0}]
assert [other.id for other in Experiment(ws, 'birds').get_runs(tags='best')] == [run.id]
with Experiment(ws, 'here').start_logging() as own:
    own.log('y', 1)
own.add_properties({'p': 'q'})
assert (own.get_status(), own.get_metrics(), own.get_properties()) == ('Completed', {'y': 1.0}, {'p': 'q'})
seeds = Model(ws, id='seeds:1')
assert (seeds.run_id, seeds.run.number, seeds.tags) == (run.id, run.number, {'from': 'job', 'more': 'x'})
assert open(seeds.download('seeds')).read() == 'weights'
print('all is well')
"""
MODELS = """
import os
from datetime import datetime, timezone
from azureml.core import Model, Workspace
from azureml.exceptions import ModelNotFoundException, UserErrorException
ws = Workspace('s', 'g', 'team')
one = Model.register(model_path='net', model_name='trees', workspace=ws, tags={'kind': 'net', 'n': 1},
                     properties={'p': 'q'}, description='Trees.', datasets=[('training', None)],
                     model_framework=Model.Framework.PYTORCH, model_framework_version='2.13')
assert one.serialize() == {
    'name': 'trees', 'version': 1, 'id': 'trees:1', 'createdTime': one.created_time.isoformat(),
    'runId': None, 'framework': 'PyTorch', 'frameworkVersion': '2.13', 'tags': {'kind': 'net', 'n': '1'},
    'properties': {'p': 'q'}, 'description': 'Trees.'}, one.serialize()
assert abs((datetime.now(timezone.utc) - one.created_time).total_seconds()) < 600
two = Model.register(ws, 'net', 'trees', child_paths=['weights'])
single = Model.register(ws, os.path.join('net', 'weights', 'a.bin'), 'leaves')
assert (single.run_id, single.run) == (None, None)

def ids(**conditions):
    return [model.id for model in Model.list(ws, **conditions)]

assert ids() [:3] == ['leaves:1', 'trees:2', 'trees:1']
assert ids(name='trees', latest=True) == ['trees:2']
assert ids(name='trees', tags=['kind', ['n', '1']], properties=[['p', 'q']]) == ['trees:1']
assert ids(tags=[['n', '2']]) == ids(name="o'hara") == ids(run_id='0' * 32) == []
assert ids(name='trees', model_framework='PyTorch') == ['trees:1']
assert [Model(ws, 'trees').id, Model(ws, 'trees', tags=['kind']).id, Model(ws, id='trees:1').id,
        Model(ws, 'trees', version='2').id, ws.models['trees'].id] == [
        'trees:2', 'trees:1', 'trees:1', 'trees:2', 'trees:2']
for wrong in ({'name': 'bushes'}, {'id': 'trees:9'}, {'name': 'trees', 'tags': ['none']}):
    try:
        Model(ws, **wrong)
    except ModelNotFoundException:
        continue
    raise AssertionError(wrong)

def files(folder):
    found = []
    for parent, _, names in os.walk(folder):
        found += [os.path.relpath(os.path.join(parent, name), folder) for name in names]
    return sorted(found)

path = one.download('here')
assert (path, files('here')) == ('here/net', ['net/config.json', 'net/weights/a.bin']), files('here')
for file in files('net'):
    assert open(os.path.join('net', file), 'rb').read() == open(os.path.join(path, file), 'rb').read()
try:
    one.download('here')
    raise AssertionError('it was replaced')
except UserErrorException as error:
    assert 'exist_ok=True' in str(error), error
one.download('here', exist_ok=True)
assert single.download(target_dir='there') == os.path.join('there', 'a.bin')
assert Model.get_model_path('trees') == 'azureml-models/trees/2/net'
assert files('azureml-models') == ['trees/2/net/weights/a.bin']
with open('azureml-models/trees/2/net/weights/a.bin', 'w') as file:
    file.write('something else')
path = Model.get_model_path('trees', version=2, _workspace=ws)
assert open(path + '/weights/a.bin', 'rb').read() == bytes(range(256))
assert Model.get_model_path('leaves') == 'azureml-models/leaves/1/a.bin'

one.add_tags({'more': 'x', 'empty': None})
one.remove_tags(['kind', 'none'])
one.add_properties({'p': 'q', 'r': 2})
assert (one.tags, one.properties) == ({'n': '1', 'more': 'x', 'empty': ''}, {'p': 'q', 'r': '2'})
one.update(tags={'only': 'this'}, description='Old trees.')
again = Model(ws, 'trees', version=1)
assert (again.tags, again.description, again.properties) == (one.tags, 'Old trees.', {'p': 'q', 'r': '2'})
assert (again.tags, again.model_framework) == ({'only': 'this'}, 'PyTorch')
try:
    one.add_properties({'p': 'another'})
    raise AssertionError('it has changed')
except UserErrorException as error:
    assert 'never changes' in str(error), error
one.delete()
assert ids(name='trees') == ['trees:2']
print('all is well')
"""
SEARCHED_TRAIN = """
import argparse, time
from azureml.core import Run
parser = argparse.ArgumentParser()
parser.add_argument('--quality', type=float)
quality = parser.parse_args().quality
run = Run.get_context()
run.tag('part of', run.parent.id)
step = 0
while step < 3 or quality < 0.5:  # what is hopeless goes on until it is stopped
    run.log('accuracy', quality)
    step += 1
    time.sleep(0.2)
"""
SEARCH = """
import json
from azureml.core import Environment, Experiment, ScriptRunConfig, Workspace
from azureml.train.hyperdrive import (
    BanditPolicy, GridParameterSampling, HyperDriveConfig, PrimaryMetricGoal, choice)
from azureml.train.hyperdrive.run import HyperDriveRun
from azureml.widgets import RunDetails
ws = Workspace('s', 'g', 'team')
env = Environment('plain')
env.python.user_managed_dependencies = True
config = HyperDriveConfig(
    hyperparameter_sampling=GridParameterSampling({'--quality': choice(0.9, 0.1, 0.2, 0.8)}),
    primary_metric_name='accuracy', primary_metric_goal=PrimaryMetricGoal.MAXIMIZE,
    max_total_runs=4, max_concurrent_runs=4, policy=BanditPolicy(evaluation_interval=1, slack_factor=0.2),
    run_config=ScriptRunConfig(source_directory='src', script='train.py', environment=env,
                               compute_target=list(ws.compute_targets)[0]))
run = Experiment(ws, 'searches').submit(config)
RunDetails(run).show()
assert run.wait_for_completion(show_output=True)['status'] == 'Completed'
states = {json.loads(row['hyperparameters'])['--quality']: row['status']
          for row in run.get_children_sorted_by_primary_metric()}
assert list(states.items()) == [
    (0.9, 'Completed'), (0.8, 'Completed'), (0.2, 'Canceled'), (0.1, 'Canceled')], states
again = HyperDriveRun(Experiment(ws, 'searches'), run.id)
best = again.get_best_run_by_primary_metric()
assert best.get_details()['runDefinition']['arguments'] == ['--quality', '0.9']
assert run.get_metrics()[best.id]['accuracy'] == [0.9, 0.9, 0.9]
assert {child.parent.id for child in run.get_children()} == {run.id}
assert {child.get_tags()['part of'] for child in run.get_children()} == {run.id}
assert run.parent is None
assert [other.id for other in Experiment(ws, 'searches').get_runs(type='hyperdrive')] == [run.id]
print('best', best.id)
"""


def test_a_script_of_the_sdk_v1_runs_unchanged(hub: Hub, tmp_path: Path) -> None:
    done = run_script(hub, tmp_path, SUBMIT, TRAIN)
    assert done.stdout.endswith("trained in birds team\nall is well\n"), done.stdout + done.stderr
    # What the token of a job may not do.
    assert "changes versions of what that run has made. Use an API token of your own." in done.stdout
    assert NAMES not in done.stderr


def test_models_of_files_of_this_machine(hub: Hub, tmp_path: Path) -> None:
    done = run_script(hub, tmp_path, MODELS)
    assert done.stdout == "all is well\n", done.stdout + done.stderr


def test_a_search_stops_hopeless_runs_and_finds_the_best_one(hub: Hub, tmp_path: Path) -> None:
    done = run_script(hub, tmp_path, SEARCH, SEARCHED_TRAIN)
    last = done.stdout.splitlines()[-1]
    assert last.startswith("best "), done.stdout + done.stderr
    assert "is stopped. BanditPolicy: after 1 values of accuracy the best was 0.1" in done.stdout
    with hub.client() as api:
        query = {"filter": "params.quality = '0.9'", "experiment": "searches"}
        (row,) = api.get("/api/v1/runs/", params=query).raise_for_status().json()["results"]
        children = api.get("/api/v1/runs/", params={"parent": row["parent"]}).raise_for_status().json()
        specs = [api.get(f"/api/v1/runs/{child['id']}/").json()["spec"] for child in children["results"]]
    assert row["id"] == last.split()[1]
    assert len(specs) == 4
    assert len({spec["source"]["id"] for spec in specs}) == 1
