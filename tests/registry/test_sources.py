"""What a client may name as the source of a version, and what not."""

from __future__ import annotations

import pytest
from django.core.exceptions import PermissionDenied

from jobs.models import Run
from registry.errors import RegistryError
from registry.registration import Origin, add_version
from registry.sources import SourceRequest, resolve
from tests.people import make_contributor, make_workspace
from tests.registry.builders import blob, run_with
from tracking.callers import Caller
from tracking.models import LoggedModel, LoggedModelFile
from workspaces.states import Role

pytestmark = pytest.mark.django_db


def caller(job: Run | None = None) -> Caller:
    return Caller(make_workspace(), Role.CONTRIBUTOR, make_contributor(), job)


def logged(run: Run, name: str = "net") -> LoggedModel:
    model = LoggedModel.objects.create(experiment=run.experiment, run=run, name=name)
    for path in ("MLmodel", "data/model.pkl"):
        LoggedModelFile.objects.create(
            model=model, path=path, size_bytes=len(path), sha256=blob(path.encode())
        )
    return model


def paths(origin: Origin) -> list[str]:
    return sorted(file.path for file in origin.files)


def refused(source: str, **more: str) -> RegistryError:
    with pytest.raises(RegistryError) as caught:
        resolve(caller(), SourceRequest(source, **more))
    return caught.value


class TestTaken:
    def test_a_folder_or_file_of_a_run(self) -> None:
        run = run_with("saved/w.pt", "saved/deep/c.json")
        assert paths(resolve(caller(), SourceRequest(f"runs:/{run.pk}/saved"))) == ["deep/c.json", "w.pt"]
        assert paths(resolve(caller(), SourceRequest(f"runs:/{run.pk}/saved/deep/c.json", run.pk))) == [
            "c.json"
        ]
        address = f"mlflow-artifacts:/{run.experiment_id}/{run.pk}/artifacts/saved"
        assert paths(resolve(caller(), SourceRequest(address, run.pk))) == ["deep/c.json", "w.pt"]
        assert paths(resolve(caller(), SourceRequest(address.replace(":/", "://testserver/", 1)))) == [
            "deep/c.json",
            "w.pt",
        ]

    def test_a_logged_model_by_its_id_its_address_or_its_runs(self) -> None:
        run = run_with()
        model = logged(run)
        for source in (
            f"models:/{model.pk}",
            f"runs:/{run.pk}/net",
            f"mlflow-artifacts:/{run.experiment_id}/models/{model.pk}/artifacts",
        ):
            origin = resolve(caller(), SourceRequest(source, "", model.pk))
            assert (paths(origin), origin.run, origin.logged_model) == (
                ["MLmodel", "data/model.pkl"],
                run,
                model,
            )
        assert paths(resolve(caller(), SourceRequest(f"runs:/{run.pk}/net/data"))) == ["model.pkl"]

    def test_of_two_logged_models_of_one_name_the_later(self) -> None:
        run = run_with()
        logged(run)
        second = logged(run)
        assert resolve(caller(), SourceRequest(f"runs:/{run.pk}/net")).logged_model == second

    @pytest.mark.parametrize(
        "source", ["models:/digits/1", "models:/digits/latest", "mlflow-artifacts:/models/digits/1"]
    )
    def test_another_version(self, source: str) -> None:
        run = run_with("w.pt")
        version = add_version(
            make_workspace(),
            "digits",
            resolve(caller(), SourceRequest(f"runs:/{run.pk}/w.pt")),
            make_contributor(),
        )
        origin = resolve(caller(), SourceRequest(source))
        assert (paths(origin), origin.parent, origin.run, origin.source) == (
            ["w.pt"],
            version,
            run,
            "models:/digits/1",
        )


class TestRefused:
    @pytest.mark.parametrize(
        "source",
        [
            "http://example.org/m",
            "https://testserver/api/2.0/mlflow-artifacts/artifacts/1/x",
            "s3://b/m",
            "gs://b/m",
            "ftp://h/m",
            "file:///etc/passwd",
            "/etc/passwd",
            "C:\\model",
            "../../etc/passwd",
            "",
            " ",
            "runs:/",
            "runs:/abc/x",
            "models:/",
            "models:/x",
            "models:/nope/1",
            "models://host/digits/1",
            "models:/m-" + "0" * 32,
            "mlflow-artifacts:/",
            "mlflow-artifacts:/1/x",
            "mlflow-artifacts://example.org/1/x",
            "mlflow-artifacts:/models/../x/1",
            "runs:/x?y=z",
            "runs:/" + "\n" * 3,
            "x" * 3000,
        ],
    )
    def test_what_is_elsewhere_or_nowhere_names_the_source(self, source: str) -> None:
        assert refused(source).field == "source"

    @pytest.mark.parametrize("path", ["..", "saved/../../x", "%2e%2e/x", "saved//w.pt", "nope", ""])
    def test_a_path_that_leads_out_or_is_not_there(self, path: str) -> None:
        run = run_with()
        assert refused(f"runs:/{run.pk}/{path}").field == "source"
        assert refused(f"mlflow-artifacts:/{run.experiment_id}/{run.pk}/artifacts/{path}").field == "source"

    def test_another_workspaces_run_model_and_version(self) -> None:
        speech = make_workspace("speech")
        run = run_with("w.pt", workspace=speech)
        model = logged(run)
        their = Caller(speech, Role.OWNER, make_contributor())
        add_version(
            speech, "voices", resolve(their, SourceRequest(f"runs:/{run.pk}/w.pt")), make_contributor()
        )
        address = f"mlflow-artifacts:/{run.experiment_id}/{run.pk}/artifacts"
        for source in (f"runs:/{run.pk}/w.pt", f"models:/{model.pk}", "models:/voices/1", address):
            assert "of this workspace" in refused(source).message

    def test_a_run_that_is_another_than_is_said(self) -> None:
        run = run_with("w.pt")
        assert refused(f"runs:/{run.pk}/w.pt", run_id="f" * 32).field == "run_id"
        assert refused(f"runs:/{run.pk}/w.pt", model_id="m-x").field == "model_id"

    def test_a_logged_model_whose_upload_ended_without_such_files(self) -> None:
        run = run_with()
        model = LoggedModel.objects.create(
            experiment=run.experiment, run=run, name="net", status="LOGGED_MODEL_READY"
        )
        message = refused(f"models:/{model.pk}").message
        assert "names the logged model 'net' (LOGGED_MODEL_READY), which has no such files" in message

    def test_an_experiment_that_is_another(self) -> None:
        run = run_with("w.pt")
        assert refused(f"mlflow-artifacts:/{run.experiment_id + 1}/{run.pk}/artifacts/w.pt").field == "source"


class TestJob:
    def test_registers_what_it_has_made_or_logged(self) -> None:
        job = run_with("w.pt")
        child = run_with("w.pt", number=42)
        Run.objects.filter(pk=child.pk).update(parent=job, kind="external")
        assert resolve(caller(job), SourceRequest(f"runs:/{job.pk}/w.pt")).run == job
        assert resolve(caller(job), SourceRequest(f"runs:/{child.pk}/w.pt")).run == child

    def test_and_nothing_of_another(self) -> None:
        job, other = run_with("w.pt"), run_with("w.pt", number=42)
        with pytest.raises(PermissionDenied, match="token of run 41"):
            resolve(caller(job), SourceRequest(f"runs:/{other.pk}/w.pt"))
