"""Attempts and runs that begin with a checkpoint."""

from __future__ import annotations

import pytest

from clusters.models import Node
from jobs.attempts.attempt_end import end_attempt
from jobs.checkpoints import restoring
from jobs.models import Attempt, Checkpoint
from jobs.retention import deletion, run_purge
from jobs.scheduling import run_actions
from jobs.states import Reason, RunState
from tests.jobs.builders import both_running, ended, queued, running
from tests.jobs.checkpoints.saving import WEIGHTS, announce, deliver, save
from trainhub_launch.errors import SpecError
from trainhub_launch.states import CheckpointSign
from workspaces.access import Principal
from workspaces.stored_files import blobs

pytestmark = pytest.mark.django_db


class TestContinuing:
    def test_the_next_attempt_begins_with_the_newest(self, who: Principal) -> None:
        alpha, run = running(who, limits={"retries": 1})
        save(alpha, run, "one.pt")
        save(alpha, run, "two.pt", b"better weights")
        alpha.finish(run, ended(0, 1))
        run_actions.launch(run.pk)
        order = alpha.claim(run, attempt=2)
        assert order.checkpoint is not None
        assert [file.path for file in order.checkpoint.files] == ["two.pt"]
        assert (
            "goes on from checkpoint 2 (two.pt)"
            in run.events.get(to_state=RunState.PROVISIONING, attempt=2).message
        )

    def test_it_waits_for_what_the_last_one_saves(self, who: Principal) -> None:
        alpha, beta, run = both_running(who, limits={"retries": 1})
        alpha.tell(run, "uploading", ended(0, 1))
        beta.finish(run, ended(1))
        end_attempt(run.pk, 1, Reason.INTERNAL, {"detail": "a test"})
        run_actions.launch(run.pk)
        run.refresh_from_db()
        assert (run.state, run.attempt) == (RunState.QUEUED, 1)
        assert run.sentence == (
            f"Waiting until alpha has ended attempt 1 of run {run.number} and saved its files."
        )
        announce(alpha, run, "last.pt", final=["last.pt"])
        announce(beta, run, final=[])
        deliver(alpha, run, 1, {"last.pt": WEIGHTS})
        alpha.tell(run, "done", ended(0, 1))
        run_actions.launch(run.pk)
        run.refresh_from_db()
        assert run.attempt == 2
        began_with = Attempt.objects.get(run=run, number=2).restores
        assert began_with is not None
        assert began_with.name == "last.pt"

    def test_but_not_for_a_node_that_is_away(self, who: Principal) -> None:
        alpha, run = running(who, limits={"retries": 1})
        end_attempt(run.pk, 1, Reason.INTERNAL, {"detail": "a test"})
        run.refresh_from_db()
        assert "Waiting until alpha" in restoring.unsaved_sentence(run)
        Node.objects.filter(pk=alpha.node.pk).update(last_report_at=None)
        assert restoring.unsaved_sentence(run) == ""

    def test_another_run_begins_with_a_copy_that_outlives_the_first(self, who: Principal) -> None:
        alpha, run = running(who)
        save(alpha, run, "last.pt")
        alpha.finish(run)
        resumed = run_actions.submit(run_actions.resumed_spec(run), who, cloned_from=run)
        copy = Checkpoint.objects.get(run=resumed)
        assert (copy.attempt, copy.state, copy.origin) == (0, "complete", f"run {run.number}, checkpoint 1")
        run.refresh_from_db()
        deletion.delete(run, who.user)
        run_purge.purge_now(run, who.user)
        run_purge.purge_due(lambda _: None)
        run_actions.launch(resumed.pk)
        order = alpha.claim(resumed)
        assert order.checkpoint is not None
        assert [file.path for file in order.checkpoint.files] == ["last.pt"]
        assert blobs.exists(order.checkpoint.files[0].sha256)

    def test_another_run_waits_for_what_the_first_one_saves_last(self, who: Principal) -> None:
        alpha, run = running(who)
        save(alpha, run, "early.pt")
        alpha.tell(run, "uploading", ended(0))
        end_attempt(run.pk, 1, Reason.COMPLETED, {})
        resumed = run_actions.submit(run_actions.resumed_spec(run), who)
        run_actions.launch(resumed.pk)
        resumed.refresh_from_db()
        assert resumed.state == RunState.QUEUED
        assert resumed.sentence == (
            f"Waiting until alpha has ended attempt 1 of run {run.number} and saved its files."
        )
        save(alpha, run, "last.pt", b"better weights")
        alpha.tell(run, "done", ended(0))
        run_actions.launch(resumed.pk)
        order = alpha.claim(resumed)
        assert order.checkpoint is not None
        assert [file.path for file in order.checkpoint.files] == ["last.pt"]
        copy = Checkpoint.objects.get(run=resumed)
        assert copy.origin == f"run {run.number}, checkpoint 2"

    def test_a_run_that_waited_for_nothing_says_so(self, who: Principal) -> None:
        alpha, run = running(who)
        alpha.tell(run, "uploading", ended(0))
        end_attempt(run.pk, 1, Reason.COMPLETED, {})
        resumed = run_actions.submit(run_actions.resumed_spec(run), who)
        alpha.tell(run, "done", ended(0))
        run_actions.launch(resumed.pk)
        resumed.refresh_from_db()
        assert resumed.state == RunState.FAILED
        assert f"run {run.number} has no complete checkpoint" in resumed.sentence

    def test_a_person_may_choose_an_unconfirmed_one(self, who: Principal) -> None:
        alpha, run = running(who)
        number = save(alpha, run, "last.pt", sign=CheckpointSign.NONE)
        with pytest.raises(SpecError, match="no complete checkpoint"):
            run_actions.submit(run_actions.resumed_spec(run), who)
        resumed = run_actions.submit(run_actions.resumed_spec(run, number), who)
        assert restoring.newest(resumed) is not None

    def test_one_that_is_not_kept_is_refused_with_those_that_are(self, who: Principal) -> None:
        alpha, run = running(who)
        save(alpha, run, "last.pt")
        with pytest.raises(SpecError) as error:
            run_actions.submit(run_actions.resumed_spec(run, 7), who)
        assert error.value.field == "checkpoint.number"
        assert "it has: 1" in error.value.message

    def test_a_run_of_another_workspace_is_unknown(self, who: Principal) -> None:
        with pytest.raises(SpecError) as error:
            queued(who, checkpoint={"resume_from": "0" * 32})
        assert error.value.field == "checkpoint.resume_from"
