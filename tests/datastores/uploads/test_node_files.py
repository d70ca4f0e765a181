"""What a node gets of uploaded files: those that its order names, with the ticket of that order."""

from __future__ import annotations

import hashlib

import httpx
import pytest
from asgiref.sync import sync_to_async

from datastores.models import Dataset, DatasetVersion, Datastore
from datastores.uploads import completion, sessions
from datastores.uploads.file_rules import SentFile
from jobs.models import Attempt, Run
from jobs.order_downloads.package_tickets import package_ticket
from jobs.scheduling.run_preview import preview
from tests.datastores.test_datastores import able
from tests.jobs.builders import launched, spec
from tests.jobs.raw import bearing, opened
from tests.people import make_contributor, principal_of
from trainhub_launch.data.stores import TICKET, URL
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import DATASETS, DOWNLOADS, HUB_DATA
from trainhub_launch.order import NodeOrder
from workspaces.access import Principal
from workspaces.stored_files.blob_writer import BlobWriter

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
BIRDS = {"birds": {"dataset": "birds"}}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def uploaded(who: Principal, *contents: bytes, name: str = "birds") -> DatasetVersion:
    """The next version of a dataset, with a file for each content."""
    here, _ = Datastore.objects.get_or_create(workspace=who.workspace, name="here", kind="hub")
    dataset, _ = Dataset.objects.get_or_create(workspace=who.workspace, name=name, datastore=here)
    version = sessions.begin_upload(who, dataset)
    for number, data in enumerate(contents):
        with BlobWriter() as writer:
            writer.write(data)
            sessions.store_file(version, SentFile(f"{number}.bin", len(data), 1.0), writer.finish())
    completion.finish_upload(who, version, len(contents))
    return version


@sync_to_async
def claimed() -> tuple[Run, NodeOrder]:
    """A run that reads the first version of birds, and the order of its node."""
    who = principal_of(make_contributor())
    uploaded(who, b"first", b"second")
    uploaded(who, b"of version 2")
    uploaded(who, b"of another dataset", name="fish")
    alpha = able("alpha", DOWNLOADS, DATASETS, HUB_DATA)
    run = launched(who, inputs={"birds": {"dataset": "birds", "version": 1}})
    return run, alpha.claim(run)


async def test_are_those_of_the_list_that_its_order_names() -> None:
    _, order = await claimed()
    settings = order.downloads["birds"].store.settings
    assert settings[TICKET] in order.masked
    headers = bearing(settings[TICKET])
    async with opened() as client:
        answer = await client.get(f"{settings[URL]}/{sha256(b'second')}", headers=headers)
        assert (answer.status_code, answer.content) == (200, b"second")
        assert answer.headers["etag"] == f'"{sha256(b"second")}"'
        answer = await client.get(
            f"{settings[URL]}/{sha256(b'second')}", headers={**headers, "Range": "bytes=1-2"}
        )
        assert (answer.status_code, answer.content) == (206, b"ec")
        for data in (b"of version 2", b"of another dataset", b"nowhere"):
            answer = await client.get(f"{settings[URL]}/{sha256(data)}", headers=headers)
            assert answer.status_code == httpx.codes.NOT_FOUND
        other = settings[URL].rpartition("/")[0] + f"/{await manifest('fish')}"
        answer = await client.get(f"{other}/{sha256(b'of another dataset')}", headers=headers)
        assert answer.status_code == httpx.codes.NOT_FOUND


async def test_are_none_without_the_ticket_of_an_attempt_that_goes_on() -> None:
    run, order = await claimed()
    address = f"{order.downloads['birds'].store.settings[URL]}/{sha256(b'second')}"
    async with opened() as client:
        for headers in ({}, bearing("thk_wrong"), bearing(f"{package_ticket(run.pk, 1)[:-1]}!")):
            assert (await client.get(address, headers=headers)).status_code == 401
        another = bearing(package_ticket(run.pk, 2))
        assert (await client.get(address, headers=another)).status_code == 403
        await sync_to_async(Attempt.objects.filter(run=run).update)(ended_at=run.created_at)
        assert (await client.get(address, headers=bearing(package_ticket(run.pk, 1)))).status_code == 403


async def test_are_none_by_the_list_of_another_store() -> None:
    run, order = await claimed()
    settings = order.downloads["birds"].store.settings
    attempt = await Attempt.objects.aget(run=run)
    attempt.downloads["birds"]["store"]["kind"] = "s3"
    await attempt.asave()
    async with opened() as client:
        answer = await client.get(f"{settings[URL]}/{sha256(b'second')}", headers=bearing(settings[TICKET]))
    assert answer.status_code == httpx.codes.NOT_FOUND


@sync_to_async
def manifest(name: str) -> str:
    version = DatasetVersion.objects.select_related("manifest").get(dataset__name=name)
    return version.manifest.sha256


def test_an_old_agent_gets_no_such_run() -> None:
    who = principal_of(make_contributor())
    uploaded(who, b"first")
    able("alpha", DOWNLOADS, DATASETS)
    run = launched(who, inputs=BIRDS)
    sentence = "alpha does not download data from the hub: upgrade its agent"
    assert sentence in run.events.latest("pk").message
    findings = preview(spec(who, inputs=BIRDS), who).findings
    assert any(sentence in finding.message for finding in findings)


def test_the_datastore_itself_is_no_input() -> None:
    who = principal_of(make_contributor())
    uploaded(who, b"first")
    with pytest.raises(SpecError) as raised:
        launched(who, inputs={"birds": {"datastore": "here", "path": "0.bin"}})
    assert raised.value.field == "inputs.birds.datastore"
    assert "name one of them as dataset instead" in raised.value.message
