from __future__ import annotations

from pathlib import Path

import pytest

from trainhub_node.isolation import devices

INFORMATION = "Model: \t\t NVIDIA H100\nGPU UUID:   \t {uuid}\nDevice Minor: \t {minor}\n"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine with two GPUs, as the driver's files tell it; plain files stand for the nodes."""
    names = ("null", "zero", "random", "nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "sda", "fuse")
    (tmp_path / "dev").mkdir()
    for name in names:
        (tmp_path / "dev" / name).touch()
        (tmp_path / "dev" / name).chmod(0o666)
    for minor, bus in enumerate(("0000:41:00.0", "0000:01:00.0")):
        (tmp_path / "driver" / bus).mkdir(parents=True)
        text = INFORMATION.format(uuid=f"GPU-{minor}", minor=minor)
        (tmp_path / "driver" / bus / "information").write_text(text)
    return tmp_path


def nodes(machine: Path, *uuids: str) -> tuple[list[str], bool]:
    return devices.device_nodes(set(uuids), dev=str(machine / "dev"), driver=str(machine / "driver"))


def test_a_run_without_a_gpu_sees_none(machine: Path) -> None:
    assert nodes(machine) == (["null", "zero", "random"], True)


def test_a_run_sees_its_own_gpu_and_what_all_gpus_share(machine: Path) -> None:
    names, is_exact = nodes(machine, "GPU-1")
    assert names == ["null", "zero", "random", "nvidiactl", "nvidia-uvm", "nvidia1"]
    assert is_exact


def test_a_run_on_a_part_of_a_gpu_sees_the_nodes_of_all(machine: Path) -> None:
    names, is_exact = nodes(machine, "MIG-7")
    assert names[-2:] == ["nvidia0", "nvidia1"]
    assert not is_exact


def test_nodes_that_only_a_group_may_use_bring_that_group(machine: Path) -> None:
    (machine / "dev" / "nvidia0").chmod(0o660)
    group = (machine / "dev" / "nvidia0").stat().st_gid
    expected = [group] if group else []
    assert devices.node_groups(["null", "nvidia0"], dev=str(machine / "dev")) == expected
