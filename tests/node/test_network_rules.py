"""The packet filter refuses runs the ports of others and a cloud's metadata; in a network of the test's
own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.attacks.isolation.cloud_machine import cloud_machine
from trainhub_node.isolation import network_rules
from trainhub_node.isolation.network_rules import NetworkRules, NetworkTable, RulesError

ACCOUNTS = range(1_900_000_000, 1_900_000_010)
ONE, OTHER = ACCOUNTS[1], ACCOUNTS[2]
# This machine's address in podman's network.
HOST = "10.88.77.1"
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


@contextmanager
def container() -> Iterator[Callable[[str, int], bool]]:
    """Says what a container of podman's default network reaches."""
    sleeping = subprocess.Popen(["unshare", "--net", "sleep", "60"])
    inside = ["nsenter", f"--net=/proc/{sleeping.pid}/ns/net"]
    network = Path(f"/proc/{sleeping.pid}/ns/net")
    while network.samefile("/proc/self/ns/net"):
        time.sleep(0.01)
    peer = ["peer", "name", "eth0", "netns", str(sleeping.pid)]
    for command in (
        ["ip", "link", "add", network_rules.BRIDGES[0], "type", "veth", *peer],
        ["ip", "address", "add", f"{HOST}/24", "dev", network_rules.BRIDGES[0]],
        ["ip", "link", "set", network_rules.BRIDGES[0], "up"],
        [*inside, "ip", "address", "add", "10.88.77.2/24", "dev", "eth0"],
        [*inside, "ip", "link", "set", "eth0", "up"],
        [*inside, "ip", "route", "add", "default", "via", HOST],
    ):
        subprocess.run(command, check=True)

    def reached(address: str, port: int) -> bool:
        argv = [*inside, sys.executable, "-c", CONNECT, "0", address, str(port)]
        return subprocess.run(argv, stderr=subprocess.DEVNULL, check=False).returncode == 0

    try:
        yield reached
    finally:
        sleeping.kill()
        sleeping.wait()


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


def test_builds_of_images_reach_neither_metadata_nor_ports_of_runs(rules: NetworkRules, port: int) -> None:
    with container() as reaches_from_inside:
        assert all(reaches_from_inside(address, port) for address in (HOST, "169.254.169.254"))
        rules.set_ports({ONE: {port}})
        assert not any(reaches_from_inside(address, port) for address in (HOST, "169.254.169.254"))
        with socket.create_server((HOST, 0)) as other:
            assert reaches_from_inside(HOST, other.getsockname()[1])


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
