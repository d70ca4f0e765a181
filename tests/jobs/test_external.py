"""Runs that were logged from elsewhere begin in an experiment that is there."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs import external
from jobs.models import Experiment, Run
from jobs.states import RunState
from tests.people import make_contributor, make_workspace
from trainhub_launch.errors import SpecError

pytestmark = pytest.mark.django_db


class TestBegin:
    def test_numbers_go_on_from_the_workspaces_last_one(self) -> None:
        experiment = Experiment.objects.create(workspace=make_workspace(), name="birds")
        begun = [
            external.create_run(experiment, make_contributor(), external.ExternalRunStart("night"))
            for _ in range(2)
        ]
        assert [run.number for run in begun] == [1, 2]

    def test_not_in_one_that_was_deleted_since_it_was_looked_up(self) -> None:
        experiment = Experiment.objects.create(workspace=make_workspace(), name="birds")
        Experiment.objects.filter(pk=experiment.pk).update(deleted_at=timezone.now())
        with pytest.raises(SpecError, match="'birds' is deleted; restore it"):
            external.create_run(experiment, make_contributor(), external.ExternalRunStart("night"))
        assert not Run.objects.exists()


class TestSetState:
    def test_an_end_that_is_told_again_corrects_the_time(self) -> None:
        carl = make_contributor()
        experiment = Experiment.objects.create(workspace=make_workspace(), name="birds")
        run = external.create_run(experiment, carl, external.ExternalRunStart("night"))
        assert external.set_state(run, RunState.COMPLETED, carl)
        ended_at = timezone.now() - timedelta(hours=1)
        assert not external.set_state(run, RunState.COMPLETED, carl, at=ended_at)
        run.refresh_from_db()
        assert run.finished_at == ended_at
