"""The packet filter refuses runs the ports of others and a cloud's metadata; in a network of the test's
own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.attacks.isolation.cloud_machine import cloud_machine
from trainhub_node.isolation import network_rules
from trainhub_node.isolation.network_rules import NetworkRules, NetworkTable, RulesError

ACCOUNTS = range(1_900_000_000, 1_900_000_010)
ONE, OTHER = ACCOUNTS[1], ACCOUNTS[2]
CONNECT = """
import os, socket, sys
uid, address, port = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
os.setresuid(uid, uid, uid)
socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET).connect((address, port))
"""
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can use the packet filter"),
    pytest.mark.skipif(
        shutil.which(network_rules.NFT, path=network_rules.PATH) is None, reason="needs the package nftables"
    ),
]


@pytest.fixture
def port() -> Iterator[int]:
    """A port at which a server listens at all addresses of this machine."""
    with (
        cloud_machine(),
        socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server,
    ):
        yield server.getsockname()[1]


@pytest.fixture
def table(port: int) -> NetworkTable:
    return network_rules.find_table("the test", ACCOUNTS, refuses_metadata=True)


@pytest.fixture
def rules(table: NetworkTable) -> NetworkRules:
    return NetworkRules(table)


def reaches(account: int, address: str, port: int) -> bool:
    argv = [sys.executable, "-c", CONNECT, str(account), address, str(port)]
    return subprocess.run(argv, stderr=subprocess.DEVNULL, check=False).returncode == 0


def tables() -> str:
    return subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=True).stdout


class TestPorts:
    def test_only_the_owner_and_accounts_of_no_run_reach_a_port(self, rules: NetworkRules, port: int) -> None:
        rules.set_ports({ONE: {port}})
        for address in ("127.0.0.1", "::1"):
            assert [reaches(who, address, port) for who in (ONE, OTHER, 0, 65534)] == [
                True,
                False,
                True,
                True,
            ]
        rules.set_ports({})
        assert reaches(OTHER, "127.0.0.1", port)

    def test_a_closed_port_is_refused_to_every_run(self, rules: NetworkRules, port: int) -> None:
        rules.close_ports({port})
        assert [reaches(who, "127.0.0.1", port) for who in (ONE, 0)] == [False, True]


class TestMetadata:
    def test_is_refused_except_for_names(self, rules: NetworkRules) -> None:
        rules.refresh()
        with socket.create_server(("169.254.169.254", network_rules.NAME_SERVICE)):
            assert reaches(ONE, "169.254.169.254", network_rules.NAME_SERVICE)
        for address in ("169.254.169.254", "fd00:ec2::254"):
            assert [reaches(who, address, 80) for who in (ONE, 0)] == [False, True]

    def test_an_operator_may_allow_it(self, port: int) -> None:
        NetworkRules(network_rules.find_table("the test", ACCOUNTS, refuses_metadata=False)).refresh()
        assert reaches(ONE, "169.254.169.254", 80)


class TestTable:
    def test_the_trial_leaves_nothing(self, table: NetworkTable) -> None:
        assert tables() == ""

    def test_the_next_agent_takes_it_over_and_removing_leaves_those_of_others(
        self, table: NetworkTable, rules: NetworkRules, port: int
    ) -> None:
        subprocess.run(["nft", "add", "table", "inet", "other"], check=True)
        rules.set_ports({ONE: {port}})
        successor = NetworkRules(table)
        successor.set_ports({OTHER: {port}})
        assert [reaches(who, "127.0.0.1", port) for who in (ONE, OTHER)] == [False, True]
        successor.remove()
        successor.refresh()
        assert tables() == "table inet other\n"

    def test_it_comes_back_when_a_firewall_has_removed_all_tables(
        self, rules: NetworkRules, port: int
    ) -> None:
        rules.set_ports({ONE: {port}})
        subprocess.run(["nft", "flush", "ruleset"], check=True)
        assert reaches(OTHER, "127.0.0.1", port)
        rules.refresh()
        assert not reaches(OTHER, "127.0.0.1", port)


def test_without_the_program_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(network_rules, "PATH", str(tmp_path))
    with pytest.raises(RulesError, match="install the package nftables and restart the agent"):
        network_rules.find_table("the test", ACCOUNTS, refuses_metadata=True)
