"""Plays one past run from its submission to its end."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import time_machine

from jobs.models import Run
from jobs.scheduling import run_actions
from tracking import params
from tracking.metrics import point_writer
from tracking.metrics.points import Point
from trainhub.demo import gpu_load
from trainhub.demo.played_node import PlayedNode
from trainhub.demo.story import STEPS, PastRun
from trainhub.demo.training import Recording
from trainhub_launch.plan import PlannedProcess
from trainhub_launch.report import LogChunk, MemberFact, OutputFile
from trainhub_launch.spec_reader import read_spec
from trainhub_launch.states import Phase, RankState
from workspaces.access import Principal
from workspaces.stored_files.blob_writer import BlobWriter

QUEUED_S, PREPARING_S, STARTING_S, ENDING_S = 1.0, 4.0, 3.0, 2.0
# How often a node sends new bytes of its logs. Agents do so every second; a few times draw the same lane.
LOG_REPORTS = 6
# Of one GPU.
SAMPLES_PER_S = 310.0
MODEL_PATH = "model.npz"
FIRST_PID = 20_000


@dataclass
class Part:
    """A node's part of the run: the processes that it started, and what it last reported of them."""

    node: PlayedNode
    processes: tuple[PlannedProcess, ...] = ()
    members: tuple[MemberFact, ...] = ()

    @property
    def busy_gpus(self) -> set[str]:
        return {gpu for process in self.processes for gpu in process.gpus}


@dataclass
class Replay:
    """`nodes`: all of the fleet, by name."""

    clock: time_machine.Traveller
    past_run: PastRun
    recording: Recording
    nodes: Mapping[str, PlayedNode]
    _parts: list[Part] = field(default_factory=list)

    def play(self, snapshot: str, who: Principal) -> Run:
        """Returns the ended run."""
        run = run_actions.submit(read_spec(self.past_run.spec(snapshot)), who)
        self.clock.shift(QUEUED_S)
        run_actions.launch(run.pk)
        placement = run.attempts.get(number=1).placement
        self._parts = [Part(self.nodes[placed["name"]]) for placed in placement]
        self._start(run)
        began = time.time()
        self._run(run, self.past_run.minutes * 60 * self.past_run.steps / STEPS)
        self._log_numbers(run, began)
        if self.past_run.is_canceled:
            run.refresh_from_db()
            run_actions.cancel(run, who.user)
        self._end(run, began)
        run.refresh_from_db()
        return run

    def _start(self, run: Run) -> None:
        for part in self._parts:
            part.node.claim(run)
            part.node.advance(run, Phase.PREPARING)
        self.clock.shift(PREPARING_S)
        if len(self._parts) > 1:
            for part in self._parts:
                part.node.advance(run, Phase.READY)
        self.clock.shift(STARTING_S)
        for part in self._parts:
            part.processes = part.node.claim(run).command.processes
            part.members = tuple(
                MemberFact(
                    process.rank,
                    RankState.RUNNING,
                    pid=FIRST_PID + 100 * run.number + process.rank,
                    started_at=time.time(),
                )
                for process in part.processes
            )
            part.node.advance(run, Phase.RUNNING, part.members)

    def _run(self, run: Run, seconds: float) -> None:
        """Lets the ranks work for that long; their logs grow now and then."""
        for reports in range(LOG_REPORTS):
            for part in self._parts:
                logs = self._logs(part)
                sent = {
                    name: [len(text) * number // LOG_REPORTS for number in (reports, reports + 1)]
                    for name, text in logs.items()
                }
                chunks = [
                    LogChunk(run.pk, 1, name, begin, logs[name][begin:end])
                    for name, (begin, end) in sent.items()
                ]
                part.node.advance(run, Phase.RUNNING, logs=chunks)
            self.clock.shift(seconds / LOG_REPORTS)

    def _logs(self, part: Part) -> dict[str, bytes]:
        """Returns the whole log of each process, by name."""
        last, node = self.past_run.ranks - 1, part.node.node.name
        return {
            process.log_name: self.recording.log(
                process.rank,
                f"rank {process.rank} of {self.past_run.ranks} on {node}, {' '.join(process.gpus)}",
                is_last=process.rank == last,
            )
            for process in part.processes
        }

    def _log_numbers(self, run: Run, began: float) -> None:
        """Logs what the training logged, at the times at which these steps were made."""
        step_s = (time.time() - began) / self.past_run.steps
        dice = np.random.default_rng(run.number)
        points = []
        for step, values in self.recording.metrics:
            # The recording took a moment; the throughput is that of the run, which varies a little.
            per_s = SAMPLES_PER_S * self.past_run.ranks * dice.uniform(0.97, 1.0)
            logged = {**values, "samples_per_s": per_s}
            at_ms = int((began + step * step_s) * 1000)
            points += [Point(key, value, step, at_ms) for key, value in logged.items()]
        params.put(run.pk, run.experiment_id, self.recording.params)
        point_writer.append(run.pk, run.experiment_id, points)

    def _end(self, run: Run, began: float) -> None:
        self.clock.shift(ENDING_S)
        ended_at = time.time()
        for part in self._parts:
            node = part.node
            uuids = [gpu.uuid for gpu in node.gpus]
            load = gpu_load.block(uuids, part.busy_gpus, began, ended_at - began, run.number)
            logs = self._logs(part)
            members = tuple(
                self._ended(member, len(logs[process.log_name]), ended_at)
                for process, member in zip(part.processes, part.members, strict=True)
            )
            node.advance(run, Phase.DONE, members, outputs=self._outputs(part), buckets=(load,))
            # Once more: the hub settles a part when all that it named has been stored.
            node.report()

    def _ended(self, member: MemberFact, log_bytes: int, at: float) -> MemberFact:
        ended = replace(member, state=RankState.ENDED, ended_at=at, log_bytes=log_bytes)
        is_last = member.rank == self.past_run.ranks - 1
        if self.recording.traceback and is_last:
            return replace(ended, exit_code=1)
        if self.recording.traceback or self.past_run.is_canceled:
            # The others wait for the last one, and are ended with it.
            return replace(ended, signal=signal.SIGTERM, ended_by_us=True, ended_at=at + 0.5)
        return replace(ended, exit_code=0)

    def _outputs(self, part: Part) -> tuple[OutputFile, ...]:
        if not self.recording.model or all(process.rank for process in part.processes):
            return ()
        with BlobWriter() as writer:
            writer.write(self.recording.model)
            sha256 = writer.finish()
        return (OutputFile(MODEL_PATH, len(self.recording.model), sha256),)
