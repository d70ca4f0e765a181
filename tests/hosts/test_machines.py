"""The bench itself: what the other tests of this folder rely on."""

from __future__ import annotations

import pytest

from tests.hosts.bench import Hosts

pytestmark = [pytest.mark.hosts, pytest.mark.slow]


class TestMachine:
    def test_has_its_own_name_network_processes_and_tmp(self, hosts: Hosts) -> None:
        first, second = hosts.hosts
        assert [host.run("hostname").stdout.strip() for host in hosts.hosts] == ["gpu-a", "gpu-b"]
        assert first.address in first.run("ip", "-br", "addr", "show", "eth0").stdout
        assert second.run("sh", "-c", "echo $$").stdout.strip() != "1"
        first.run("touch", "/tmp/mine")
        assert second.run("test", "-e", "/tmp/mine", check=False).returncode == 1
        call = f"import socket; socket.create_connection(('{second.address}', 9), 1)"
        assert "refused" in first.run("python3", "-c", call, check=False).stderr

    def test_is_cut_off_and_comes_back(self, hosts: Hosts) -> None:
        host = hosts.hosts[1]
        host.cut()
        try:
            hosts.until(host, "unreachable")
        finally:
            host.heal()
        hosts.until(host, "ready")
