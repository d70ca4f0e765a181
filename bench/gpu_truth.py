"""Whether the agent tells the truth of real GPUs: its values beside nvidia-smi's of the same moment.

Needs an NVIDIA driver with nvidia-smi, and this repository's packages (nvidia-ml-py, psutil). Best while
something steady runs on the GPU. Exit status: 0 within 2 %, 1 above, 2 where there is nothing to compare.

    .venv/bin/python -m bench.gpu_truth --rounds 10
"""

from __future__ import annotations

import argparse
import csv
import math
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from trainhub_launch.machine import GpuFact
from trainhub_node.gpu.nvml.nvml_library import Gpus

MIB = 2**20
TOLERANCE = 0.02


@dataclass(frozen=True)
class Question:
    """`unit`: what one of nvidia-smi's is in ours. `step`: what it rounds to, in its own unit; so much is no
    difference."""

    ours: str
    theirs: str
    unit: float = 1
    step: float = 1


QUESTIONS = (
    Question("utilization_pct", "utilization.gpu"),
    Question("memory_bandwidth_pct", "utilization.memory"),
    Question("memory_bytes", "memory.total", MIB),
    Question("memory_used_bytes", "memory.used", MIB),
    Question("memory_reserved_bytes", "memory.reserved", MIB),
    Question("power_w", "power.draw", step=0.01),
    Question("power_limit_w", "enforced.power.limit", step=0.01),
    Question("temperature_c", "temperature.gpu"),
    Question("memory_temperature_c", "temperature.memory"),
    Question("sm_clock_mhz", "clocks.sm"),
    Question("memory_clock_mhz", "clocks.mem"),
    Question("fan_pct", "fan.speed"),
    Question("encoder_pct", "utilization.encoder"),
    Question("decoder_pct", "utilization.decoder"),
    Question("pcie_generation", "pcie.link.gen.current"),
    Question("pcie_generation_max", "pcie.link.gen.max"),
    Question("pcie_width", "pcie.link.width.current"),
    Question("pcie_width_max", "pcie.link.width.max"),
    Question("ecc_corrected", "ecc.errors.corrected.aggregate.total"),
    Question("ecc_uncorrected", "ecc.errors.uncorrected.aggregate.total"),
)


def smi() -> dict[str, dict[str, float]]:
    """UUID -> what nvidia-smi says, in our units and under our names; what it does not know is left out."""
    wanted = ",".join(("uuid", *(question.theirs for question in QUESTIONS)))
    argv = ["nvidia-smi", f"--query-gpu={wanted}", "--format=csv,noheader,nounits"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise SystemExit(f"nvidia-smi failed: {done.stdout.strip()} {done.stderr.strip()}")
    told = {}
    for uuid, *values in csv.reader(done.stdout.splitlines(), skipinitialspace=True):
        pairs = zip(QUESTIONS, values, strict=True)
        told[uuid] = {
            question.ours: float(value) * question.unit for question, value in pairs if _is_number(value)
        }
    return told


def ours(gpus: tuple[GpuFact, ...]) -> dict[str, dict[str, float]]:
    return {
        gpu.uuid: {**gpu.numbers, **gpu.counters, **known(memory_bytes=gpu.memory_bytes)}
        for gpu in gpus
        if not gpu.parent
    }


def known(**values: float | None) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}


def off(question: Question, before: float, theirs: float, after: float) -> float:
    """By what share nvidia-smi lies outside of what we read just before and just after it."""
    slack = question.step * question.unit
    low, high = min(before, after) - slack, max(before, after) + slack
    distance = max(low - theirs, theirs - high, 0)
    return distance / abs(theirs) if theirs else float(distance > 0)


@dataclass
class Pair:
    """One metric of one GPU. `differences`: of every round in which both sides knew it."""

    mine: float = math.nan
    theirs: float = math.nan
    differences: list[float] = field(default_factory=list)

    @property
    def difference(self) -> float:
        return statistics.median(self.differences) if self.differences else math.nan


def compare(rounds: int) -> dict[tuple[str, str], Pair]:
    """By UUID and metric."""
    gpus = Gpus()
    gpus.read(time.monotonic())
    if gpus.trouble:
        raise SystemExit(gpus.trouble)
    pairs: dict[tuple[str, str], Pair] = defaultdict(Pair)
    clock = time.monotonic()
    for _ in range(rounds):
        # Every reading is due again a minute later; so much is added to the clock that the agent is given.
        clock += 120
        before = ours(gpus.read(clock))
        theirs = smi()
        clock += 120
        after = ours(gpus.read(clock))
        for uuid, told in theirs.items():
            for question in QUESTIONS:
                _compare(
                    pairs[uuid, question.ours], question, before.get(uuid, {}), told, after.get(uuid, {})
                )
    gpus.close()
    return {
        key: pair for key, pair in pairs.items() if not (math.isnan(pair.mine) and math.isnan(pair.theirs))
    }


def _compare(
    pair: Pair,
    question: Question,
    before: Mapping[str, float],
    theirs: Mapping[str, float],
    after: Mapping[str, float],
) -> None:
    name = question.ours
    pair.mine, pair.theirs = after.get(name, pair.mine), theirs.get(name, pair.theirs)
    if name in before and name in theirs and name in after:
        pair.differences.append(off(question, before[name], theirs[name], after[name]))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(
        description="The agent's values of this machine's GPUs beside nvidia-smi's."
    )
    parser.add_argument(
        "--rounds", type=int, default=5, help="how often both are asked; the median difference counts"
    )
    rounds = parser.parse_args().rounds
    if shutil.which("nvidia-smi") is None:
        print(
            "There is no nvidia-smi here: run this on a machine with an NVIDIA GPU and its driver.",
            file=sys.stderr,
        )
        return 2
    found = compare(rounds)
    for (uuid, name), pair in sorted(found.items()):
        verdict = "one side only" if math.isnan(pair.difference) else f"{pair.difference:.2%}"
        mark = "  OFF" if pair.difference > TOLERANCE else ""
        print(f"{uuid}  {name:24} {pair.mine:>18,.2f} {pair.theirs:>18,.2f}  {verdict}{mark}")
    wrong = sorted({name for (_, name), pair in found.items() if pair.difference > TOLERANCE})
    print(
        f"{len(found)} values, {len(wrong)} more than {TOLERANCE:.0%} "
        f"off{': ' if wrong else ''}{', '.join(wrong)}"
    )
    return 2 if not found else 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
