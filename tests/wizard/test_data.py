"""The data of a run in the wizard: chosen from the datastores of the workspace, judged beside its fields."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from clusters.models import Node
from datastores.models import Datastore
from jobs.models import Run
from jobs.scheduling.submission import clone_spec
from jobs.wizard import drafts
from tests.datastores.datasets.builders import dataset
from tests.datastores.datasets.builders import ready as ready_version
from tests.wizard.builders import address, post, preview, under, with_code
from trainhub_launch.machine import CHANGED_DATA, DATASETS, DOWNLOADS, INPUTS, REFERENCES
from workspaces.access import Principal

pytestmark = pytest.mark.usefixtures("valkey")
BIRDS: dict[str, Any] = {"input_name": ["birds"], "input_datastore": ["images"], "input_path": ["birds/2024"]}


@pytest.fixture
def images(who: Principal) -> Datastore:
    return Datastore.objects.create(workspace=who.workspace, name="images", path="/mnt/images")


@pytest.fixture(autouse=True)
def _knows_inputs(ready: Node) -> None:
    ready.capabilities = " ".join((INPUTS, DOWNLOADS, DATASETS, REFERENCES, CHANGED_DATA))
    ready.save(update_fields=["capabilities"])


def test_is_chosen_shown_and_submitted(client: Client, who: Principal, images: Datastore) -> None:
    draft = with_code(who)
    source = draft.steps["source"]["source"][0]
    page = client.get(address(draft, "source")).content.decode()
    assert '<option value="images">images</option>' in page
    post(client, draft, "source", source=source, script="train.py", **BIRDS)
    typed = client.get(address(draft, "source")).content.decode()
    assert 'value="birds/2024"' in typed
    review = client.get(address(draft, "review")).content.decode()
    assert "Input birds" in review
    assert "images/birds/2024" in review
    client.post(f"/runs/new/{draft.pk}/submit/")
    run = Run.objects.get()
    assert run.spec["inputs"] == {"birds": {"datastore": "images", "path": "birds/2024", "mode": "mount"}}
    assert "images/birds/2024" in client.get(f"/runs/{run.number}/overview/").content.decode()


def test_is_chosen_from_the_versions_of_datasets(client: Client, who: Principal) -> None:
    birds = dataset(who.workspace)
    ready_version(birds, "a.bin")
    draft = with_code(who)
    source = draft.steps["source"]["source"][0]
    page = client.get(address(draft, "source")).content.decode()
    assert '<option value="dataset:birds">birds, newest version</option>' in page
    chosen = {**BIRDS, "input_datastore": ["dataset:birds:1"], "input_path": [""]}
    post(client, draft, "source", source=source, script="train.py", **chosen)
    typed = client.get(address(draft, "source")).content.decode()
    assert '<option value="dataset:birds:1" selected>birds, version 1</option>' in typed
    assert "birds, version 1" in client.get(address(draft, "review")).content.decode()
    client.post(f"/runs/new/{draft.pk}/submit/")
    assert Run.objects.get().spec["inputs"] == {
        "birds": {"dataset": "birds", "version": 1, "mode": "download"}
    }


@pytest.mark.parametrize(
    ("reading", "chosen", "words"),
    [
        ("use", {"if_changed": "use", "mode": "download"}, "also changed files"),
        ("reference", {"mode": "reference"}, "streamed by the script"),
        ("nonsense", {"mode": "download"}, "version 1"),
    ],
)
def test_is_read_as_chosen(
    client: Client, who: Principal, reading: str, chosen: dict[str, str], words: str
) -> None:
    ready_version(dataset(who.workspace), "a.bin")
    draft = with_code(who)
    source = draft.steps["source"]["source"][0]
    row = {"input_datastore": ["dataset:birds:1"], "input_path": [""], "input_reading": [reading]}
    post(client, draft, "source", source=source, script="train.py", **{**BIRDS, **row})
    typed = client.get(address(draft, "source")).content.decode()
    assert (f'<option value="{reading}" selected>' in typed) == (reading != "nonsense")
    assert words in client.get(address(draft, "review")).content.decode()
    client.post(f"/runs/new/{draft.pk}/submit/")
    run = Run.objects.get()
    assert run.spec["inputs"] == {"birds": {"dataset": "birds", "version": 1, **chosen}}
    clone = drafts.start(who, clone_spec(run))
    copied = client.get(address(clone, "source")).content.decode()
    assert (f'<option value="{reading}" selected>' in copied) == (reading != "nonsense")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"input_reading": ["reference"]}, "Images is a folder of the nodes, which scripts read where it is"),
        ({"input_reading": ["use"]}, "Only a dataset can have changed files"),
        ({"input_name": [""]}, "Data: give the input with the path 'birds/2024' a name."),
        (
            {"input_name": ["a", "a"], "input_datastore": ["images"] * 2, "input_path": ["", ""]},
            "Data: a is given twice; keep one of the two.",
        ),
        ({"input_datastore": [""]}, "Data: choose a datastore for birds; the page Data adds one."),
        (
            {"input_datastore": ["gone"]},
            "There is no datastore 'gone' in Default; there are: images. Add one on the page Data.",
        ),
        (
            {"input_datastore": ["dataset:birds"]},
            "Data: birds is a dataset, which is read as a whole; clear its path.",
        ),
        (
            {"input_datastore": ["dataset:gone:x"], "input_path": [""]},
            "There is no dataset 'gone' in Default; there are: none yet.",
        ),
        ({"input_name": ["my birds"]}, "is no name of an input"),
        ({"input_path": ["/etc"]}, "without a slash at its beginning"),
    ],
)
@pytest.mark.usefixtures("images")
def test_what_is_wrong_with_it_is_said_there(
    client: Client, who: Principal, fields: dict[str, list[str]], words: str
) -> None:
    draft = with_code(who)
    source = draft.steps["source"]["source"][0]
    page = preview(client, draft, "source", source=source, script="train.py", **{**BIRDS, **fields})
    assert words in under(page, "inputs").replace("&#x27;", "'")


def test_without_datastores_nothing_asks_for_them(client: Client, who: Principal) -> None:
    page = client.get(address(with_code(who), "source")).content.decode()
    assert "input_datastore" not in page
