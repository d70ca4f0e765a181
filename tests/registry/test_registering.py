from __future__ import annotations

import threading

import pytest
from django.db import connection

from jobs.models import Artifact, Run
from jobs.outputs import all_of
from registry.errors import RegistryError
from registry.models import ModelVersion, RegisteredModel
from registry.registration import choices_of, register
from tests.people import make_contributor, make_workspace
from tests.registry.builders import add_output, run_with
from workspaces.models import AuditEvent

pytestmark = pytest.mark.django_db


def registered(run: Run, path: str, name: str = "digits") -> ModelVersion:
    return register(make_workspace(), name, run, path, make_contributor())


def refused(run: Run, path: str = "model.pt", name: str = "digits") -> RegistryError:
    with pytest.raises(RegistryError) as caught:
        registered(run, path, name)
    assert not RegisteredModel.objects.exists()
    return caught.value


def paths(version: ModelVersion) -> list[str]:
    return [file.path for file in version.files.all()]


class TestRegister:
    def test_a_file_becomes_version_one_of_a_new_model(self) -> None:
        run = run_with("model.pt", "metrics.json")
        version = registered(run, "model.pt")
        assert (version.model.name, version.number, version.run, version.source_path) == (
            "digits",
            1,
            run,
            "model.pt",
        )
        assert [(file.path, file.size_bytes, file.sha256) for file in version.files.all()] == [
            ("model.pt", 8, Artifact.objects.get(path="model.pt").sha256)
        ]

    def test_the_same_name_gets_the_next_number(self) -> None:
        run = run_with("model.pt")
        assert [registered(run, "model.pt").number for _ in range(3)] == [1, 2, 3]
        assert registered(run, "model.pt", name="other").number == 1

    @pytest.mark.parametrize("path", ["saved", "saved/", "/saved/", " outputs/saved/ "])
    def test_a_folder_is_taken_whole_with_the_paths_inside_it(self, path: str) -> None:
        run = run_with("saved/weights.pt", "saved/config/net.json", "saved2/weights.pt", "log.txt")
        version = registered(run, path)
        assert version.source_path == "saved"
        assert paths(version) == ["config/net.json", "weights.pt"]

    def test_a_file_deep_in_a_folder_keeps_its_own_name(self) -> None:
        assert paths(registered(run_with("a/b/model.pt"), "a/b/model.pt")) == ["model.pt"]

    def test_a_script_may_have_made_a_folder_called_outputs_itself(self) -> None:
        run = run_with("outputs/model.pt", "model.pt")
        assert registered(run, "outputs/model.pt").source_path == "outputs/model.pt"

    def test_of_one_path_the_later_attempts_file_counts(self) -> None:
        run = run_with("model.pt", attempt=2)
        add_output(run, "model.pt", attempt=1, content=b"half trained")
        add_output(run, "only-then.pt", attempt=1)
        assert [file.size_bytes for file in registered(run, "model.pt").files.all()] == [len("model.pt")]
        assert paths(registered(run, "only-then.pt")) == ["only-then.pt"]

    def test_who_registered_what_is_on_record(self) -> None:
        run = run_with("model.pt")
        registered(run, "model.pt")
        event = AuditEvent.objects.get(verb="model.registered")
        assert (event.actor, event.subject, event.detail["run"]) == ("carl", "digits version 1", run.pk)

    def test_a_version_outlives_its_run(self) -> None:
        run = run_with("model.pt")
        version = registered(run, "model.pt")
        run.delete()
        version.refresh_from_db()
        assert version.run is None
        assert paths(version) == ["model.pt"]


class TestRefusals:
    @pytest.mark.parametrize(
        "name", ["", "   ", "a/b", "../x", ".hidden", "-x", "ü", "x" * 257, "a\nb", "<b>"]
    )
    def test_a_name_that_cannot_be_part_of_an_address(self, name: str) -> None:
        assert refused(run_with("model.pt"), name=name).field == "name"

    @pytest.mark.parametrize(
        "path", ["", " ", "/", "modell.pt", "model", "model.pt/x", "../model.pt", "outputs"]
    )
    def test_a_path_that_is_not_among_the_outputs(self, path: str) -> None:
        error = refused(run_with("model.pt"), path)
        assert error.field == "path"

    def test_says_what_there_is_instead(self) -> None:
        assert (
            "there are: model.pt, saved/, saved/w.pt"
            in refused(run_with("model.pt", "saved/w.pt"), "nope").message
        )

    def test_a_run_without_outputs_says_how_to_make_some(self) -> None:
        error = refused(run_with(), "model.pt")
        assert error.field == "path"
        assert "outputs/" in error.message

    def test_a_run_of_another_workspace(self) -> None:
        assert refused(run_with("model.pt", workspace=make_workspace("speech"))).field == "run"

    def test_bytes_that_are_gone(self) -> None:
        run = run_with("model.pt")
        Artifact.objects.update(sha256="0" * 64)
        assert "no longer on the hub" in refused(run).message


class TestChoices:
    def test_offers_each_file_and_each_folder(self) -> None:
        run = run_with("model.pt", "a/b/c.pt")
        assert choices_of(all_of(run)) == ["a/", "a/b/", "a/b/c.pt", "model.pt"]


@pytest.mark.django_db(transaction=True)
class TestAtTheSameTime:
    def test_several_registrations_get_distinct_numbers(self) -> None:
        run, user, workspace = run_with("model.pt"), make_contributor(), make_workspace()
        numbers: list[int] = []

        def once() -> None:
            try:
                numbers.append(register(workspace, "digits", run, "model.pt", user).number)
            finally:
                connection.close()

        threads = [threading.Thread(target=once) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
        assert sorted(numbers) == list(range(1, 9))
