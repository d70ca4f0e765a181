"""What people can order: of which environments, on which nodes, and how much."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from clusters.models import Hearing, Node
from clusters.node_reports import heartbeat
from environments.curated import CURATED
from environments.states import EnvironmentKind
from jobs.builds import build_lifecycle
from jobs.builds.build_requests import (
    MAX_UNFINISHED_BUILDS,
    cancel_build,
    request_builds,
)
from jobs.builds.build_targets import BuildTarget, find_build_target
from jobs.models import EnvironmentBuild
from jobs.node_api.claims import Refused
from tests.environments.locks import failed, locked
from tests.jobs.builders import Played, beat, node
from tests.jobs.builds.ordered import completed, ordered, target_of
from tests.people import make_person, make_viewer, make_workspace, principal_of
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import SECRETS
from workspaces.access import Principal
from workspaces.models import AuditEvent
from workspaces.states import Role

pytestmark = pytest.mark.usefixtures("valkey")


class TestNodesWithoutAnEngine:
    def test_are_refused_with_what_to_install(self, who: Principal, alpha: Played) -> None:
        version = locked(who)
        target = replace(target_of(who, version), own=version)
        version.kind = EnvironmentKind.IMAGE
        with pytest.raises(SpecError, match="alpha has no containers: install podman"):
            request_builds(who, target)
        with pytest.raises(SpecError, match="alpha has no containers: install podman"):
            request_builds(who, target, ["alpha"])
        assert not EnvironmentBuild.objects.exists()


class TestOrders:
    def test_of_two_people_make_one_build(self, who: Principal, alpha: Played) -> None:
        target = target_of(who)
        (first,) = ordered(who, target=target)
        other = principal_of(make_person("olga", Role.CONTRIBUTOR))
        (second,) = ordered(other, target=target)
        assert first.pk == second.pk
        events = AuditEvent.objects.filter(verb="environment.build")
        assert [(event.actor, event.subject, event.detail) for event in events] == [
            ("carl", "mine 1", {"nodes": ["alpha"]})
        ]

    def test_are_built_one_after_the_other(self, who: Principal, alpha: Played) -> None:
        (first,), (second,) = ordered(who), ordered(who, target=target_of(who, locked(who, "other")))
        assert alpha.report().start == ((first.pk, 1),)
        alpha.claim(first)
        build_lifecycle.offer_next(alpha.node.pk)
        assert alpha.report().start == ()
        with pytest.raises(Refused):
            alpha.claim(second)
        completed(alpha, first)
        build_lifecycle.offer_next(alpha.node.pk)
        assert alpha.report().start == ((second.pk, 1),)

    def test_of_curated_environments_are_kept_apart_by_workspace(self, who: Principal, alpha: Played) -> None:
        name, version = CURATED[0].name, CURATED[0].version
        other = principal_of(make_person("mallory", Role.CONTRIBUTOR, make_workspace("other")))
        ids = set()
        for principal in (who, other):
            target = find_build_target(principal.workspace, name, version)
            assert target is not None
            ids |= {build.pk for build in request_builds(principal, target)}
        assert len(ids) == 2

    def test_are_for_all_nodes_that_can(self, who: Principal, alpha: Played) -> None:
        node("beta")
        Node.objects.filter(name="beta").update(capabilities="secrets")
        node("gamma")
        assert [build.node.name for build in ordered(who)] == ["alpha", "gamma"]

    def test_are_limited_per_node(self, who: Principal, alpha: Played) -> None:
        target = target_of(who)
        EnvironmentBuild.objects.bulk_create(
            EnvironmentBuild(workspace=who.workspace, node=alpha.node, name=f"e{number}", version="1")
            for number in range(MAX_UNFINISHED_BUILDS)
        )
        with pytest.raises(SpecError, match=f"{MAX_UNFINISHED_BUILDS} builds wait on alpha already"):
            request_builds(who, target)

    @pytest.mark.parametrize(
        ("names", "words"),
        [
            (["delta"], "there is no node 'delta'; there are: alpha, beta, old"),
            (["old"], "old has version 1 of the agent, which takes no orders to build; upgrade its agent"),
            (["beta"], "beta: mine 1 needs Python 3.11, which is not on the chosen node"),
            ([], "name at least one node"),
        ],
    )
    def test_name_the_node_that_cannot(
        self, who: Principal, alpha: Played, names: list[str], words: str
    ) -> None:
        node("beta")
        Node.objects.filter(name="beta").update(interpreters=[])
        old = node("old")
        heartbeat.apply(old, replace(beat(name="old"), capabilities=(SECRETS,)), timezone.now())
        with pytest.raises(SpecError) as error:
            request_builds(who, target_of(who), names)
        assert error.value.field == "nodes"
        assert words in error.value.message

    def test_to_a_silent_node_are_refused(self, who: Principal, alpha: Played) -> None:
        now = timezone.now()
        # Silence counts only while the hub listened, without a row since this process began.
        Hearing.objects.create(pk=1, since=now - timedelta(days=1), until=now)
        Node.objects.update(last_report_at=now - timedelta(hours=1))
        with pytest.raises(SpecError, match="no node can build mine 1: alpha does not report; start its"):
            request_builds(who, target_of(who))

    def test_of_what_is_not_locked_are_refused(self, who: Principal) -> None:
        failed(who)
        with pytest.raises(SpecError, match="is failed; only a locked version can be built"):
            find_build_target(who.workspace, "mine", "1")
        assert find_build_target(who.workspace, "mine", "2") is None
        assert find_build_target(who.workspace, "system", "") is None

    def test_of_viewers_are_refused(self, who: Principal, alpha: Played) -> None:
        target: BuildTarget = target_of(who)
        (build,) = ordered(who, target=target)
        viewer = principal_of(make_viewer())
        with pytest.raises(Exception, match="contributor"):
            request_builds(viewer, target)
        with pytest.raises(Exception, match="contributor"):
            cancel_build(viewer, build.pk)
