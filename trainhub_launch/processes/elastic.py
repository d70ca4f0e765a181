"""torchrun's own restarts: what has to be set for them to work, measured with torch 2.13."""

from __future__ import annotations

from trainhub_launch.plan import EnvValue
from trainhub_launch.processes.launchers import Launcher, launcher
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.spec import RunSpec

OVERRIDABLE = frozenset({"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "PET_RDZV_CONF", "PET_LOCAL_ADDR"})
"""What `variables` may set; the user's own value wins."""
TORCHRUN = frozenset({"torchrun", "torch.distributed.run", "torch.distributed.launch"})


def restarts(spec: RunSpec) -> int:
    """How often the user's torchrun may start its processes again."""
    found = _torchrun(spec)
    times = found.option("--max-restarts") if found else None
    return int(times) if times is not None and times.isdecimal() else 0


def is_dynamic(found: Launcher) -> bool:
    """Whether the launchers agree anew, which they must for every restart; the static way cannot."""
    return found.option("--rdzv-backend") == "c10d" or "--standalone" in found.options


def variables(spec: RunSpec, placement: Placement, node_rank: int) -> dict[str, EnvValue]:
    """For the launcher on one node; its own options win over them."""
    env: dict[str, EnvValue] = {}
    found = _torchrun(spec)
    if found is None:
        return env
    if restarts(spec):
        # Without it the second attempt reads the addresses that the first one left in the shared store.
        env["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    if found.option("--rdzv-backend") == "c10d" and len(placement.nodes) > 1:
        # Else the head hosts the store only if its own name resolves to the endpoint, and all wait in vain.
        env["PET_RDZV_CONF"] = f"is_host={int(node_rank == 0)}"
        env["PET_LOCAL_ADDR"] = placement.nodes[node_rank].address
    return env


def _torchrun(spec: RunSpec) -> Launcher | None:
    found = launcher(spec.command)
    return found if found and found.program in TORCHRUN else None
