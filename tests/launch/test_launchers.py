"""The user's own launcher, and its options, of which some take no value."""

from __future__ import annotations

import pytest

from trainhub_launch.processes.launchers import launcher


@pytest.mark.parametrize(
    "command",
    [
        "torchrun --logs-specs default --nproc-per-node 2 train.py",
        "torchrun --virtual-local-rank --nproc_per_node=2 train.py",
        "torchrun --standalone --nproc-per-node 2 train.py --lr 1",
        "accelerate launch --use_deepspeed --multi_gpu --nproc-per-node 2 train.py",
        "accelerate launch --use_fsdp --nproc-per-node 2 train.py",
    ],
)
def test_the_script_is_found_behind_them(command: str) -> None:
    found = launcher(tuple(command.split()))
    assert found is not None
    assert (found.script, found.option("--nproc-per-node")) == ("train.py", "2")


@pytest.mark.parametrize("command", ["accelerate", "accelerate test", "accelerate config default"])
def test_accelerate_without_launch_starts_no_processes(command: str) -> None:
    assert launcher(tuple(command.split())) is None
