from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection

from jobs.models import Experiment, Run
from jobs.scheduling import run_actions
from jobs.scheduling.run_actions import SubmitRefused
from tests.jobs.builders import node, processes, queued, spec
from tests.people import make_contributor, make_person, make_viewer, make_workspace, principal_of
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import RunSpec, SnapshotSource
from trainhub_launch.spec_reader import read_spec
from workspaces.access import Principal
from workspaces.states import Role

pytestmark = pytest.mark.django_db


def refused(who: Principal, **changes: object) -> SubmitRefused:
    with pytest.raises(SubmitRefused) as error:
        run_actions.submit(spec(who, **changes), who)
    return error.value


class TestSubmit:
    def test_numbers_runs_per_workspace_without_gaps(self, who: Principal) -> None:
        other = principal_of(make_person("otto", Role.CONTRIBUTOR, make_workspace("other")))
        assert [queued(who).number, queued(who).number, queued(other).number, queued(who).number] == [
            1,
            2,
            1,
            3,
        ]

    def test_names_a_run_after_its_script(self, who: Principal) -> None:
        assert queued(who).display_name == "train 1"
        assert queued(who, display_name="best one").display_name == "best one"

    def test_keeps_spec_and_preview(self, who: Principal) -> None:
        node()
        run = queued(who, distribution=processes(2))
        assert read_spec(run.spec).display_name == "train 1"
        assert run.preview is not None
        assert len(run.preview["commands"][0]["processes"]) == 2

    def test_freezes_an_example(self, who: Principal) -> None:
        run = queued(who, source={"type": "example", "name": "hello"}, script="hello.py")
        assert run.spec["source"]["type"] == "snapshot"
        assert who.workspace.snapshots.filter(sha256=run.spec["source"]["id"]).exists()

    def test_makes_the_experiment_once(self, who: Principal) -> None:
        queued(who, experiment="digits")
        queued(who, experiment="digits")
        assert list(Experiment.objects.values_list("name", flat=True)) == ["digits"]

    def test_needs_more_than_a_viewers_role(self, who: Principal) -> None:
        viewer = principal_of(make_viewer())
        with pytest.raises(PermissionDenied, match="contributor"):
            run_actions.submit(spec(who), viewer)


class TestRefused:
    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"script": "tarin.py"}, "script"),
            ({"resources": {"cluster": "moon"}}, "resources.cluster"),
            ({"environment": {"name": "nope"}}, "environment.name"),
            ({"environment": {"version": "2.7"}}, "environment.version"),
            ({"resources": {"gpus_per_node": 9}}, "resources.gpus_per_node"),
            ({"environment_variables": {"KEY": {"secret": "wandb"}}}, "environment_variables.KEY"),
            ({"source": {"type": "snapshot", "id": "0" * 64}}, "source.id"),
            ({"source": {"type": "example", "name": "nope"}}, "source.name"),
        ],
    )
    def test_names_the_field(self, changes: dict[str, object], field: str, who: Principal) -> None:
        node()
        error = refused(who, **changes)
        assert error.field == field
        assert not Run.objects.exists()

    def test_carries_every_finding(self, who: Principal) -> None:
        node()
        error = refused(who, script="nope.py", resources={"gpus_per_node": 9})
        assert {"script", "resources.gpus_per_node"} <= {finding.field for finding in error.findings}

    def test_a_snapshot_of_another_workspace_is_unknown_here(self, who: Principal) -> None:
        other = principal_of(make_person("otto", Role.CONTRIBUTOR, make_workspace("other")))
        node()
        with pytest.raises(SubmitRefused, match="no such snapshot"):
            run_actions.submit(spec(other), who)


class TestIdempotency:
    def test_the_same_key_is_the_same_run(self, who: Principal) -> None:
        node()
        wanted = spec(who)
        first = run_actions.submit(wanted, who, idempotency_key="k")
        assert run_actions.submit(wanted, who, idempotency_key="k").pk == first.pk
        assert Run.objects.count() == 1

    def test_the_same_key_for_something_else_is_refused(self, who: Principal) -> None:
        node()
        run_actions.submit(spec(who), who, idempotency_key="k")
        with pytest.raises(SpecError, match="used before, for run 1"):
            run_actions.submit(spec(who, arguments=["--other"]), who, idempotency_key="k")

    def test_keys_of_two_workspaces_do_not_meet(self, who: Principal) -> None:
        node()
        other = principal_of(make_person("otto", Role.CONTRIBUTOR, make_workspace("other")))
        first = run_actions.submit(spec(who), who, idempotency_key="k")
        assert run_actions.submit(spec(other), other, idempotency_key="k").pk != first.pk


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("key", "runs"), [(None, 4), ("k", 1)])
def test_many_at_once_get_numbers_of_their_own_or_with_one_key_one_run(
    valkey: str, key: str | None, runs: int
) -> None:
    who = principal_of(make_contributor())
    node()
    wanted = spec(who)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: _submitted(wanted, who, key), range(4)))
    assert sorted({run.number for run in made}) == list(range(1, runs + 1))


def _submitted(wanted: RunSpec, who: Principal, key: str | None) -> Run:
    try:
        return run_actions.submit(wanted, who, idempotency_key=key)
    finally:
        connection.close()


class TestClone:
    def test_is_the_same_run_to_start_from(self, who: Principal) -> None:
        run = queued(who, arguments=["--epochs", 3], display_name="mine")
        assert run_actions.clone_spec(run) == read_spec(run.spec)

    def test_gets_a_new_name_where_we_gave_the_old_one(self, who: Principal) -> None:
        again = run_actions.submit(run_actions.clone_spec(queued(who)), who)
        assert again.display_name == "train 2"


class TestPreview:
    def test_is_on_the_real_nodes(self, who: Principal) -> None:
        node(gpus=2)
        shown = run_actions.preview(spec(who, distribution=processes(2), resources={"gpus_per_node": 2}), who)
        assert shown.plan is not None
        assert [process.gpus for process in shown.plan.processes] == [
            ("<GPU 0 of alpha>",),
            ("<GPU 1 of alpha>",),
        ]
        assert not shown.errors

    def test_changes_nothing(self, who: Principal) -> None:
        node()
        run_actions.preview(spec(who, experiment="new"), who)
        assert not Run.objects.exists()
        assert not Experiment.objects.exists()

    def test_shows_a_plan_even_while_no_node_is_ready(self, who: Principal) -> None:
        queued(who)
        shown = run_actions.preview(spec(who), who)
        assert shown.plan is not None
        assert [finding.level for finding in shown.findings] == ["warning"]

    def test_never_raises_for_what_a_person_wrote(self, who: Principal) -> None:
        wanted = RunSpec(source=SnapshotSource(id="../../etc"), script="x.py")
        assert {finding.field for finding in run_actions.preview(wanted, who).errors} == {
            "source.id",
            "resources.cluster",
        }
