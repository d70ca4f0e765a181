"""InfiniBand ports as a kernel shows them, in a folder of the tests' own."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainhub_launch.machine import NetworkPort
from trainhub_node.machine import infiniband
from trainhub_node.machine.infiniband import InfinibandPorts


class Adapter:
    def __init__(self, folder: Path, device: str, port: int = 1) -> None:
        self.path = folder / device / "ports" / str(port)
        (self.path / "counters").mkdir(parents=True)
        self.tell(state="4: ACTIVE", rate="400 Gb/sec (4X NDR)", link_layer="InfiniBand")
        self.count(0, 0)

    def tell(self, **files: str) -> None:
        for name, text in files.items():
            (self.path / name).write_text(f"{text}\n")

    def count(self, sent: int, received: int) -> None:
        self.tell(**{"counters/port_xmit_data": str(sent), "counters/port_rcv_data": str(received)})


@pytest.fixture
def adapter(tmp_path: Path) -> Adapter:
    return Adapter(tmp_path, "mlx5_0")


class TestPorts:
    def test_are_told_as_the_kernel_names_them(self, tmp_path: Path, adapter: Adapter) -> None:
        Adapter(tmp_path, "mlx5_1", 2).tell(state="1: DOWN", rate="10 Gb/sec (4X SDR)", link_layer="Ethernet")

        assert InfinibandPorts(str(tmp_path)).read() == (
            NetworkPort("mlx5_0", 1, "ACTIVE", "400 Gb/sec (4X NDR)", "InfiniBand"),
            NetworkPort("mlx5_1", 2, "DOWN", "10 Gb/sec (4X SDR)", "Ethernet"),
        )

    def test_are_active_where_one_is(self, tmp_path: Path, adapter: Adapter) -> None:
        ports = InfinibandPorts(str(tmp_path))
        assert infiniband.has_active_port(ports.read())

        adapter.tell(state="2: INIT")

        assert not infiniband.has_active_port(ports.read())

    def test_are_none_where_there_is_no_adapter(self, tmp_path: Path) -> None:
        ports = InfinibandPorts(str(tmp_path / "nowhere"))

        assert ports.read() == ()
        assert [ports.rates(now) for now in (0, 5)] == [{}, {}]

    def test_are_told_as_far_as_the_kernel_shows_them(self, tmp_path: Path) -> None:
        (tmp_path / "odd0" / "ports" / "1").mkdir(parents=True)

        assert InfinibandPorts(str(tmp_path)).read() == (NetworkPort("odd0", 1, ""),)


class TestRates:
    def test_are_in_bytes_though_the_counters_are_in_words_of_four(
        self, tmp_path: Path, adapter: Adapter
    ) -> None:
        ports = InfinibandPorts(str(tmp_path))
        ports.rates(10)
        adapter.count(1000, 250)

        assert ports.rates(15) == {"infiniband_tx_bytes_s": 800, "infiniband_rx_bytes_s": 200}

    def test_are_those_of_all_ports_together(self, tmp_path: Path, adapter: Adapter) -> None:
        other = Adapter(tmp_path, "mlx5_1")
        ports = InfinibandPorts(str(tmp_path))
        ports.rates(0)
        adapter.count(10, 1)
        other.count(20, 2)

        assert ports.rates(1) == {"infiniband_tx_bytes_s": 120, "infiniband_rx_bytes_s": 12}

    def test_are_absent_when_a_counter_begins_anew(self, tmp_path: Path, adapter: Adapter) -> None:
        adapter.count(1000, 1000)
        ports = InfinibandPorts(str(tmp_path))
        ports.rates(0)
        adapter.count(5, 2000)

        assert ports.rates(1) == {"infiniband_rx_bytes_s": 4000}

    def test_are_absent_where_an_old_counter_has_reached_its_end(
        self, tmp_path: Path, adapter: Adapter
    ) -> None:
        ports = InfinibandPorts(str(tmp_path))
        for now in range(3):
            adapter.count(2**32 - 1, 100 * now)
            values = ports.rates(now)

        assert values == {"infiniband_rx_bytes_s": 400}
