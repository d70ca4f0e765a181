"""Builds between hub and node: orders, claims, reports, cancels, and builds whose node is silent."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from clusters.models import Node
from jobs.builds import build_lifecycle
from jobs.builds.build_requests import (
    cancel_build,
    request_builds,
)
from jobs.builds.models import is_build_id, new_build_id
from jobs.builds.node_environments import node_environments_of
from jobs.errors import Conflict
from jobs.logs import log_store
from jobs.models import EnvironmentBuild, PreparedEnvironment, new_run_id
from jobs.node_api.claims import Refused
from jobs.node_orders import order_purge
from jobs.recovery import reaper
from tests.environments.locks import locked
from tests.jobs.builders import Played, launched, node
from tests.jobs.builds.ordered import LOGS, completed, ordered, state_of, taken_up, target_of
from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_launch.order import NodeOrder, OrderKind
from workspaces.access import Principal

pytestmark = pytest.mark.usefixtures("valkey")


class TestRoad:
    def test_from_the_order_to_a_node_that_has_it(self, who: Principal, alpha: Played) -> None:
        (build,) = ordered(who)
        assert build.state == "queued"
        # A lost wake-up is repaired by the answer to the next report.
        assert alpha.report().start == ((build.pk, 1),)
        order = alpha.claim(build)
        assert (order.kind, order.run, order.environment.lock[:7]) == (OrderKind.BUILD, build.pk, "tinylib")
        assert (order.command.processes, order.values, order.snapshot, order.masked) == ((), {}, "", ())
        assert NodeOrder.from_json(order.to_json()) == order
        alpha.tell(build, "preparing")
        assert state_of(build)[0] == "building"
        assert alpha.log(build, ENVIRONMENT_LOG, 0, b"built\n") == 6
        alpha.tell(build, "running", logs=LOGS)
        assert alpha.tell(build, "done", logs=LOGS).settled == ((build.pk, 1),)
        assert state_of(build) == ("built", "")
        assert build.duration_s is not None
        assert log_store.read(build.pk, 1, ENVIRONMENT_LOG, 0, 100) == b"built\n"
        row = PreparedEnvironment.objects.get()
        assert (row.node, row.own_version, row.build_s is None) == (alpha.node, build.own_version, False)

    def test_the_end_waits_for_the_last_byte_of_the_log(self, who: Principal, alpha: Played) -> None:
        build = taken_up(who, alpha)
        alpha.tell(build, "running", logs=LOGS)
        assert alpha.tell(build, "done", logs=LOGS).settled == ()
        assert state_of(build)[0] == "building"
        alpha.log(build, ENVIRONMENT_LOG, 0, b"built\n")
        assert state_of(build)[0] == "built"

    def test_a_failure_has_the_sentence_of_the_node(self, who: Principal, alpha: Played) -> None:
        build = taken_up(who, alpha)
        alpha.tell(build, "done", error="pip could not install it.", error_kind="environment")
        assert state_of(build) == ("failed", "pip could not install it.")
        assert not PreparedEnvironment.objects.exists()

    def test_only_logs_of_builds_are_stored(self, who: Principal, alpha: Played) -> None:
        build = taken_up(who, alpha)
        alpha.log(build, "70_driver_log.txt", 0, b"no rank runs here\n")
        assert log_store.log_sizes(build.pk, 1) == {}

    def test_ids_of_builds_and_runs_differ(self) -> None:
        assert all(is_build_id(new_build_id()) and not is_build_id(new_run_id()) for _ in range(50))


class TestClaim:
    def test_is_answered_once_per_nonce_and_only_to_the_node(self, who: Principal, alpha: Played) -> None:
        beta = Played(node("beta"), nonce="b" * 32)
        (build,) = ordered(who, "alpha")
        with pytest.raises(Refused, match="not for this node"):
            beta.claim(build)
        assert alpha.claim(build) == alpha.claim(build)
        with pytest.raises(Refused, match="claimed before"):
            alpha.claim(build, nonce="c" * 32)
        with pytest.raises(Refused, match="not for this node"):
            alpha.claim(build, attempt=2)

    def test_of_an_agent_that_was_exchanged_for_an_older_one_is_refused(
        self, who: Principal, alpha: Played
    ) -> None:
        (build,) = ordered(who)
        Node.objects.update(capabilities="secrets")
        alpha.node.refresh_from_db()
        with pytest.raises(Refused, match="takes no orders of this kind; upgrade it"):
            alpha.claim(build)

    def test_on_a_node_without_the_python_ends_the_build(self, who: Principal, alpha: Played) -> None:
        (build,) = ordered(who)
        alpha.node.interpreters = []
        with pytest.raises(Refused, match="has not reported its interpreters yet"):
            alpha.claim(build)
        assert state_of(build)[0] == "queued"
        alpha.node.interpreters = [{"path": "/usr/bin/python3", "version": "3.12.1"}]
        alpha.node.save(update_fields=["interpreters"])
        with pytest.raises(Refused, match="mine 1 needs Python"):
            alpha.claim(build)
        assert state_of(build)[0] == "failed"
        assert build.settled_at is not None


class TestCancel:
    def test_before_the_claim_ends_at_once_and_the_next_begins(self, who: Principal, alpha: Played) -> None:
        (first,), (second,) = ordered(who), ordered(who, target=target_of(who, locked(who, "other")))
        cancel_build(who, first.pk)
        assert state_of(first) == ("canceled", "carl canceled it.")
        build_lifecycle.offer_next(alpha.node.pk)
        assert alpha.report().start == ((second.pk, 1),)
        with pytest.raises(Conflict, match="it is canceled"):
            cancel_build(who, first.pk)

    def test_of_a_running_one_stops_it_on_the_node(self, who: Principal, alpha: Played) -> None:
        build = taken_up(who, alpha)
        cancel_build(who, build.pk)
        (stop,) = alpha.report().stop
        assert (stop.run, stop.why) == (build.pk, "canceled")
        assert state_of(build)[0] == "building"
        assert alpha.tell(build, "done", stopping="canceled").settled == ((build.pk, 1),)
        assert state_of(build) == ("canceled", "carl canceled it.")

    def test_that_comes_too_late_changes_nothing(self, who: Principal, alpha: Played) -> None:
        build = taken_up(who, alpha)
        cancel_build(who, build.pk)
        completed(alpha, build)
        assert state_of(build) == ("built", "")

    def test_of_a_silent_node_ends_after_a_while(self, who: Principal, alpha: Played) -> None:
        build = taken_up(who, alpha)
        cancel_build(who, build.pk)
        soon = timezone.now() + timedelta(seconds=settings.NODE_UNREACHABLE_AFTER + 40)
        reaper.check_runs(soon)
        assert state_of(build)[0] in ("canceled", "failed")


class TestSilence:
    def test_a_build_that_nobody_takes_up_fails(self, who: Principal, alpha: Played) -> None:
        (build,) = ordered(who)
        reaper.check_runs(timezone.now() + timedelta(seconds=settings.NEVER_STARTED_AFTER + 1))
        assert state_of(build)[0] == "failed"
        assert "alpha did not take it up within" in build.reason

    def test_a_build_of_a_lost_node_fails_and_is_stopped_when_the_node_returns(
        self, who: Principal, alpha: Played
    ) -> None:
        build = taken_up(who, alpha)
        reaper.check_runs(timezone.now() + timedelta(seconds=settings.NODE_LOST_AFTER + 60))
        assert state_of(build)[0] == "failed"
        assert build.reason.startswith("Node alpha has not reported for")
        (stop,) = alpha.report().stop
        assert (stop.run, stop.why) == (build.pk, "orphan")
        # Until then the node may be busy with it: nothing else is offered.
        assert build.settled_at is None
        alpha.tell(build, "done", stopping="orphan")
        build.refresh_from_db()
        assert build.settled_at is not None

    def test_what_the_node_has_lost_fails(self, who: Principal, alpha: Played) -> None:
        build = taken_up(who, alpha)
        alpha.facts.clear()
        alpha.report()
        alpha.report(now=timezone.now() + timedelta(seconds=120))
        assert state_of(build)[0] == "failed"
        assert build.reason == "alpha has lost it, with its disk or its processes. Order it again."

    def test_a_lost_offer_is_repeated(self, who: Principal, alpha: Played) -> None:
        (build,) = request_builds(who, target_of(who))
        assert alpha.report().start == ()
        reaper.check_runs()
        assert alpha.report().start == ((build.pk, 1),)

    def test_builds_of_a_removed_node_are_settled(self, who: Principal, alpha: Played) -> None:
        build = taken_up(who, alpha)
        Node.objects.update(removed_at=timezone.now())
        reaper.check_runs()
        assert state_of(build) == ("failed", "Node alpha was removed.")
        assert build.settled_at is not None


class TestNodeEnvironments:
    def test_one_place_knows_what_runs_and_builds_have_left(self, who: Principal, alpha: Played) -> None:
        beta = Played(node("beta"), nonce="b" * 32)
        node("gamma")
        build = taken_up(who, alpha)
        target = target_of(who, build.own_version)

        def states() -> dict[str, str]:
            assert build.own_version is not None
            items = node_environments_of(build.own_version, who.workspace)
            return {item.node.name: item.state for item in items}

        assert states() == {"alpha": "building", "beta": "", "gamma": ""}
        completed(alpha, build)
        # A run whose preparation builds it says the same of its node.
        run = launched(who, environment={"name": "mine"})
        played = next(item for item in (alpha, beta) if item.node == run.attempts.get().parts.get().node)
        played.claim(run)
        played.finish(run)
        assert states()[played.node.name] == "ready"
        assert states()["alpha"] == "ready"
        (again,) = ordered(who, "beta", target=target)
        beta.claim(again)
        beta.tell(again, "done", error="No.", error_kind="environment")
        assert states() == {"alpha": "ready", "beta": "failed", "gamma": ""}


def test_old_builds_and_logs_without_a_build_are_deleted(who: Principal, alpha: Played) -> None:
    build = taken_up(who, alpha)
    completed(alpha, build)
    order_purge.purge_orders(EnvironmentBuild, is_build_id, timezone.now())
    assert log_store.size(build.pk, 1, ENVIRONMENT_LOG) == 6
    assert build.own_version is not None
    build.own_version.environment.delete()
    order_purge.purge_orders(EnvironmentBuild, is_build_id, timezone.now())
    assert not log_store.run_folder(build.pk).exists()
