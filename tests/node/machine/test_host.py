"""What a machine says of its load, from a /proc and a /sys of the tests' own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from trainhub_launch.metrics import HOST_KEYS
from trainhub_node.machine import host
from trainhub_node.machine.host import HostMetrics
from trainhub_node.machine.rates import RateMeter

SECTOR = 512
GIB = 1024**3


class Machine:
    """A machine with one disk of two partitions below an encrypted volume, one network card below a bridge,
    and a container."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.sys = folder / "proc", folder / "sys"
        for device in (
            "block/nvme0n1/device",
            "block/dm-0",
            "block/loop0",
            "class/net/eth0/device",
            "class/net/br0",
        ):
            (self.sys / device).mkdir(parents=True)
        (self.proc / "net").mkdir(parents=True)
        self.busy, self.idle = 1000, 1000
        self.read_sectors, self.written_sectors = 1000, 2000
        self.sent, self.received = {"eth0": 10_000, "br0": 10_000, "veth1": 500, "lo": 99}, 70_000
        self.write()

    def write(self) -> None:
        (self.proc / "stat").write_text(
            f"cpu  {self.busy} 0 0 {self.idle} 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n"
        )
        (self.proc / "meminfo").write_text(
            "MemTotal: 16777216 kB\nMemFree: 1048576 kB\nMemAvailable: 12582912 kB\nBuffers: 0 "
            "kB\nCached: 0 kB\n"
            "Active: 0 kB\nInactive: 0 kB\nShmem: 0 kB\nSwapTotal: 2097152 kB\nSwapFree: 1048576 kB\n"
        )
        (self.proc / "vmstat").write_text("pswpin 0\npswpout 0\n")
        disks = "".join(
            f" 259 0 {name} 5 0 {self.read_sectors} 0 7 0 {self.written_sectors} 0 0 0 0 0 0 0 0\n"
            for name in ("nvme0n1", "nvme0n1p1", "dm-0", "loop0")
        )
        (self.proc / "diskstats").write_text(disks)
        rows = "".join(
            f"{name}: {self.received} 0 0 0 0 0 0 0 {sent} 0 0 0 0 0 0 0\n"
            for name, sent in self.sent.items()
        )
        (self.proc / "net" / "dev").write_text(f"Inter-|\n face |\n{rows}")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    value = Machine(tmp_path)
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(value.proc))
    return value


@pytest.fixture
def measure(machine: Machine, tmp_path: Path) -> Callable[..., dict[str, float]]:
    snapshot = HostMetrics(str(tmp_path), sys=str(machine.sys))

    def at(now: float, interface: str = "") -> dict[str, float]:
        machine.write()
        return snapshot.read(now, interface)

    return at


class TestHost:
    def test_tells_all_that_this_machine_knows(self, tmp_path: Path) -> None:
        values = HostMetrics(str(tmp_path)).read(0)

        assert values.keys() <= HOST_KEYS.keys()
        assert {"memory_used_bytes", "load_1", "disk_free_bytes", "swap_used_bytes"} <= values.keys()

    def test_tells_memory_and_swap_in_bytes(self, measure: Callable[..., dict[str, float]]) -> None:
        values = measure(0)

        assert (values["memory_used_bytes"], values["swap_used_bytes"]) == (4 * GIB, GIB)
        assert host.memory_total() == 16 * GIB

    def test_tells_rates_only_from_the_second_look_on(self, measure: Callable[..., dict[str, float]]) -> None:
        assert not {name for name in measure(0) if name.endswith("_bytes_s") or name == "cpu_pct"}

    def test_tells_the_share_of_all_cores(
        self, machine: Machine, measure: Callable[..., dict[str, float]]
    ) -> None:
        machine.busy, machine.idle = machine.busy + 30, machine.idle + 90

        assert measure(1)["cpu_pct"] == 25.0

    def test_counts_a_disk_once(self, machine: Machine, measure: Callable[..., dict[str, float]]) -> None:
        measure(10)
        machine.read_sectors, machine.written_sectors = (
            machine.read_sectors + 100,
            machine.written_sectors + 40,
        )

        values = measure(12)

        assert (values["disk_read_bytes_s"], values["disk_write_bytes_s"]) == (50 * SECTOR, 20 * SECTOR)

    def test_counts_what_leaves_and_enters_the_machine(
        self, machine: Machine, measure: Callable[..., dict[str, float]]
    ) -> None:
        measure(10)
        machine.sent = {name: sent + 3000 for name, sent in machine.sent.items()}
        machine.received += 1000

        values = measure(11)

        assert (values["network_tx_bytes_s"], values["network_rx_bytes_s"]) == (3000, 1000)

    def test_counts_a_virtual_function_with_the_card_that_it_is_a_part_of(
        self, machine: Machine, measure: Callable[..., dict[str, float]]
    ) -> None:
        (machine.sys / "class/net/enP1/device").mkdir(parents=True)
        (machine.sys / "class/net/enP1/master").symlink_to("../eth0")
        machine.sent["enP1"] = 0
        measure(10)
        machine.sent |= {"eth0": machine.sent["eth0"] + 500, "enP1": 450}

        assert measure(11)["network_tx_bytes_s"] == 500

    def test_takes_the_nodes_interface_where_none_is_physical(
        self, machine: Machine, measure: Callable[..., dict[str, float]]
    ) -> None:
        (machine.sys / "class/net/eth0/device").rmdir()
        measure(10, "veth1")
        machine.sent["veth1"] += 77

        assert measure(11, "veth1")["network_tx_bytes_s"] == 77

    def test_says_nothing_of_a_network_that_is_only_its_own(
        self, machine: Machine, measure: Callable[..., dict[str, float]]
    ) -> None:
        (machine.sys / "class/net/eth0/device").rmdir()
        measure(10, "lo")

        assert "network_tx_bytes_s" not in measure(11, "lo")

    def test_leaves_out_what_cannot_be_read_and_says_so_once(
        self, machine: Machine, measure: Callable[..., dict[str, float]], caplog: pytest.LogCaptureFixture
    ) -> None:
        machine.write = lambda: None  # type: ignore[method-assign]
        (machine.proc / "net" / "dev").unlink()

        values = [measure(now) for now in range(3)][-1]

        assert "network_rx_bytes_s" not in values
        assert "disk_read_bytes_s" in values
        assert caplog.text.count("The network of this machine cannot be read") == 1

    def test_lets_what_is_read_seldom_stand_in_between(
        self, measure: Callable[..., dict[str, float]]
    ) -> None:
        assert [measure(now)["swap_used_bytes"] for now in range(7)] == [GIB] * 7


class TestRates:
    def test_are_none_after_a_reset_and_true_again_thereafter(self) -> None:
        rates = RateMeter()

        values = [rates.rate(now, {"sda": count}) for now, count in enumerate([100, 150, 20, 50])]

        assert values == [None, 50, None, 30]

    def test_are_those_of_devices_that_were_there_before(self) -> None:
        rates = RateMeter()
        rates.rate(0, {"sda": 10, "sdb": 1000})

        assert rates.rate(2, {"sda": 30, "sdc": 10**9}) == 10

    def test_are_none_when_no_time_has_passed(self) -> None:
        rates = RateMeter()
        rates.rate(5, {"sda": 10})

        assert rates.rate(5, {"sda": 20}) is None
