from __future__ import annotations

import pytest

from clusters.enrolment.node_tokens import EnrolmentError, enrol_node, node_for_token, revoke_node
from clusters.leases import acquire, release
from clusters.models import Node
from tests.clusters.builders import cluster, ready_node, slots_wanted, workspace

pytestmark = pytest.mark.django_db


class TestEnrol:
    def test_the_token_names_its_node(self) -> None:
        node, token = enrol_node("local", "alpha")
        assert node_for_token(token) == node
        assert node.cluster.name == "local"

    def test_the_token_is_not_stored(self) -> None:
        node, token = enrol_node("local", "alpha")
        assert token not in str(Node.objects.filter(pk=node.pk).values().get())

    def test_enrolling_again_ends_the_old_token_and_keeps_the_node(self) -> None:
        first, old = enrol_node("local", "alpha")
        second, new = enrol_node("local", "alpha")
        assert first == second
        assert node_for_token(old) is None
        assert node_for_token(new) == first

    def test_two_nodes_have_two_tokens(self) -> None:
        _, one = enrol_node("local", "alpha")
        beta, two = enrol_node("local", "beta")
        assert one != two
        assert node_for_token(two) == beta

    @pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "ü", "x" * 51, "a\n"])
    def test_a_name_that_cannot_be_part_of_an_address_is_refused(self, name: str) -> None:
        with pytest.raises(EnrolmentError) as caught:
            enrol_node("local", name)
        assert caught.value.field == "name"
        assert "letters" in str(caught.value)

    def test_an_idle_node_may_move_to_another_cluster(self) -> None:
        enrol_node("local", "alpha")
        assert enrol_node("lab", "alpha")[0].cluster.name == "lab"

    def test_a_busy_node_may_not_move(self) -> None:
        ready_node("alpha")
        acquire(cluster(), slots_wanted(1), holder="a" * 32, attempt=1, label="run 1", workspace=workspace())
        with pytest.raises(EnrolmentError, match="busy"):
            enrol_node("lab", "alpha")
        release("a" * 32, 1)
        assert enrol_node("lab", "alpha")[0].cluster.name == "lab"


class TestRevoke:
    def test_a_revoked_token_names_nobody(self) -> None:
        node, token = enrol_node("local", "alpha")
        revoke_node(node)
        assert node_for_token(token) is None

    def test_enrolling_anew_brings_the_node_back_with_a_new_token(self) -> None:
        node, old = enrol_node("local", "alpha")
        revoke_node(node)
        _, new = enrol_node("local", "alpha")
        assert node_for_token(old) is None
        assert node_for_token(new) == node

    @pytest.mark.parametrize("text", ["", "thn_nonsense", "x" * 10_000])
    def test_nonsense_names_nobody(self, text: str) -> None:
        enrol_node("local", "alpha")
        assert node_for_token(text) is None
