"""Which cluster a run gets whose spec names none."""

from __future__ import annotations

import pytest

from jobs.models import Run
from jobs.scheduling import run_actions
from jobs.scheduling.default_cluster import default_cluster
from tests.jobs.builders import node, queued, spec
from tests.people import make_person, principal_of
from trainhub_launch.errors import SpecError
from workspaces.access import Principal
from workspaces.states import Role

pytestmark = pytest.mark.django_db


def colleague(who: Principal) -> Principal:
    return principal_of(make_person("colleague", Role.CONTRIBUTOR, workspace=who.workspace))


class TestDefaultCluster:
    def test_none_is_a_refusal_that_says_how_to_get_one(self, who: Principal) -> None:
        with pytest.raises(SpecError, match=r"no cluster yet.*/clusters/add/") as refusal:
            run_actions.submit(spec(who), who)
        assert refusal.value.field == "resources.cluster"

    def test_the_only_one_is_taken_whatever_its_name(self, who: Principal) -> None:
        node("alpha", cluster="simulated-h100")
        run = run_actions.submit(spec(who), who)
        assert run.spec["resources"]["cluster"] == "simulated-h100"

    def test_the_one_with_the_most_free_gpus(self, who: Principal) -> None:
        node("alpha", cluster="a", gpus=1)
        node("beta", cluster="b", gpus=4)
        assert default_cluster(who) == "b"

    def test_without_gpus_the_one_with_the_most_free_slots(self, who: Principal) -> None:
        node("alpha", cluster="a", slots=2)
        node("beta", cluster="b", slots=8)
        assert default_cluster(who) == "b"

    def test_the_one_that_the_person_used_last(self, who: Principal) -> None:
        node("alpha", cluster="a", gpus=4)
        node("beta", cluster="b")
        queued(who, resources={"cluster": "b"})
        queued(colleague(who), resources={"cluster": "a"})
        assert default_cluster(who) == "b"

    def test_without_own_runs_the_one_that_the_workspace_used_last(self, who: Principal) -> None:
        node("alpha", cluster="a", gpus=4)
        node("beta", cluster="b")
        queued(colleague(who), resources={"cluster": "b"})
        assert default_cluster(who) == "b"

    def test_one_that_is_gone_is_not_used_again(self, who: Principal) -> None:
        node("alpha", cluster="a", gpus=4)
        node("beta", cluster="b")
        queued(who, resources={"cluster": "b"})
        Run.objects.update(spec=Run.objects.get().spec | {"resources": {"cluster": "gone"}})
        assert default_cluster(who) == "a"

    def test_a_repeated_request_finds_its_run_after_the_default_has_changed(self, who: Principal) -> None:
        node("alpha", cluster="a")
        first = run_actions.submit(spec(who), who, idempotency_key="nightly")
        node("beta", cluster="b", gpus=8)
        queued(who, resources={"cluster": "b"})
        assert run_actions.submit(spec(who), who, idempotency_key="nightly") == first
