"""Orders to upgrade agents: who gets them, in which waves, and how they end."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.test import override_settings
from django.utils import timezone

from clusters.agent_upgrades.agent_versions import agent_of
from clusters.agent_upgrades.program_orders import archive_of_node, order_of_node
from clusters.agent_upgrades.rollouts import (
    SILENT_FOR,
    UpgradeRefused,
    cancel_rollout,
    order_for_cluster,
    order_for_node,
    take_step,
    tend_rollouts,
)
from clusters.allocations import node_program
from clusters.models import AgentRollout, Node, NodeUpgrade
from clusters.node_reports.notices import agent_version
from tests.clusters.builders import cluster, ready_node
from tests.people import api_client, client_of, make_operator, make_owner
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import SELF_UPGRADE
from trainhub_node.upgrade.order_check import check_signature
from workspaces.authentication.confirmation import CONFIRMED_AT
from workspaces.models import AuditEvent, User

pytestmark = pytest.mark.django_db
OLD = "0.0.9"
JSON = "application/json"


@pytest.fixture(scope="module", autouse=True)
def _archive_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The archive is packed once for all tests here."""
    folder = tmp_path_factory.mktemp("program")
    data = {"DATA_DIR": folder, "NODE_WHEELS": folder / "wheels", "NODE_PROGRAMS": folder / "programs"}
    with override_settings(**data):
        yield


@pytest.fixture
def who(db: None) -> User:
    return make_operator()


def old_node(name: str, *, can: tuple[str, ...] = (SELF_UPGRADE,), **changed: Any) -> Node:
    # A busy machine may need longer for a test than a node may be silent.
    soon = timezone.now() + timedelta(minutes=2)
    return ready_node(name, capabilities=can, **{"agent_version": OLD, "at": soon, **changed})


def states(rollout: AgentRollout) -> dict[str, str]:
    return {part.node.name: part.state for part in rollout.parts.select_related("node")}


def say(rollout: AgentRollout, name: str, step: str, version: str = "", why: str = "") -> None:
    part = NodeUpgrade.objects.get(rollout=rollout, node__name=name)
    take_step(part.node, part.pk, step, version or agent_version(), why)


def test_waves_follow_each_other_until_all_are_done(who: User) -> None:
    for name in "abc":
        old_node(name)
    rollout = order_for_cluster(cluster(), who, at_once=2)
    assert states(rollout) == {"a": "ordered", "b": "ordered", "c": "waiting"}
    assert [Node.objects.get(name=name).upgrade_order is not None for name in "abc"] == [True, True, False]
    say(rollout, "a", "fetching", OLD)
    assert NodeUpgrade.objects.get(node__name="a").step == "fetching"
    say(rollout, "a", "done")
    # A node repeats what it said until it knows that the hub has heard it.
    say(rollout, "a", "done")
    assert states(rollout) == {"a": "done", "b": "ordered", "c": "ordered"}
    assert Node.objects.get(name="a").upgrade_order is None
    say(rollout, "b", "done")
    say(rollout, "c", "done")
    rollout.refresh_from_db()
    assert rollout.state == "done"
    with pytest.raises(UpgradeRefused, match="over"):
        say(rollout, "c", "failed", why="late")


def test_the_first_failure_leaves_the_rest_as_it_was(who: User) -> None:
    for name in "abc":
        old_node(name)
    rollout = order_for_cluster(cluster(), who, at_once=2)
    say(rollout, "a", "failed", OLD, "The disk is full.")
    assert states(rollout) == {"a": "failed", "b": "ordered", "c": "left out"}
    rollout.refresh_from_db()
    assert rollout.state == "failed"
    # The one that had begun ends what it does.
    say(rollout, "b", "done")
    assert states(rollout)["b"] == "done"
    kinds = list(Node.objects.get(name="a").events.filter(kind="upgrade").values_list("message", flat=True))
    assert kinds[-1].endswith("The disk is full.")


def test_a_node_that_says_done_but_runs_another_version_has_failed(who: User) -> None:
    old_node("a")
    rollout = order_for_cluster(cluster(), who)
    say(rollout, "a", "done", OLD)
    assert states(rollout) == {"a": "failed"}


