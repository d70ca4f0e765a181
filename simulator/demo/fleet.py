"""The machines of the demo and the state of their GPUs. Some have faults, so that pages have alerts to
show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simulator.curves import Noise, Ramp, WhileHeld
from simulator.models import a100, h100, in_mig_mode, uuid_of, works_while_held
from simulator.scenario import Event, Process, Scenario, SimGpu

H100S, A100S = "simulated-h100", "simulated-a100"
DAY_S = 86400
XID_EVERY_S = 420
LOST_EVERY_S, LOST_AFTER_S = 600, 480
# nvmlClocksThrottleReasonHwThermalSlowdown in nvml.h.
HW_THERMAL_SLOWDOWN = 0x40
# Numbers from NVIDIA's table of XID errors.
DOUBLE_BIT_ECC, FELL_OFF_THE_BUS = 48, 79
GIB = 2**30
# The GPU that heat slows down, and with it every run that has it.
HOT_NODE, HOT_INDEX = "sim-h100-3", 5
HOT_GPU = uuid_of(f"{HOT_NODE} gpu {HOT_INDEX}")


@dataclass(frozen=True)
class Moment:
    """`began`: Unix time at which the demo started. `foreign_pid`: a process that belongs to no run, 0 =
    none."""

    began: float
    now: float
    foreign_pid: int = 0


@dataclass(frozen=True)
class Machine:
    """`gpus` returns the GPUs that the agent of this machine sees at a moment."""

    cluster: str
    name: str
    gpus: Callable[[str, Moment], list[SimGpu]]

    def scenario(self, at: Moment) -> Scenario:
        return Scenario(self.gpus(self.name, at), start=at.began)


def eight_h100(name: str, _at: Moment) -> list[SimGpu]:
    return [_at_work(h100(f"{name} gpu {index}"), index) for index in range(8)]


def hot(name: str, at: Moment) -> list[SimGpu]:
    """One GPU is poorly cooled: at work it is slowed by heat."""
    gpus = eight_h100(name, at)
    gpus[HOT_INDEX].values |= {
        "temperature_c": WhileHeld(Noise(1.5, 91), Noise(1, 44)),
        "memory_temperature_c": WhileHeld(Noise(1.5, 99), 52),
        "throttle_reasons": WhileHeld(HW_THERMAL_SLOWDOWN, 1),
        "sm_clock_mhz": WhileHeld(Noise(60, 1020), 1980),
    }
    return gpus


def failing(name: str, at: Moment) -> list[SimGpu]:
    """One GPU's memory wears out, and another falls off the bus now and then."""
    gpus = eight_h100(name, at)
    gpus[2].values |= {
        "ecc_corrected": Ramp(180, 2e5, DAY_S),
        "ecc_uncorrected": 4,
        "remapped_rows_uncorrected": 3,
        "remapped_rows_pending": 1,
    }
    gpus[2].events = [Event(at.began + after, DOUBLE_BIT_ECC) for after in range(90, DAY_S, XID_EVERY_S)]
    gpus[6].events = [
        Event(at.began + after, FELL_OFF_THE_BUS) for after in range(LOST_AFTER_S, DAY_S, LOST_EVERY_S)
    ]
    gpus[6].removed = (at.now - at.began) % LOST_EVERY_S >= LOST_AFTER_S
    return gpus


def taken_by_a_stranger(name: str, at: Moment) -> list[SimGpu]:
    """A process outside TrainHub holds memory of a GPU and does no work."""
    gpus = _four_a100(name)
    if at.foreign_pid:
        gpus[3].processes = [Process(at.foreign_pid, 31 * GIB, sm_pct=0, memory_pct=0)]
        gpus[3].values |= {"utilization_pct": 0, "power_w": Noise(2, 58), "memory_used_bytes": 31 * GIB}
    return gpus


def in_parts(name: str, _at: Moment) -> list[SimGpu]:
    """One GPU is split into three by MIG."""
    gpus = _four_a100(name)
    gpus[0] = in_mig_mode(a100(f"{name} gpu 0", values={"power_w": Noise(8, 96)}), 3, processes="visible")
    for part in gpus[0].mig:
        part.name = "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
        part.values |= {
            "memory_total_bytes": 4864 * 2**20,
            "memory_used_bytes": WhileHeld(3 * GIB, 12 * 2**20),
        }
    return gpus


FLEET = (
    Machine(H100S, "sim-h100-1", eight_h100),
    Machine(H100S, "sim-h100-2", eight_h100),
    Machine(H100S, HOT_NODE, hot),
    Machine(H100S, "sim-h100-4", failing),
    Machine(A100S, "sim-a100-1", taken_by_a_stranger),
    Machine(A100S, "sim-a100-2", in_parts),
)


def _four_a100(name: str) -> list[SimGpu]:
    return [_at_work(a100(f"{name} gpu {index}"), index) for index in range(4)]


def _at_work(gpu: SimGpu, index: int) -> SimGpu:
    """Makes the GPU work while it is held, each at a slightly different load."""
    gpu.processes = "visible"
    gpu.values |= {"power_w": Noise(2, 66 + index % 5), "temperature_c": Noise(0.8, 31 + index % 4)}
    return works_while_held(gpu, utilization_pct=95 - 3 * (index % 4), memory_share=0.62 + 0.05 * (index % 5))
