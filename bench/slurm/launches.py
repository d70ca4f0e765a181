"""From the submission to the first line of each rank, and from the cancellation until nothing is left:
through the hub and by hand, in turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.slurm.slurm_bench import CPUS, SlurmBench, have_lines, seconds_until, wait_at_random
from bench.support.limits import Limits, median
from bench.support.stack import summary
from clusters.backends.slurm.submission import cancel_jobs
from tests.slurm.people import Person

MAX_ADDED_LAUNCH_S = 1.0
MAX_ADDED_CANCEL_S = 0.5
# After the start, so that nothing of it is still under way when the run is canceled.
SETTLE_S = 1.0
FIRST_LINE = "print('first line', flush=True)\n"
WAIT = "import time\nprint('first line', flush=True)\ntime.sleep(600)\n"


@dataclass
class Times:
    """Seconds of each round."""

    through_hub: list[float] = field(default_factory=list)
    by_hand: list[float] = field(default_factory=list)

    def judge(self, limits: Limits, name: str, max_added_s: float) -> None:
        print(summary(f"through the hub: {name}", self.through_hub))
        print(summary(f"by hand: {name}", self.by_hand))
        added = median(self.through_hub) - median(self.by_hand)
        limits.at_most(f"what the hub adds, {name}, in seconds", added, max_added_s)


class Launches:
    def __init__(self, bench: SlurmBench) -> None:
        self._bench = bench
        self._script = self._write("first_line.py", FIRST_LINE)
        self._wait = self._write("wait.py", WAIT)
        # Uploaded once, as a file is written once by hand.
        self._snapshots = {text: bench.hub.runs.snapshot(main_py=text) for text in (FIRST_LINE, WAIT)}

    def measure(self, rounds: int, limits: Limits) -> None:
        for nodes in (1, 2):
            times = Times()
            # The first fill caches.
            for number in range(rounds + 1):
                pair = self._launch_by_hand(nodes), self._launch_through_hub(nodes)
                if number:
                    times.by_hand.append(pair[0])
                    times.through_hub.append(pair[1])
            times.judge(limits, f"submitted -> first line, nodes: {nodes}", MAX_ADDED_LAUNCH_S)
        self._in_turn(rounds, self._cancel_by_hand, self._cancel_through_hub).judge(
            limits, "canceled -> nothing left", MAX_ADDED_CANCEL_S
        )
        other = Person(self._bench.slurm, "bo")
        job = other.submit(nodes=len(self._bench.slurm.nodes), cpus_per_task=CPUS)
        other.until(job, "RUNNING")
        self._in_turn(rounds, self._cancel_waiting_by_hand, self._cancel_waiting_through_hub).judge(
            limits, "canceled in the queue -> nothing left", MAX_ADDED_CANCEL_S
        )
        other.leave()

    def _write(self, name: str, text: str) -> Path:
        path = self._bench.logs / name
        path.write_text(text)
        path.chmod(0o644)
        return path

    def _in_turn(self, rounds: int, by_hand: Callable[[], float], through_hub: Callable[[], float]) -> Times:
        times = Times()
        for _ in range(rounds):
            times.by_hand.append(by_hand())
            times.through_hub.append(through_hub())
        return times

    def _launch_by_hand(self, nodes: int) -> float:
        wait_at_random()
        started_at = time.monotonic()
        _, files = self._bench.submit_by_hand(self._script, nodes)
        seconds = seconds_until(lambda: have_lines(files), started_at)
        self._until_empty()
        return seconds

    def _launch_through_hub(self, nodes: int) -> float:
        wait_at_random()
        started_at = time.monotonic()
        run = self._submit(FIRST_LINE, nodes)
        seconds = seconds_until(lambda: have_lines(self._bench.log_files(run, nodes)), started_at)
        self._bench.hub.completes(run)
        self._until_empty()
        return seconds

    def _cancel_by_hand(self) -> float:
        job, files = self._bench.submit_by_hand(self._wait)
        seconds_until(lambda: have_lines(files), time.monotonic())
        return self._canceled(lambda: cancel_jobs(self._bench.person, [job]))

    def _cancel_through_hub(self) -> float:
        run = self._submit(WAIT)
        seconds_until(lambda: have_lines(self._bench.log_files(run)), time.monotonic())
        return self._canceled(lambda: self._cancel(run))

    def _cancel_waiting_by_hand(self) -> float:
        job, _ = self._bench.submit_by_hand(self._wait)
        return self._canceled(lambda: cancel_jobs(self._bench.person, [job]), others=1)

    def _cancel_waiting_through_hub(self) -> float:
        run = self._submit(WAIT)
        seconds_until(lambda: len(self._bench.hub.jobs()) > 1, time.monotonic())
        return self._canceled(lambda: self._cancel(run), others=1)

    def _canceled(self, cancel: Callable[[], None], others: int = 0) -> float:
        time.sleep(SETTLE_S)
        started_at = time.monotonic()
        cancel()
        return seconds_until(lambda: not self._bench.is_anything_left(others), started_at)

    def _cancel(self, run: str) -> None:
        self._bench.hub.runs.client.post(f"/api/v1/runs/{run}/cancel/").raise_for_status()

    def _submit(self, text: str, nodes: int = 1) -> str:
        return self._bench.submit(self._snapshots[text], nodes)

    def _until_empty(self) -> None:
        seconds_until(lambda: not self._bench.is_anything_left(), time.monotonic())