def test_a_node_that_says_nothing_for_long_has_failed(who: User) -> None:
    old_node("a")
    rollout = order_for_cluster(cluster(), who)
    tend_rollouts(timezone.now())
    assert states(rollout) == {"a": "ordered"}
    tend_rollouts(timezone.now() + SILENT_FOR + timedelta(seconds=1))
    assert states(rollout) == {"a": "failed"}
    assert "Look at its agent's log" in NodeUpgrade.objects.get().why


def test_a_canceled_rollout_orders_nothing_more(who: User) -> None:
    for name in "ab":
        old_node(name)
    rollout = order_for_cluster(cluster(), who)
    cancel_rollout(rollout, who)
    assert states(rollout) == {"a": "ordered", "b": "left out"}
    say(rollout, "a", "done")
    assert states(rollout) == {"a": "done", "b": "left out"}
    with pytest.raises(UpgradeRefused):
        cancel_rollout(rollout, who)
    verbs = AuditEvent.objects.filter(verb__startswith="node.upgrade").order_by("pk")
    assert [event.verb for event in verbs] == ["node.upgrade_ordered", "node.upgrade_canceled"]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"can": ()}, "pip install --upgrade"),
        ({"can": ("upgrade-by:apt",)}, f"apt install ./trainhub-node_{agent_version()}_"),
        ({"can": ("upgrade-by:hub",)}, "when the hub starts again"),
        ({"can": ("upgrade-by:slurm",)}, "there is nothing to upgrade"),
        ({"can": ("upgrade-by:hand",)}, "TRAINHUB_NODE_UPGRADES=off"),
        ({"can": ("upgrade-by:magic",)}, "pip install --upgrade"),
        ({"agent_version": "99.0"}, "newer than this hub's"),
        ({"at": timezone.now() - timedelta(hours=1)}, "start its agent, or wait"),
    ],
)
def test_a_node_that_cannot_be_ordered_is_refused_with_what_to_do(
    who: User, changed: dict[str, Any], reason: str
) -> None:
    node = old_node("a", **changed)
    with pytest.raises(UpgradeRefused) as refusal:
        order_for_node(node, who)
    assert reason in str(refusal.value)
    with pytest.raises(UpgradeRefused) as refusal:
        order_for_cluster(cluster(), who)
    assert reason in str(refusal.value)
    assert not AgentRollout.objects.exists()


def test_a_newer_agent_is_taken_back_only_expressly_and_even_if_its_reports_are_refused(who: User) -> None:
    node = old_node("a", agent_version="99.0", at=timezone.now() - timedelta(hours=1))
    with pytest.raises(UpgradeRefused, match="newer"):
        order_for_node(node, who)
    order_for_node(node, who, may_go_back=True)
    order = order_of_node(node)
    assert order is not None
    assert order.may_go_back


def test_a_node_has_one_order_at_a_time_and_the_hubs_version_none(who: User) -> None:
    node = old_node("a")
    order_for_node(node, who)
    with pytest.raises(UpgradeRefused, match="has an order already"):
        order_for_node(node, who)
    current = old_node("b", agent_version=agent_version())
    with pytest.raises(UpgradeRefused, match="already"):
        order_for_node(current, who)
    with pytest.raises(SpecError) as refusal:
        order_for_cluster(cluster(), who, at_once=0)
    assert refusal.value.field == "at_once"


def test_an_order_is_signed_and_opens_only_its_own_archive(who: User) -> None:
    node, other = old_node("a"), old_node("b")
    rollout = order_for_node(node, who)
    order = order_of_node(node)
    assert order is not None
    check_signature(order, "")
    assert (order.node, order.version, order.sha256) == ("a", agent_version(), rollout.sha256)
    assert archive_of_node(node, rollout.sha256) is not None
    assert archive_of_node(node, "a" * 64) is None
    assert order_of_node(other) is None
    assert archive_of_node(other, rollout.sha256) is None
    with pytest.raises(UpgradeRefused):
        take_step(other, order.order, "done", agent_version(), "")


def test_versions_are_compared_as_numbers() -> None:
    node = Node(name="a", agent_version="0.10.0", cluster=cluster())
    assert not agent_of(node).is_behind
    assert agent_of(node).is_ahead


