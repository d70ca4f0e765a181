"""Versions of a logged model that is registered before its files have been uploaded."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from registry.errors import RegistryError
from registry.mlflow import deferred_files
from registry.models import ModelVersion
from registry.registration import add_version
from registry.sources import SourceRequest, resolve
from tests.people import make_contributor, make_viewer, make_workspace, token_of
from tests.registry.builders import blob, run_with
from tests.registry.test_downloads import get
from tests.registry.test_sources import caller
from tracking.models import LoggedModel, LoggedModelFile
from workspaces.stored_files import blobs

pytestmark = pytest.mark.django_db(transaction=True)


def registered_early() -> tuple[LoggedModel, ModelVersion]:
    """A logged model without files, and a version of it."""
    run = run_with()
    model = LoggedModel.objects.create(experiment=run.experiment, run=run, name="net")
    return model, registered(f"models:/{model.pk}")


def registered(source: str) -> ModelVersion:
    origin = resolve(caller(), SourceRequest(source))
    return add_version(make_workspace(), "digits", origin, make_contributor())


def send(model: LoggedModel, *paths: str) -> None:
    for path in paths:
        LoggedModelFile.objects.create(
            model=model, path=path, size_bytes=len(path), sha256=blob(path.encode())
        )


def upload(model: LoggedModel, *paths: str) -> None:
    """The client sends the files and says that these are all."""
    send(model, *paths)
    LoggedModel.objects.filter(pk=model.pk).update(status=deferred_files.READY)


class TestFilling:
    def test_waits_for_the_end_of_the_upload(self) -> None:
        model, version = registered_early()
        send(model, "MLmodel")
        deferred_files.fill_all()
        deferred_files.fill(version)
        version.refresh_from_db()
        assert (version.files.count(), version.certificate) == (0, "")
        upload(model, "data/model.pkl")
        deferred_files.fill_all()
        version.refresh_from_db()
        assert [file.path for file in version.files.all()] == ["MLmodel", "data/model.pkl"]
        assert version.certificate

    def test_is_done_once_however_often_it_is_tried(self) -> None:
        model, version = registered_early()
        upload(model, "MLmodel")
        deferred_files.fill(version)
        # `version` still says that it has no certificate, as in a request that began earlier.
        version.certificate = ""
        deferred_files.fill(version)
        version.refresh_from_db()
        assert (version.files.count(), bool(version.certificate)) == (1, True)

    def test_leaves_a_version_alone_whose_upload_ended_without_files(self) -> None:
        model, version = registered_early()
        upload(model)
        deferred_files.fill_all()
        version.refresh_from_db()
        assert version.certificate == ""

    def test_issues_no_certificate_for_files_whose_bytes_are_gone(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        model, version = registered_early()
        upload(model, "MLmodel", "data/model.pkl")
        blobs.path(model.files.get(path="MLmodel").sha256).unlink()
        deferred_files.fill_all()
        version.refresh_from_db()
        assert (version.files.count(), version.certificate) == (0, "")
        assert "digits version 1 gets no files: the stored bytes of MLmodel are missing" in caplog.text


class TestMeanwhile:
    def test_no_copy_is_made_that_would_never_get_files(self) -> None:
        registered_early()
        with pytest.raises(RegistryError, match="has no files yet") as refused:
            registered("models:/digits/1")
        assert refused.value.field == "source"
        assert ModelVersion.objects.count() == 1

    @pytest.mark.parametrize("paper", ["certificate", "signature"])
    async def test_there_are_no_papers_and_the_reason_is_told(self, paper: str) -> None:
        await sync_to_async(registered_early)()
        token = await sync_to_async(lambda: token_of(make_viewer()))()
        response = await get(f"1/{paper}", token)
        assert response.status_code == 404
        assert "still being uploaded" in response.json()["detail"]
