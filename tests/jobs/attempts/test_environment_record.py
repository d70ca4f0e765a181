"""What the hub knows about curated environments: which nodes have prepared one, and how long that took."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from django.utils import timezone

from clusters.models import Node
from environments.curated import CURATED
from jobs.models import PreparedEnvironment
from jobs.sources.first_use import first_uses
from tests.environments.locks import locked_curated
from tests.jobs.builders import Played, launched, node
from trainhub_launch.log_names import ENVIRONMENT_LOG
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
NAME = CURATED[0].name


@pytest.fixture(autouse=True)
def _locked(db: None) -> None:
    locked_curated(NAME)


def prepared(who: Principal, alpha: Played, *, seconds: float, logs: dict[str, int]) -> None:
    """Plays a run whose environment takes so long, to its end."""
    run = launched(who, environment={"name": NAME})
    alpha.claim(run)
    fact = alpha.facts[(run.pk, 1)]
    alpha.facts[(run.pk, 1)] = replace(fact, phase_at={"accepted": 0.0, "preparing": time.time() - seconds})
    alpha.tell(run, "running", logs=logs)
    alpha.finish(run)


def test_a_build_is_recorded_with_its_duration(who: Principal) -> None:
    prepared(who, Played(node("alpha")), seconds=512, logs={ENVIRONMENT_LOG: 10})
    use = first_uses(who.workspace)[NAME]
    assert use.build_s == pytest.approx(512, abs=2)
    assert (use.built_on, use.nodes) == ("alpha", ("alpha",))


def test_a_use_of_what_is_there_keeps_the_duration_of_the_build(who: Principal) -> None:
    alpha = Played(node("alpha"))
    prepared(who, alpha, seconds=512, logs={ENVIRONMENT_LOG: 10})
    prepared(who, alpha, seconds=1, logs={})
    assert first_uses(who.workspace)[NAME].build_s == pytest.approx(512, abs=2)


def test_nothing_is_recorded_of_a_failed_preparation(who: Principal) -> None:
    alpha = Played(node("alpha"))
    run = launched(who, environment={"name": NAME})
    alpha.claim(run)
    alpha.tell(run, "preparing", logs={ENVIRONMENT_LOG: 10})
    alpha.tell(run, "done", error="no", error_kind="environment")
    assert not PreparedEnvironment.objects.exists()


def test_an_interpreter_of_the_node_is_not_an_environment_of_it(who: Principal) -> None:
    alpha = Played(node("alpha"))
    run = launched(who)
    alpha.claim(run)
    alpha.tell(run, "running")
    assert not PreparedEnvironment.objects.exists()


def test_nodes_of_another_cluster_and_removed_ones_are_not_named(who: Principal) -> None:
    prepared(who, Played(node("alpha")), seconds=5, logs={ENVIRONMENT_LOG: 10})
    assert first_uses(who.workspace, "local")[NAME].nodes == ("alpha",)
    assert first_uses(who.workspace, "other")[NAME].nodes == ()
    Node.objects.update(revoked_at=timezone.now())
    assert first_uses(who.workspace)[NAME].nodes == ()