class TestApi:
    def test_orders_shows_and_cancels(self, who: User) -> None:
        for name in "ab":
            old_node(name)
        client = api_client(who)
        listed = client.get("/api/v1/nodes/a/").json()
        assert (listed["agent_version"], listed["agent_is_behind"], listed["agent_remedy"]) == (OLD, True, "")
        answer = client.post("/api/v1/clusters/local/agents/", {"at_once": 1}, content_type=JSON)
        assert answer.status_code == 202, answer.json()
        assert [node["state"] for node in answer.json()["rollout"]["nodes"]] == ["ordered", "waiting"]
        assert answer.json()["hub_version"] == agent_version()
        again = client.post("/api/v1/nodes/a/upgrade/", {}, content_type=JSON)
        assert again.status_code == 409
        assert "has an order already" in again.json()["detail"]
        assert client.delete("/api/v1/clusters/local/agents/").json()["rollout"]["state"] == "canceled"
        wrong = client.post("/api/v1/clusters/local/agents/", {"at_once": 0}, content_type=JSON)
        assert wrong.status_code == 400
        assert "at_once" in str(wrong.json()["errors"])

    def test_is_for_operators(self, who: User) -> None:
        old_node("a")
        who.is_operator = False
        who.save()
        client = api_client(make_owner())
        assert client.post("/api/v1/nodes/a/upgrade/", {}, content_type=JSON).status_code == 403
        assert client.get("/api/v1/clusters/local/agents/").status_code == 403


class TestPages:
    def browser(self, who: User) -> Any:
        client = client_of(who)
        session = client.session
        session[CONFIRMED_AT] = timezone.now().timestamp()
        session.save()
        return client

    def test_the_button_orders_and_the_node_shows_how_far_it_is(self, who: User) -> None:
        old_node("a")
        browser = self.browser(who)
        assert 'action="/nodes/a/upgrade/"' in browser.get("/nodes/a/").content.decode()
        assert browser.post("/nodes/a/upgrade/").status_code == 302
        say(AgentRollout.objects.get(), "a", "fetching", OLD)
        assert "is ordered: fetching" in " ".join(browser.get("/nodes/a/").content.decode().split())
        say(AgentRollout.objects.get(), "a", "failed", OLD, "The <disk> is full.")
        assert "The &lt;disk&gt; is full." in browser.get("/nodes/a/").content.decode()

    def test_the_page_of_a_clusters_agents(self, who: User) -> None:
        old_node("a")
        old_node("b", can=("upgrade-by:apt",))
        browser = self.browser(who)
        text = browser.get("/clusters/local/agents/").content.decode()
        assert "<code>apt install ./trainhub-node_" in text
        assert browser.post("/clusters/local/agents/", {"at_once": "1"}).status_code == 302
        assert states(AgentRollout.objects.get()) == {"a": "ordered"}
        assert browser.post("/clusters/local/agents/", {"at_once": "x"}).status_code == 400
        assert browser.post("/clusters/local/agents/cancel/").status_code == 302
        assert AgentRollout.objects.get().state == "canceled"


class TestCommands:
    def run(self, *arguments: str) -> str:
        out = io.StringIO()
        call_command(*arguments, stdout=out, stderr=out)
        return out.getvalue()

    @pytest.mark.usefixtures("who")
    def test_order_one_node_or_a_cluster(self) -> None:
        old_node("a")
        old_node("b")
        assert f"{OLD} (behind)" in self.run("node", "list")
        assert f"Ordered version {agent_version()} for a, 1 at a time." in self.run("node", "upgrade", "a")
        out = io.StringIO()
        with pytest.raises(SystemExit) as end:
            call_command("cluster", "upgrade", "local", stderr=out)
        assert end.value.code == 2
        assert "a has an order already" in out.getvalue()


def test_a_rollout_that_cannot_be_packed_orders_nothing(who: User, tmp_path: Any) -> None:
    old_node("a")
    blocked = tmp_path / "programs"
    blocked.touch()
    node_program._by_wheel.clear()
    with override_settings(NODE_PROGRAMS=blocked), pytest.raises(UpgradeRefused, match="cannot be written"):
        order_for_cluster(cluster(), who)
    assert not AgentRollout.objects.exists()
