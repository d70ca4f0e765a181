"""The device nodes that a run may use: the harmless ones, and those of its own GPUs."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

DEV = "/dev"
BASIC = ("null", "zero", "full", "random", "urandom", "tty")
# InfiniBand and the copying of GPU memory to network cards: a run without a GPU may train over them, too.
NETWORK = ("infiniband", "gdrdrv", "knem", "xpmem")
# What all GPUs of a machine share.
GPU_CONTROL = (
    "nvidiactl",
    "nvidia-uvm",
    "nvidia-uvm-tools",
    "nvidia-modeset",
    "nvidia-caps",
    "nvidia-caps-imex-channels",
)
GPU_PREFIX = "nvidia"
DRIVER = "/proc/driver/nvidia/gpus"
UUID_LINE, MINOR_LINE = "GPU UUID:", "Device Minor:"
EVERYBODY = 0o006


def gpu_uuids(processes: Iterable[Mapping[str, Any]]) -> set[str]:
    """Returns the GPUs of the run on this node."""
    return {uuid for process in processes for uuid in process["gpus"]}


def device_nodes(uuids: set[str], *, dev: str = DEV, driver: str = DRIVER) -> tuple[list[str], bool]:
    """Returns the names below `dev` that a run with these GPUs may use, and whether those of foreign GPUs are
    left out.

    A part of a GPU (MIG) has no number that the driver's files tell, and neither has a GPU in a container
    that hides these files: such a run sees the nodes of all GPUs."""
    names = [name for name in (*BASIC, *NETWORK) if os.path.exists(f"{dev}/{name}")]
    if not uuids:
        return names, True
    minors = gpu_minors(driver)
    is_exact = uuids <= minors.keys()
    own = {f"{GPU_PREFIX}{minors[uuid]}" for uuid in uuids & minors.keys()} if is_exact else _gpu_nodes(dev)
    names += [name for name in (*GPU_CONTROL, *sorted(own)) if os.path.exists(f"{dev}/{name}")]
    return names, is_exact or not own


def gpu_minors(driver: str = DRIVER) -> dict[str, int]:
    """Returns UUID -> N of /dev/nvidiaN, as the driver's files tell it."""
    minors = {}
    try:
        folders = os.listdir(driver)
    except OSError:
        return {}
    for folder in folders:
        values = _information(f"{driver}/{folder}/information")
        if values.get(MINOR_LINE, "").isdecimal():
            minors[values.get(UUID_LINE, "")] = int(values[MINOR_LINE])
    return minors


def node_groups(names: Iterable[str], *, dev: str = DEV) -> list[int]:
    """Returns the groups without which an account cannot use these nodes; never root's group."""
    groups = set()
    for name in names:
        facts = os.stat(f"{dev}/{name}")
        is_open = facts.st_mode & EVERYBODY == EVERYBODY or os.path.isdir(f"{dev}/{name}")
        if not is_open:
            groups.add(facts.st_gid)
    return sorted(groups - {0})


def _gpu_nodes(dev: str) -> set[str]:
    return {name for name in os.listdir(dev) if name.removeprefix(GPU_PREFIX).isdecimal()}


def _information(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return {}
    labels = (UUID_LINE, MINOR_LINE)
    return {label: line[len(label) :].strip() for line in lines for label in labels if line.startswith(label)}
