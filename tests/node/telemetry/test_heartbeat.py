"""What a node says of itself: its address and interface, as its kernel has them, and its start."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.node.builders import settings as value
from tests.node.hub import FakeHub
from trainhub_launch.machine import GpuFact, Heartbeat, NetworkPort
from trainhub_node import clock
from trainhub_node.machine import addresses
from trainhub_node.settings import NodeSettings
from trainhub_node.telemetry import heartbeat

NOWHERE = "http://no-such-host.invalid:8000"
OF_DOCUMENTS = "192.0.2.77"
"""Of no machine."""
GPU = GpuFact("GPU-a", 0, "NVIDIA H100")
PORT = NetworkPort("mlx5_0", 1, "ACTIVE")
BEAT = Heartbeat(
    agent_version="1",
    hostname="a",
    address="10.0.0.1",
    interface="eth0",
    cores=1,
    slots=1,
    memory_bytes=1,
    memory_used_bytes=1,
    cpu_pct=1.0,
    disk_free_bytes=1,
    gpus=(GPU,),
    network_ports=(PORT,),
)


@pytest.fixture
def settings(hub: FakeHub, tmp_path: Path) -> NodeSettings:
    return value(hub, tmp_path)


def test_a_number_that_cannot_be_read_for_once_stays_as_it_was(settings: NodeSettings) -> None:
    builder = heartbeat.HeartbeatBuilder(settings)

    def beat(**numbers: float) -> Heartbeat:
        return builder.build(heartbeat.Inventory(), numbers, (), driver="", cuda="", nvml="")

    beat(disk_free_bytes=5e9, memory_used_bytes=1e9, cpu_pct=7.0)
    after = beat(cpu_pct=8.0)
    assert (after.disk_free_bytes, after.memory_used_bytes, after.cpu_pct) == (5 * 10**9, 10**9, 8.0)
    assert "disk_free_bytes" not in after.numbers


def test_the_first_one_already_has_the_address_and_the_interpreters(settings: NodeSettings) -> None:
    """Without them the hub would refuse runs for the first minutes after every start of the agent."""
    inventory = heartbeat.InventoryThread(settings).inventory
    assert inventory.address
    assert inventory.interpreters[0].path == settings.python


class TestAddresses:
    def test_are_those_of_the_kernel(self) -> None:
        result = addresses.by_interface()

        assert set(result) == {name for _, name in socket.if_nameindex()}
        assert result["lo"][0] == "127.0.0.1"

    def test_lead_to_their_interface_however_they_are_written(self) -> None:
        assert addresses.interface_with("127.0.0.1") == "lo"
        assert addresses.interface_with(OF_DOCUMENTS) == ""
        for address in addresses.by_interface()["lo"]:
            spelled = "0:0:0:0:0:0:0:1" if address == "::1" else address
            assert addresses.interface_with(spelled) == "lo"

    def test_towards_a_hub_are_the_local_end_of_the_way(self) -> None:
        assert addresses.local_address_towards("http://127.0.0.1:8000") == "127.0.0.1"
        assert addresses.local_address_towards("https://localhost") in ("127.0.0.1", "::1")
        assert addresses.local_address_towards(NOWHERE) == ""


class TestPlace:
    def test_is_on_the_way_to_the_hub(self, settings: NodeSettings) -> None:
        assert heartbeat.network_address(settings) == ("127.0.0.1", "lo")

    def test_is_that_of_the_chosen_interface(self, settings: NodeSettings) -> None:
        assert heartbeat.network_address(
            replace(settings, hub_url="http://10.0.0.1:8000", interface="lo")
        ) == (
            "127.0.0.1",
            "lo",
        )

    def test_is_the_chosen_address_and_its_interface(self, settings: NodeSettings) -> None:
        assert heartbeat.network_address(replace(settings, address="127.0.0.1")) == ("127.0.0.1", "lo")
        assert heartbeat.network_address(replace(settings, address=OF_DOCUMENTS)) == (OF_DOCUMENTS, "")

    def test_stays_while_the_hubs_name_means_nothing(self, settings: NodeSettings) -> None:
        assert heartbeat.network_address(replace(settings, hub_url=NOWHERE), previous="127.0.0.1") == (
            "127.0.0.1",
            "lo",
        )

    def test_of_another_machine_is_doubted_and_told(self, settings: NodeSettings) -> None:
        (doubt,) = heartbeat.address_warnings(replace(settings, address=OF_DOCUMENTS))

        assert doubt.startswith(f"{OF_DOCUMENTS} is none of this machine's addresses (127.0.0.1")
        assert heartbeat.address_warnings(settings) == []

    def test_of_another_interface_is_doubted(self, settings: NodeSettings) -> None:
        other = next((name for _, name in socket.if_nameindex() if name != "lo"), "eth0")

        (doubt,) = heartbeat.address_warnings(replace(settings, address="127.0.0.1", interface=other))

        assert doubt == f"127.0.0.1 belongs to the interface lo, not to {other}"


class TestNews:
    @pytest.mark.parametrize(
        "changes",
        [
            {"driver": "570.1"},
            {"cuda": "12.8"},
            {"nvml": "The driver does not answer."},
            {"address": "10.0.0.2"},
            {"network_ports": (replace(PORT, state="DOWN"),)},
            {"gpus": ()},
            {"gpus": (replace(GPU, state="lost"),)},
            {"gpus": (replace(GPU, mig=True),)},
        ],
        ids=str,
    )
    def test_are_what_the_node_is(self, changes: dict[str, Any]) -> None:
        assert heartbeat.has_changed(BEAT, replace(BEAT, **changes))

    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"cpu_pct": 99.0},
            {"numbers": {"load_1": 3.0}},
            {"gpus": (replace(GPU, numbers={"power_w": 9.0}),)},
        ],
        ids=str,
    )
    def test_are_not_how_it_does(self, changes: dict[str, Any]) -> None:
        assert not heartbeat.has_changed(BEAT, replace(BEAT, **changes))

    def test_are_the_first_word(self) -> None:
        assert heartbeat.has_changed(None, BEAT)


@pytest.mark.parametrize(
    ("hub_time", "asked_at", "answered_at", "message"),
    [
        (100.0, 100.0, 100.1, ""),
        (103.0, 100.0, 100.2, "3 s behind"),
        (90.0, 100.0, 100.2, "10 s ahead of"),
        (104.0, 100.0, 110.0, ""),
    ],
    ids=["the same", "behind", "ahead", "perhaps only a slow way"],
)
def test_a_clock_is_doubted_by_what_the_way_does_not_explain(
    hub_time: float, asked_at: float, answered_at: float, message: str
) -> None:
    doubt = clock.warning(clock.offset_s(hub_time, asked_at, answered_at))

    assert (message in doubt) if message else not doubt
