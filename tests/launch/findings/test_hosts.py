"""What is said about nodes that will not find, or not understand, each other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.launch.builders import make_node, make_spec, mpi, pytorch
from tests.launch.findings.findings_of import found, script
from trainhub_launch.findings import Finding
from trainhub_launch.scheduler.placement import FreeNode

GLOO = pytorch(2, 2, backend="gloo")


def pair(**of_the_second: Any) -> tuple[FreeNode, FreeNode]:
    return make_node("a", address="10.0.0.1"), make_node("b", **{"address": "10.0.0.2", **of_the_second})


def only(distribution: Any, nodes: tuple[FreeNode, ...]) -> Finding:
    (finding,) = found(script("", distribution), nodes=nodes)
    return finding


class TestNetwork:
    def test_two_good_nodes_give_nothing_to_say(self) -> None:
        assert found(script("", GLOO), nodes=pair()) == []

    @pytest.mark.parametrize("address", ["127.0.0.1", "::1", "127.0.1.1", "localhost"])
    def test_a_node_at_its_own_loopback_is_an_error_that_names_the_setting(self, address: str) -> None:
        answer = only(GLOO, pair(address=address))
        assert (answer.level, answer.field) == ("error", "resources.cluster")
        assert answer.message.startswith(
            f"b reports {address}, which no other node can reach: set TRAINHUB_NODE_ADDRESS"
        )

    def test_two_agents_of_one_machine_do_reach_each_other_there(self) -> None:
        nodes = tuple(make_node(name, address="127.0.0.1", hostname="box") for name in "ab")
        assert {finding.level for finding in found(script("", GLOO), nodes=nodes)} == {"warning"}

    def test_one_node_needs_no_network(self) -> None:
        assert found(make_spec(), nodes=(make_node(address="127.0.0.1", interface=""),)) == []

    def test_another_node_is_taken_where_there_is_one(self) -> None:
        nodes = (make_node("0", address="127.0.0.1"), *pair())
        assert found(script("", GLOO), nodes=nodes) == []

    def test_an_unknown_interface(self) -> None:
        answer = only(GLOO, pair(interface=""))
        assert (answer.level, "TRAINHUB_NODE_INTERFACE" in answer.message) == ("warning", True)

    def test_the_same_address_twice(self) -> None:
        answer = only(GLOO, pair(address="10.0.0.1"))
        assert (answer.level, "a and b report the same address 10.0.0.1" in answer.message) == (
            "warning",
            True,
        )

    def test_the_same_host_name_twice_where_names_are_counted(self) -> None:
        answer = only(mpi(1, 2), pair(hostname="a"))
        assert (answer.level, "a and b are both called a" in answer.message) == ("warning", True)
        assert "both called" in only(GLOO, pair(hostname="a")).message


class TestMpi:
    def test_a_node_without_it_is_named(self) -> None:
        answer = only(mpi(1, 2), pair(mpi=False))
        assert (answer.level, answer.field) == ("warning", "distribution")
        assert answer.message.startswith(
            "b reports no Open MPI: install it there (Debian: openmpi-bin), or choose an env"
        )

    def test_one_that_has_it_is_preferred(self) -> None:
        assert found(script("", mpi(1, 2)), nodes=(*pair(), make_node("0", mpi=False))) == []

    def test_two_major_versions_are_told_with_their_nodes(self) -> None:
        old, new = "mpirun (Open MPI) 4.1.6", "mpirun (Open MPI) 5.0.3"
        nodes = (make_node("a", mpi_version=old), make_node("b", address="10.0.0.2", mpi_version=new))
        assert f"a has {old}, b has {new}" in only(mpi(1, 2), nodes).message
        assert (
            found(
                script("", mpi(1, 2)), nodes=(nodes[1], make_node("c", mpi_version="mpirun (Open MPI) 5.1"))
            )
            == []
        )
