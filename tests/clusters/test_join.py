"""An operator creates a join token and a machine joins: what each may do, and how often."""

from __future__ import annotations

import hashlib
import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import Settings

from clusters.enrolment.join import LIFETIME, NameInUse, TokenNotUsable, TokenUnknown, invite, join
from clusters.enrolment.node_tokens import EnrolmentError, enrol_node, node_for_token, revoke_node
from clusters.models import Cluster, Hearing, JoinToken, Node, NodeEvent
from tests.clusters.builders import ready_node
from tests.people import make_owner
from trainhub import certificates
from workspaces.models import AuditEvent

pytestmark = pytest.mark.django_db


def token_for(name: str = "", cluster: str = "gang") -> str:
    return invite(cluster, name, None)[1]


def silent(node: Node, seconds: float) -> None:
    now = timezone.now()
    Hearing.objects.update_or_create(
        pk=1, defaults={"since": now - timedelta(days=1), "until": now + timedelta(days=1)}
    )
    Node.objects.filter(pk=node.pk).update(last_report_at=now - timedelta(seconds=seconds))


class TestInvite:
    def test_the_token_is_not_stored(self) -> None:
        invitation, text = invite("gang", "alpha", None)
        assert text.startswith("thj_")
        assert text not in str(JoinToken.objects.filter(pk=invitation.pk).values().get())

    def test_leaves_an_audit_line_with_who_and_what(self) -> None:
        invite("gang", "alpha", make_owner())
        line = AuditEvent.objects.get()
        assert (line.actor, line.verb, line.subject, line.detail) == (
            "olivia",
            "node.invited",
            "alpha",
            {"cluster": "gang"},
        )

    def test_makes_no_cluster_before_somebody_joins(self) -> None:
        token_for(cluster="later")
        assert not Cluster.objects.filter(name="later").exists()

    def test_may_ask_for_a_machine_that_is_only_watched(self) -> None:
        joined = join(invite("gang", "alpha", None, monitor_only=True)[1], "", "box.lan")
        assert joined.node.monitor_only
        assert "takes no runs" in NodeEvent.objects.get(node=joined.node).message
        Node.objects.filter(pk=joined.node.pk).update(revoked_at=timezone.now())
        assert not join(invite("gang", "alpha", None)[1], "", "box.lan").node.monitor_only

    @pytest.mark.parametrize(
        ("cluster", "name", "field"), [("", "a", "cluster"), ("a b", "", "cluster"), ("gang", "a/", "name")]
    )
    def test_refuses_names_that_cannot_be_used(self, cluster: str, name: str, field: str) -> None:
        with pytest.raises(EnrolmentError) as caught:
            invite(cluster, name, None)
        assert caught.value.field == field

    def test_carries_the_fingerprint_of_the_hubs_own_authority(
        self, settings: Settings, tmp_path: Path
    ) -> None:
        certificates.ensure(tmp_path, ["localhost"])
        settings.HUB_CA = tmp_path / "ca.pem"
        secret, _, fingerprint = token_for().partition(".")
        der = ssl.PEM_cert_to_DER_cert(settings.HUB_CA.read_text())
        assert fingerprint == hashlib.sha256(der).hexdigest()
        assert join(f"{secret}.{fingerprint}", "alpha", "box").node.name == "alpha"


