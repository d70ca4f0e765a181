from __future__ import annotations

from typing import Any

import pytest

from jobs import external, lifecycle
from jobs.errors import Conflict
from jobs.models import Experiment, Run
from jobs.retention import deletion
from jobs.scheduling import run_actions
from jobs.states import Reason, RunState
from tests.jobs.builders import Played, launched, node, queued, spec
from tests.people import make_person, make_workspace, principal_of
from trainhub_launch.errors import SpecError
from workspaces.access import Principal
from workspaces.models import AuditEvent
from workspaces.states import Role


def finished(who: Principal, **changes: Any) -> Run:
    alpha = Played(node())
    run = launched(who, **changes)
    alpha.claim(run)
    alpha.finish(run)
    run.refresh_from_db()
    return run


def logged(who: Principal, parent: Run | None = None, experiment: str = "elsewhere") -> Run:
    """A run from elsewhere, still running."""
    made, _ = Experiment.objects.get_or_create(workspace=who.workspace, name=experiment)
    return external.create_run(made, who.user, external.ExternalRunStart("laptop", parent=parent))


def kept(who: Principal) -> set[str]:
    return set(Run.objects.for_workspace(who.workspace).values_list("pk", flat=True))


class TestDelete:
    def test_hides_a_run_and_keeps_it(self, who: Principal) -> None:
        run = finished(who)
        assert run_actions.delete(run, who.user)
        assert kept(who) == set()
        assert Run.objects.with_deleted_for_workspace(who.workspace).deleted().get() == run
        assert AuditEvent.objects.filter(verb="run.delete").exists()

    def test_again_changes_nothing(self, who: Principal) -> None:
        run = finished(who)
        run_actions.delete(run, who.user)
        at = Run.objects.get().deleted_at
        assert not run_actions.delete(run, who.user)
        assert Run.objects.get().deleted_at == at

    def test_hides_what_is_part_of_it(self, who: Principal) -> None:
        run = finished(who)
        nested = logged(who, logged(who, run))
        other = logged(who)
        run_actions.delete(run, who.user)
        assert kept(who) == {other.pk}
        nested.refresh_from_db()
        assert nested.deleted_at is not None

    def test_not_while_it_runs(self, who: Principal) -> None:
        with pytest.raises(Conflict, match="cancel it before"):
            run_actions.delete(queued(who), who.user)
        assert Run.objects.not_deleted().exists()

    def test_but_a_run_from_elsewhere_at_any_time_for_it_has_no_processes(self, who: Principal) -> None:
        run = logged(who)
        assert run.state == RunState.RUNNING
        assert run_actions.delete(run, who.user)

    def test_not_what_a_job_is_part_of_that_runs(self, who: Principal) -> None:
        above = logged(who)
        job = queued(who)
        Run.objects.filter(pk=job.pk).update(parent=above)
        with pytest.raises(Conflict, match=f"Run {job.number} is Queued"):
            run_actions.delete(above, who.user)
        assert Run.objects.not_deleted().count() == 2

    def test_not_while_a_node_may_still_hold_it(self, who: Principal) -> None:
        alpha = Played(node())
        run = launched(who)
        alpha.claim(run)
        lifecycle.advance(run.pk, RunState.FAILED, Reason.NODE_LOST, facts={"node": "alpha", "seconds": 60})
        with pytest.raises(Conflict, match="not yet confirmed"):
            run_actions.delete(run, who.user)


class TestRestore:
    def test_brings_back_what_was_deleted_along_with_it(self, who: Principal) -> None:
        run = finished(who)
        earlier, nested = logged(who, run), logged(who, run)
        run_actions.delete(earlier, who.user)
        run_actions.delete(run, who.user)
        assert run_actions.restore(run, who.user)
        assert kept(who) == {run.pk, nested.pk}
        assert AuditEvent.objects.filter(verb="run.restore").exists()

    def test_of_a_part_brings_back_the_whole_that_it_belongs_to(self, who: Principal) -> None:
        run = finished(who)
        nested, sibling = logged(who, run), logged(who, run)
        run_actions.delete(run, who.user)
        run_actions.restore(nested, who.user)
        assert kept(who) == {run.pk, nested.pk}
        assert sibling.pk not in kept(who)

    def test_of_a_run_that_is_there_changes_nothing(self, who: Principal) -> None:
        assert not run_actions.restore(finished(who), who.user)

    def test_not_once_its_purge_has_begun(self, who: Principal) -> None:
        run = finished(who)
        run_actions.delete(run, who.user)
        Run.objects.update(deleted_at=deletion.PURGE_STARTED)
        with pytest.raises(Conflict, match="deleted permanently"):
            run_actions.restore(run, who.user)


class TestExperiment:
    def test_is_hidden_with_its_runs_and_comes_back_with_those(self, who: Principal) -> None:
        first, second = logged(who), logged(who)
        deletion.delete(first, who.user)
        deletion.delete_experiment(second.experiment, who.user)
        assert kept(who) == set()
        with pytest.raises(Conflict, match="restore that first"):
            deletion.restore(second, who.user)
        deletion.restore_experiment(second.experiment, who.user)
        assert kept(who) == {second.pk}

    def test_not_while_a_job_of_it_runs(self, who: Principal) -> None:
        run = queued(who)
        with pytest.raises(Conflict, match="cancel it before"):
            deletion.delete_experiment(run.experiment, who.user)
        run.experiment.refresh_from_db()
        assert run.experiment.deleted_at is None
        assert kept(who) == {run.pk}

    def test_takes_no_new_runs(self, who: Principal) -> None:
        run = finished(who)
        deletion.delete_experiment(run.experiment, who.user)
        with pytest.raises(SpecError, match="restore it at /runs/deleted/") as refused:
            run_actions.submit(spec(who, experiment=run.experiment.name), who)
        assert refused.value.field == "experiment"
        assert Run.objects.count() == 1


class TestArchive:
    def test_takes_it_out_of_the_lists_and_leaves_it_to_be_found(self, who: Principal) -> None:
        run = finished(who)
        nested = logged(who, run)
        assert run_actions.archive(run, who.user)
        assert not run_actions.archive(run, who.user)
        assert not Run.objects.for_workspace(who.workspace).listed().exists()
        assert kept(who) == {run.pk, nested.pk}
        assert run_actions.unarchive(run, who.user)
        assert Run.objects.listed().count() == 2

    def test_not_while_it_runs(self, who: Principal) -> None:
        with pytest.raises(Conflict, match="archive it when it has ended"):
            run_actions.archive(queued(who), who.user)


def test_a_key_that_was_used_for_a_deleted_run_is_refused_with_its_number(who: Principal) -> None:
    node()
    wanted = spec(who)
    run = run_actions.submit(wanted, who, idempotency_key="once")
    run_actions.cancel(run, who.user)
    run_actions.delete(run, who.user)
    with pytest.raises(SpecError, match=f"run {run.number}, now deleted"):
        run_actions.submit(wanted, who, idempotency_key="once")


def test_another_workspaces_runs_stay_as_they_are(who: Principal) -> None:
    other = principal_of(make_person("otto", Role.CONTRIBUTOR, make_workspace("other")))
    theirs = logged(other)
    deletion.delete_experiment(logged(who).experiment, who.user)
    assert kept(other) == {theirs.pk}
