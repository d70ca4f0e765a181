"""Runs whose scripts read data from its store themselves, by addresses."""

from __future__ import annotations

from typing import Any

import pytest

from datastores import changes
from jobs.models import Run
from jobs.node_api import run_secrets
from jobs.scheduling.run_preview import preview
from tests.datastores.datasets.builders import dataset, ready
from tests.datastores.test_datastores import able
from tests.datastores.test_stores import BUCKET, CONTAINER, WEB
from tests.jobs.builders import launched, spec
from tests.people import client_of, make_owner, principal_of
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import DATASETS, DOWNLOADS, REFERENCES
from trainhub_launch.plan import Reference
from trainhub_launch.spec_reader import read_spec
from workspaces.access import Principal
from workspaces.secrets import store

pytestmark = pytest.mark.django_db
BIRDS: dict[str, Any] = {"birds": {"datastore": "images", "path": "2024", "mode": "reference"}}
VARIABLE = "TRAINHUB_INPUT_BIRDS"


@pytest.fixture
def who() -> Principal:
    owner = principal_of(make_owner())
    store.put(owner, "s3-key", "the-secret-part", store.WORKSPACE)
    return owner


def fields(body: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in body.items() if name not in ("kind", "name")}


def made(who: Principal, body: dict[str, str]) -> None:
    changes.create(who, "images", body["kind"], fields(body))


class TestOrder:
    def test_names_the_store_and_not_its_credentials(self, who: Principal) -> None:
        made(who, BUCKET)
        alpha = able("alpha", REFERENCES)
        run = launched(who, inputs=BIRDS)
        order = alpha.claim(run)
        assert (order.inputs, order.downloads) == ({}, {})
        reference = order.references["birds"]
        assert (reference.path, reference.secret_key) == ("sets/2024", "datastore:s3-key")
        assert "the-secret-part" not in str(order.to_json())
        values = run_secrets.take(alpha.node, run.pk, 1, alpha.nonce)
        assert values == {"datastore:s3-key": "the-secret-part"}
        (process,) = order.command.processes
        assert process.env[VARIABLE] == process.env["AZUREML_DATAREFERENCE_birds"]
        assert process.env[f"{VARIABLE}_FILES"] == Reference("launch", "files_of_birds")

    def test_has_the_list_of_a_version(self, who: Principal) -> None:
        version = ready(dataset(who.workspace), "a.bin")
        alpha = able("alpha", REFERENCES, DATASETS)
        run = launched(who, inputs={"birds": {"dataset": "birds", "mode": "reference"}})
        reference = alpha.claim(run).references["birds"]
        assert (reference.manifest, reference.peers) == (version.manifest.sha256, "")
        page = client_of(who.user).get(f"/runs/{run.number}/overview/").content.decode()
        assert "streamed by the script" in page

    def test_waits_for_a_node_that_makes_addresses(self, who: Principal) -> None:
        made(who, BUCKET)
        able("alpha", DOWNLOADS)
        run = launched(who, inputs=BIRDS)
        message = run.events.latest("pk").message
        assert "alpha does not know inputs by reference: upgrade its agent" in message


class TestRefusals:
    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ({"kind": "folder", "path": "/mnt/images"}, "is a folder of the nodes"),
            ({"kind": "hub"}, "lies on the hub"),
            ({**WEB, "secret": "s3-key"}, "is read with a password or token"),
        ],
    )
    def test_name_the_kind_and_the_remedy(self, who: Principal, body: dict[str, str], words: str) -> None:
        made(who, body)
        with pytest.raises(SpecError) as raised:
            launched(who, inputs=BIRDS)
        assert raised.value.field == "inputs.birds.mode"
        assert raised.value.message.startswith(f"images {words}")
        assert "leave mode out" in raised.value.message
        assert not Run.objects.exists()

    @pytest.mark.parametrize(("value", "is_refused"), [("sv=1&sig=abc", True), ("a2V5", False)])
    def test_a_signature_makes_no_shorter_one(self, who: Principal, value: str, is_refused: bool) -> None:
        store.put(who, "sas", value, store.WORKSPACE)
        made(who, CONTAINER)
        findings = [
            item for item in preview(spec(who, inputs=BIRDS), who).findings if item.field.startswith("inputs")
        ]
        assert [item.level for item in findings] == ["error"] * is_refused
        if is_refused:
            assert findings[0].field == "inputs.birds.mode"
            assert "store a key of the account as its secret" in findings[0].message
            with pytest.raises(SpecError, match="shared access signature"):
                launched(who, inputs=BIRDS)

    def test_a_web_server_has_addresses_of_single_files(self, who: Principal) -> None:
        made(who, {name: value for name, value in WEB.items() if name != "secret"})
        with pytest.raises(SpecError, match="must name a file of images"):
            launched(who, inputs={"birds": {"datastore": "images", "mode": "reference"}})

    def test_two_inputs_do_not_share_a_variable(self) -> None:
        data = {"source": {"type": "example", "name": "hello"}, "script": "train.py"}
        for order in (("birds", "Birds_Files"), ("Birds_Files", "birds")):
            inputs = {name: {"datastore": "images", "mode": "reference"} for name in order}
            with pytest.raises(SpecError, match="both become TRAINHUB_INPUT_BIRDS_FILES; rename one"):
                read_spec({**data, "inputs": inputs})
        plain = {"birds": {"datastore": "images"}, "birds_files": {"datastore": "images"}}
        assert len(read_spec({**data, "inputs": plain}).inputs) == 2
