"""The tabs Parameters and Metrics of a run's page."""

from __future__ import annotations

import pytest
from django.test import Client

from jobs import tags
from jobs.models import Run
from jobs.states import RunState
from tests.people import client_of, make_viewer
from tests.tracking.builders import logged_run
from tests.tracking.curves.builders import log
from tracking import params
from tracking.models import RunInput

pytestmark = pytest.mark.django_db


@pytest.fixture
def page() -> Client:
    return client_of(make_viewer())


def tab(page: Client, run: Run) -> str:
    return page.get(f"/runs/{run.number}/params/").content.decode()


class TestParameters:
    def test_each_leads_to_the_runs_with_the_same_value(self, page: Client) -> None:
        run, other = logged_run("one"), logged_run("two")
        for item, rate in ((run, "0.1"), (other, "0.3")):
            params.put(item.pk, item.experiment_id, {"optimizer/lr rate": rate})
        text = tab(page, run)
        assert "optimizer/lr rate" in text
        url = (
            text.split('title="Runs with the same optimizer/lr rate"')[0]
            .rpartition('href="')[2]
            .partition('"')[0]
        )
        listing = page.get(url.replace("&amp;", "&")).content.decode()
        assert (">one<" in listing, ">two<" in listing) == (True, False)

    def test_a_value_beyond_what_a_filter_takes_leads_nowhere(self, page: Client) -> None:
        run = logged_run()
        params.put(run.pk, run.experiment_id, {"prompt": "x" * 201, "text": "y" * 200})
        text = tab(page, run)
        assert "x" * 201 in text
        assert 'title="Runs with the same prompt"' not in text
        assert 'title="Runs with the same text"' in text

    def test_what_a_script_said_cannot_be_taken_for_a_page(self, page: Client) -> None:
        run = logged_run()
        params.put(run.pk, run.experiment_id, {"note": "<script>alert(1)</script>"})
        assert "<script>alert" not in tab(page, run)

    def test_the_clients_own_tags_stand_apart_and_the_note_does_not_stand_here(self, page: Client) -> None:
        run = logged_run()
        tags.set_tags(
            run, {"team": "vision", "mlflow.source.name": "train.py", "mlflow.note.content": "what it showed"}
        )
        text = tab(page, run)
        assert text.index("team") < text.index("Client information") < text.index("train.py")
        assert "what it showed" not in text

    def test_data_that_it_read_is_named(self, page: Client) -> None:
        run = logged_run()
        RunInput.objects.create(
            run=run, name="birds-v5", digest="ab12", source_type="local", source="/data/birds"
        )
        assert "birds-v5" in tab(page, run)

    def test_an_empty_one_says_how_to_fill_it_and_goes_when_the_run_has_ended(self, page: Client) -> None:
        run = logged_run()
        assert "mlflow.log_params" in tab(page, run)
        Run.objects.filter(pk=run.pk).update(state=RunState.COMPLETED)
        assert page.get(f"/runs/{run.number}/params/").status_code == 404


class TestMetrics:
    def test_draws_the_run_and_the_runs_that_are_part_of_it(self, page: Client, valkey: str) -> None:
        run = logged_run()
        log(logged_run("fold 1", parent=run), loss=[1.0])
        answer = page.get(f"/runs/{run.number}/metrics/")
        assert answer.status_code == 200
        curves = answer.context["curves"]["runs"]
        assert [(item["name"], len(item["metrics"])) for item in curves] == [("night", 0), ("fold 1", 1)]
        for name in ("listing", "series", "csv"):
            address = answer.context[name]
            assert address.startswith(f"/api/v1/runs/{run.pk}/metrics"), name
            assert address in answer.content.decode().replace("&amp;", "&"), name