class TestJoin:
    def test_gives_the_machine_a_token_of_its_own(self) -> None:
        joined = join(token_for("alpha"), "", "box.lan", address="10.0.0.7")
        assert node_for_token(joined.token) == joined.node
        assert (joined.node.name, joined.node.cluster.name) == ("alpha", "gang")

    @pytest.mark.parametrize(
        ("name", "hostname", "called"),
        [("beta", "box.lan", "beta"), ("", "GPU_Box.lan", "gpu-box"), ("", "box", "box")],
    )
    def test_without_a_name_in_the_token_the_machine_names_itself(
        self, name: str, hostname: str, called: str
    ) -> None:
        assert join(token_for(), name, hostname).node.name == called

    def test_a_token_for_another_name_is_refused_and_stays_good(self) -> None:
        text = token_for("alpha")
        with pytest.raises(EnrolmentError, match="for alpha"):
            join(text, "beta", "box")
        assert join(text, "alpha", "box").node.name == "alpha"

    def test_a_machine_without_any_usable_name_is_asked_for_one(self) -> None:
        with pytest.raises(EnrolmentError) as caught:
            join(token_for(), "", "___")
        assert caught.value.field == "name"

    def test_is_told_in_the_nodes_journal_and_in_the_audit_trail(self) -> None:
        joined = join(invite("gang", "alpha", make_owner())[1], "", "box.lan", address="10.0.0.7")
        event = NodeEvent.objects.get(node=joined.node)
        assert event.message == "The machine box.lan at 10.0.0.7 joined cluster gang. Invited by olivia."
        line = AuditEvent.objects.get(verb="node.joined")
        assert (line.actor, line.subject, line.detail["invited_by"]) == ("node alpha", "alpha", "olivia")


class TestSpent:
    def test_a_token_works_once_and_says_who_used_it(self) -> None:
        text = token_for()
        join(text, "alpha", "box")
        with pytest.raises(TokenNotUsable, match="used already by alpha"):
            join(text, "beta", "box")
        assert not Node.objects.filter(name="beta").exists()

    def test_an_expired_token_opens_nothing(self) -> None:
        text = token_for("alpha")
        JoinToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        with pytest.raises(TokenNotUsable, match="expired after 24 hours"):
            join(text, "", "box")

    def test_it_lives_for_a_day(self) -> None:
        invitation, _ = invite("gang", "alpha", None)
        assert abs(invitation.expires_at - invitation.created_at - LIFETIME) < timedelta(seconds=5)

    @pytest.mark.parametrize("text", ["", "thj_nonsense", "x" * 500, "."])
    def test_nonsense_is_not_known(self, text: str) -> None:
        token_for("alpha")
        with pytest.raises(TokenUnknown):
            join(text, "alpha", "box")

    def test_a_nodes_own_token_is_no_join_token(self) -> None:
        _, own = enrol_node("local", "alpha")
        with pytest.raises(TokenUnknown):
            join(own, "beta", "box")


class TestTakenName:
    def test_a_node_that_reports_keeps_its_name(self) -> None:
        ready_node("alpha")
        text = token_for("alpha")
        for replace, remedy in ((False, "--name"), (True, "stop the agent there")):
            with pytest.raises(NameInUse, match=remedy):
                join(text, "", "box", replace=replace)
        assert JoinToken.objects.get().used_at is None

    def test_an_unreachable_one_gives_way_only_if_asked(self) -> None:
        silent(ready_node("alpha"), 30)
        text = token_for("alpha")
        with pytest.raises(NameInUse, match="--replace"):
            join(text, "", "box")
        assert join(text, "", "box", replace=True).node.name == "alpha"

    def test_a_lost_one_gives_way(self) -> None:
        before = ready_node("alpha")
        silent(before, 600)
        joined = join(token_for("alpha"), "", "box")
        assert joined.node == before
        assert "took the node's place in cluster gang" in NodeEvent.objects.get(kind="joined").message

    def test_a_revoked_one_gives_way(self) -> None:
        before, old = enrol_node("gang", "alpha")
        revoke_node(before)
        joined = join(token_for("alpha"), "", "box")
        assert (joined.node, node_for_token(old), node_for_token(joined.token)) == (before, None, before)

    def test_one_that_never_reported_gives_way_if_asked(self) -> None:
        enrol_node("gang", "alpha")
        text = token_for("alpha")
        with pytest.raises(NameInUse):
            join(text, "", "box")
        assert join(text, "", "box", replace=True).node.name == "alpha"
