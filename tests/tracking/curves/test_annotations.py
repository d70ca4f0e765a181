"""What happened to a run, as marks on its charts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.test import Client

from clusters.models import Alert
from jobs.models import Attempt, Run
from tests.jobs.builders import node, running
from tests.people import make_contributor, make_workspace, principal_of
from tracking.curves.lines import start_ms
from tracking.metrics.point_writer import Point, append


def annotations_of_kind(api: Client, run: Run, kind: str) -> list[dict[str, Any]]:
    answer = api.get(f"/api/v1/runs/{run.pk}/annotations/")
    assert answer.status_code == 200, answer.content
    found = answer.json()["annotations"]
    assert [item["at"] for item in found] == sorted(item["at"] for item in found)
    return [item for item in found if item["kind"] == kind]


def test_tell_each_change_of_state(api: Client) -> None:
    _, run = running(principal_of(make_contributor()))
    states = annotations_of_kind(api, run, "state")
    assert [item["label"] for item in states][-1] == "Running"
    assert (states[-1]["tone"], states[-1]["until"], states[-1]["step"]) == ("running", None, None)
    assert api.get(f"/api/v1/runs/{run.pk}/annotations/").json()["start"] == start_ms(run) / 1000


def test_tell_a_restart_with_the_step_that_was_reached(api: Client, run: Run) -> None:
    assert run.started_at is not None
    began = start_ms(run)
    append(
        run.pk,
        run.experiment_id,
        # Six steps, a second apart; the second attempt begins again at step 2.
        [
            *(Point("loss", 1.0, step, began + step * 1000) for step in range(6)),
            Point("loss", 1.0, 2, began + 20_000),
        ],
    )
    for number, seconds in ((1, 0), (2, 10)):
        attempt = Attempt.objects.create(run=run, number=number, placement={})
        Attempt.objects.filter(pk=attempt.pk).update(created_at=run.started_at + timedelta(seconds=seconds))
    (restart,) = annotations_of_kind(api, run, "attempt")
    assert (restart["label"], restart["step"]) == ("Attempt 2", 5)
    assert restart["text"] == "Attempt 2 started; the one before had reached step 5."


def test_tell_a_restart_before_anything_was_logged_without_a_step(api: Client, run: Run) -> None:
    Attempt.objects.create(run=run, number=2, placement={})
    (restart,) = annotations_of_kind(api, run, "attempt")
    assert (restart["text"], restart["step"]) == ("Attempt 2 started.", None)


def test_tell_the_alerts_on_the_gpus_that_it_held(api: Client, run: Run) -> None:
    begin = run.started_at
    assert begin is not None
    alpha = node()
    facts = {"holder_workspace": make_workspace().pk, "holder_label": f"run {run.number}"}
    for key, holder, state in (("a", run.pk, "cleared"), ("b", run.pk, "firing"), ("c", "other", "firing")):
        Alert.objects.create(
            key=key,
            kind="gpu_hot",
            node=alpha,
            holder=holder,
            severity="critical",
            state=state,
            sentence="GPU 0 is 95 °C.",
            facts=facts,
            fired_at=begin,
            cleared_at=begin + timedelta(seconds=30) if state == "cleared" else None,
        )
    cleared, firing = annotations_of_kind(api, run, "alert")
    assert (cleared["until"] - cleared["at"], cleared["is_open"]) == (30, False)
    assert (firing["until"], firing["is_open"]) == (None, True)
    assert (firing["text"], firing["tone"]) == ("GPU 0 is 95 °C.", "failed")
