"""What happened in the 30 days before the demo started: who ran what, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

H100S, A100S = "simulated-h100", "simulated-a100"
MIRA, JONAS = "mira", "jonas"
PEOPLE = (MIRA, JONAS)
MODEL = "signal-classifier"
DAYS = 30
TRAINING_ENVIRONMENT = "signal-training"
STEPS = 120
LEARNING_RATES = (0.001, 0.005, 0.02, 0.1, 2.0)
SWEEP_TAG = "sweep"
# The name of a run that the visitor of the demo starts (simulator/demo/visitor.py).
SILENT = "one rank goes silent"


@dataclass(frozen=True)
class Version:
    """A version of MODEL that a run became."""

    description: str
    alias: str = ""


@dataclass(frozen=True)
class PastRun:
    """A run `days` (and fractions) before the start of the demo, of `minutes`, with `processes` on each of
    `nodes` and a GPU for each. `breaks_at`: the step at which its last rank fails, 0: none does.
    `is_canceled`: it is canceled after half of its steps. `environment_version`: that of
    TRAINING_ENVIRONMENT, "" for the node's own Python."""

    days: float
    minutes: int
    experiment: str
    name: str
    person: str
    learning_rate: float
    seed: int = 1
    batch_size: int = 128
    cluster: str = H100S
    nodes: int = 1
    processes: int = 4
    breaks_at: int = 0
    is_canceled: bool = False
    environment_version: str = ""
    note: str = ""
    version: Version | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def ranks(self) -> int:
        return self.nodes * self.processes

    @property
    def steps(self) -> int:
        """The number of steps that the run really made."""
        return self.breaks_at or (STEPS // 2 if self.is_canceled else STEPS)

    def spec(self, snapshot: str) -> dict[str, Any]:
        """Returns the RunSpec of the run, which can be cloned and runs again."""
        arguments = [f"--steps={STEPS}", f"--learning-rate={self.learning_rate:g}", f"--seed={self.seed}"]
        arguments += [f"--batch-size={self.batch_size}"]
        arguments += [f"--breaks-at={self.breaks_at}"] if self.breaks_at else []
        several = {
            "type": "pytorch",
            "communication_backend": "gloo",
            "process_count": self.ranks,
            "node_count": self.nodes,
        }
        own = {"name": TRAINING_ENVIRONMENT, "version": self.environment_version}
        return {
            "version": 1,
            "experiment": self.experiment,
            "display_name": self.name,
            "source": {"type": "snapshot", "id": snapshot},
            "script": "train.py",
            "arguments": arguments,
            "distribution": several if self.ranks > 1 else None,
            "resources": {"cluster": self.cluster, "gpus_per_node": self.processes},
            "environment": own if self.environment_version else {"name": "system", "version": ""},
            "environment_variables": {"OPENBLAS_NUM_THREADS": "1"},
            "tags": dict(self.tags),
        }


def _sweep() -> list[PastRun]:
    """Five learning rates with two seeds each: the comparison that the demo offers to try."""
    return [
        PastRun(
            days=5.4 - 0.1 * number,
            minutes=18,
            experiment="learning-rate",
            name=f"lr {rate:g}, seed {seed}",
            person=MIRA,
            learning_rate=rate,
            seed=seed,
            cluster=A100S,
            processes=1,
            note="Too high: the loss rises and jumps instead of falling."
            if rate == LEARNING_RATES[-1]
            else "",
            tags={SWEEP_TAG: "learning rate"},
        )
        for number, (rate, seed) in enumerate((rate, seed) for rate in LEARNING_RATES for seed in (1, 2))
    ]


def _baselines() -> list[PastRun]:
    """A classifier that becomes better over four weeks; three of its runs are registered."""
    versions = {
        2: Version("The first one that was good enough to try."),
        6: Version("A larger batch on two machines.", "production"),
        11: Version("A higher learning rate; waits for its evaluation.", "candidate"),
    }
    rates = (0.001, 0.003, 0.004, 0.004, 0.2, 0.006, 0.01, 0.01, 0.008, 0.015, 0.012, 0.018)
    return [
        PastRun(
            days=29.6 - 2.3 * number,
            minutes=25 + 3 * (number % 4),
            experiment="classifier",
            name=f"classifier {number + 1}",
            person=JONAS if number % 3 else MIRA,
            learning_rate=rate,
            seed=number + 1,
            batch_size=64 if number < 6 else 256,
            nodes=2 if number in (6, 9) else 1,
            processes=8 if number == 11 else 4,
            breaks_at=40 if number == 7 else 0,
            is_canceled=number == 4,
            note="Jumps around; I stopped it." if number == 4 else "",
            version=versions.get(number),
        )
        for number, rate in enumerate(rates)
    ]


def _fine_tunes() -> list[PastRun]:
    return [
        PastRun(
            days=28.6 - 1.9 * number,
            minutes=20 + 4 * (number % 3),
            experiment="fine-tune",
            name=f"fine-tune {number + 1}",
            person=MIRA if number % 2 else JONAS,
            learning_rate=0.02 if number % 2 else 0.01,
            seed=number + 1,
            cluster=A100S if number % 3 else H100S,
            processes=2 + 2 * (number % 2),
            breaks_at=55 if number in (3, 9) else 0,
            environment_version={2: "1", 11: "3", 13: "3"}.get(number, ""),
            note="Runs out of memory with this batch." if number == 9 else "",
        )
        for number in range(14)
    ]


def _stability() -> list[PastRun]:
    """The same run with four seeds, which says how much of a difference is chance."""
    return [
        PastRun(
            days=2.4 - 0.2 * seed,
            minutes=22,
            experiment="seeds",
            name=f"same again, seed {seed}",
            person=JONAS,
            learning_rate=0.018,
            seed=seed,
            batch_size=256,
            tags={"question": "chance"},
        )
        for seed in range(1, 5)
    ]


# The oldest first, as their numbers count.
PAST = tuple(
    sorted([*_sweep(), *_baselines(), *_fine_tunes(), *_stability()], key=lambda run: run.days, reverse=True)
)
