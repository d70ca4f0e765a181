"""Runs that were logged from elsewhere, on pages and in the API: only what they have, and nothing that
TrainHub cannot do."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from jobs import external
from jobs.models import Experiment, Run
from jobs.states import RunState
from tests.jobs.builders import queued
from tests.markup import one_line
from tests.people import client_of, make_contributor, make_workspace, principal_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser() -> Client:
    return client_of(make_contributor())


def begun(name: str = "night", parent: Run | None = None) -> Run:
    experiment, _ = Experiment.objects.get_or_create(workspace=make_workspace(), name="birds")
    return external.create_run(
        experiment, make_contributor(), external.ExternalRunStart(name, {"seed": "1"}, parent)
    )


class TestItsPage:
    def test_has_no_tabs_of_jobs(self, browser: Client) -> None:
        run = begun()
        page = one_line(browser.get(f"/runs/{run.number}/").content.decode())
        assert "night" in page
        assert "> Events </a>" in page
        assert all(f"> {word} <" not in page for word in ("Logs", "Ranks", "Plan", "GPUs", "Spec"))

    @pytest.mark.parametrize("tab", ["logs", "members", "plan", "gpus", "spec"])
    def test_is_not_found_under_them(self, browser: Client, tab: str) -> None:
        assert browser.get(f"/runs/{begun().number}/{tab}/").status_code == 404

    @pytest.mark.parametrize("tab", ["outputs", "events"])
    def test_shows_the_others(self, browser: Client, tab: str) -> None:
        assert browser.get(f"/runs/{begun().number}/{tab}/").status_code == 200

    def test_offers_neither_to_cancel_nor_to_clone_it(self, browser: Client) -> None:
        run = begun()
        page = browser.get(f"/runs/{run.number}/").content.decode()
        assert f"/runs/{run.number}/cancel/" not in page
        assert f"/runs/{run.number}/clone/" not in page
        assert f"/runs/{run.number}/delete/" in page

    @pytest.mark.parametrize("verb", ["cancel", "clone"])
    def test_says_why_it_does_neither(self, browser: Client, verb: str) -> None:
        answer = browser.post(f"/runs/{begun().number}/{verb}/", follow=True)
        assert "is external: TrainHub did not start it" in answer.content.decode()

    def test_names_what_it_is_part_of(self, browser: Client) -> None:
        outer = begun("outer")
        page = browser.get(f"/runs/{begun('inner', outer).number}/").content.decode()
        assert f'part of <a href="/runs/{outer.number}/">' in page

    def test_stands_when_it_failed(self, browser: Client) -> None:
        run = begun()
        external.set_state(run, RunState.FAILED, None)
        assert "Failed" in browser.get(f"/runs/{run.number}/").content.decode()


class TestTheDashboard:
    def test_shows_it_among_what_runs(self, browser: Client) -> None:
        begun()
        assert "night" in browser.get("/").content.decode()

    def test_does_not_show_what_a_job_has_opened(self, browser: Client) -> None:
        job = queued(principal_of(make_contributor()))
        part = begun("opened by a job", job)
        assert "opened by a job" not in browser.get("/").content.decode()
        external.set_state(part, RunState.COMPLETED, None)
        assert "opened by a job" not in browser.get("/").content.decode()


class TestTheApi:
    def test_lists_it_with_its_tags(self, browser: Client) -> None:
        run = begun()
        (told,) = browser.get("/api/v1/runs/").json()["results"]
        assert (told["id"], told["kind"], told["framework"], told["cluster"]) == (run.pk, "external", "", "")
        assert (told["tags"], told["parent"]) == ({"seed": "1"}, None)

    def test_lists_what_is_part_of_a_job_by_its_id_alone(self, browser: Client) -> None:
        job = queued(principal_of(make_contributor()), tags={"team": "vision"})
        part = begun("opened by a job", job)
        (listed,) = browser.get("/api/v1/runs/").json()["results"]
        assert (listed["id"], listed["tags"]) == (job.pk, {"team": "vision"})
        (found,) = browser.get("/api/v1/runs/", {"parent": job.pk}).json()["results"]
        assert (found["id"], found["parent"]) == (part.pk, job.pk)

    def test_gives_it_whole(self, browser: Client) -> None:
        told = browser.get(f"/api/v1/runs/{begun().pk}/").json()
        assert (told["spec"], told["preview"], told["attempts"], told["members"], told["cause"]) == (
            {},
            None,
            [],
            [],
            None,
        )

    def test_deletes_it_while_it_runs(self, browser: Client) -> None:
        run = begun()
        assert browser.delete(f"/api/v1/runs/{run.pk}/").status_code == 204
        assert browser.get(f"/api/v1/runs/{run.pk}/").status_code == 404


class TestMoving:
    def test_is_journaled_with_who_said_so(self) -> None:
        run = begun()
        assert external.set_state(run, RunState.COMPLETED, make_contributor())
        assert not external.set_state(run, RunState.COMPLETED, make_contributor())
        event = run.events.last()
        assert event is not None
        assert (event.from_state, event.to_state, event.actor) == ("Running", "Completed", "carl")

    def test_takes_the_clients_word_for_when_it_ended(self) -> None:
        run, then = begun(), timezone.now() - timedelta(hours=1)
        external.set_state(run, RunState.FAILED, None, at=then)
        run.refresh_from_db()
        assert (run.state, run.finished_at) == ("Failed", then)

    def test_goes_back_to_running(self) -> None:
        run = begun()
        external.set_state(run, RunState.COMPLETED, None)
        external.set_state(run, RunState.RUNNING, None)
        run.refresh_from_db()
        assert (run.state, run.finished_at) == ("Running", None)

    def test_leaves_jobs_alone(self) -> None:
        job = queued(principal_of(make_contributor()))
        assert not external.set_state(job, RunState.COMPLETED, None)
