"""Replays the jobs of a month on a cluster that exists only here, with the functions that the hub uses: the
order of the queue, the walk through it, and placement."""

from __future__ import annotations

import heapq
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.launch.builders import make_node
from trainhub_launch.scheduler import fair_share
from trainhub_launch.scheduler.capacity import Demand
from trainhub_launch.scheduler.fair_share import Account, FairQueue, Turn
from trainhub_launch.scheduler.placement import Placement, place
from trainhub_launch.scheduler.queue import Line, Release

HOUR, DAY = 3600.0, 86400.0
HALF_LIFE_S = 7 * DAY
SHARES = {"vision": 3.0, "speech": 1.0}
NODES, GPUS = 4, 4
# Nodes, GPUs per node, and how often: the largest gangs take half of the cluster.
SIZES = [((1, 1), 40), ((1, 2), 25), ((1, 4), 15), ((2, 2), 10), ((2, 4), 10)]
LIMITS_H = [(0.25, 20), (0.5, 35), (2.0, 30), (6.0, 10), (None, 5)]


@dataclass(frozen=True)
class Job:
    """`length_s`: what it takes, which nobody knows before its end."""

    run: str
    workspace: str
    person: str
    priority: int
    submitted_at: float
    length_s: float
    demand: Demand

    @property
    def gpus(self) -> int:
        return self.demand.nodes * self.demand.gpus


@dataclass
class Result:
    """What happened. `starts`: the jobs in the order in which they started, and when. `estimates`: until when
    a job at the head was to start when it came there, for those that nothing of higher priority passed.
    `delivered`: GPU-seconds by workspace while both had waiting jobs."""

    starts: list[tuple[float, Job]] = field(default_factory=list)
    estimates: dict[str, float] = field(default_factory=dict)
    delivered: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    backlogged_s: float = 0.0
    end_s: float = 0.0
    borrowed: int = 0


def month(seed: int, count: int = 10_000) -> list[Job]:
    """Returns the jobs of a month; for most of it both workspaces submit more than they get."""
    dice = random.Random(seed)  # noqa: S311 - the same jobs each time
    jobs = []
    for number in range(count):
        workspace = dice.choices(["vision", "speech"], [76, 24])[0]
        nodes, gpus = dice.choices([size for size, _ in SIZES], [often for _, often in SIZES])[0]
        hours = dice.choices([limit for limit, _ in LIMITS_H], [often for _, often in LIMITS_H])[0]
        limit_s = None if hours is None else int(hours * HOUR)
        jobs.append(
            Job(
                run=f"{number:05}",
                workspace=workspace,
                person=f"{workspace}-{dice.randrange(3)}",
                priority=dice.choices([0, -1, 1], [96, 3, 1])[0],
                submitted_at=dice.uniform(0, 30 * DAY * count / 10_000),
                length_s=dice.uniform(0.1, 1.0) * (limit_s or 2 * HOUR) * 0.5,
                demand=Demand(nodes, gpus, 0, limit_s=limit_s),
            )
        )
    return sorted(jobs, key=lambda job: job.submitted_at)


class Replay:
    """One replay. Each event (a submission, an end) is followed by one walk, as in the hub."""

    def __init__(self, jobs: Sequence[Job], shares: Mapping[str, float] = SHARES) -> None:
        self._jobs, self._shares = jobs, shares
        self._nodes = {name: make_node(name, gpus=GPUS) for name in (f"n{i}" for i in range(NODES))}
        self._queue: FairQueue[str, str] = FairQueue()
        self._waiting: dict[str, tuple[Job, Turn[str, str]]] = {}
        self._running: dict[str, tuple[Job, float, Placement]] = {}
        self._accounts: dict[tuple[str, str], Account] = {}
        self._backlog: dict[str, int] = defaultdict(int)
        self._claims: set[str] = set()
        self._ends: list[tuple[float, str]] = []
        self._shapes: dict[Demand, int] = defaultdict(int)
        self.result = Result()

    def run(self, until: float = float("inf")) -> Result:
        """Replays all jobs to their ends, or what happens before `until`."""
        last = 0.0
        coming = list(reversed(self._jobs))
        while coming or self._ends or self._waiting:
            next_submission = coming[-1].submitted_at if coming else float("inf")
            now = min(next_submission, self._ends[0][0] if self._ends else float("inf"))
            assert now < float("inf"), "jobs wait, and nothing will ever end"
            if now >= until:
                break
            self._measure(now - last)
            last = now
            if next_submission <= now:
                self._submit(coming.pop())
            else:
                self._end(heapq.heappop(self._ends)[1], now)
            self._walk(now)
        self.result.end_s = last
        return self.result

    def _submit(self, job: Job) -> None:
        turn = Turn(job.submitted_at, job.run, job.workspace, job.person, job.priority, float(job.gpus))
        self._queue.add(turn)
        self._waiting[job.run] = job, turn
        self._shapes[job.demand] += 1
        self._backlog[job.workspace] += 1

    def _end(self, run: str, now: float) -> None:
        job, start, placement = self._running.pop(run)
        for placed in placement.nodes:
            node = self._nodes[placed.name]
            assert not set(node.gpus) & set(placed.gpus)
            self._nodes[placed.name] = replace(node, gpus=tuple(sorted((*node.gpus, *placed.gpus))))
        key = job.workspace, job.person
        amount = job.gpus * fair_share.charge(start, now, now, HALF_LIFE_S)
        self._accounts[key] = self._accounts.get(key, Account()).plus(amount, now, HALF_LIFE_S)

    def _use(self, now: float) -> dict[tuple[str, str], float]:
        use = {key: account.at(now, HALF_LIFE_S) for key, account in self._accounts.items()}
        for job, start, _ in self._running.values():
            key = job.workspace, job.person
            use[key] = use.get(key, 0.0) + job.gpus * fair_share.charge(start, now, now, HALF_LIFE_S)
        return use

    def _walk(self, now: float) -> None:
        line: Line[str] = Line(tuple(self._nodes.values()), self._releases(now))
        is_first, ended_turns = True, []
        for turn in self._queue.order(self._use(now), self._shares):
            job, _ = self._waiting[turn.run]
            answer = line.ask(job.demand)
            if isinstance(answer, Placement):
                line.grant(answer, job.demand)
                self._start(job, answer, now, borrowed=not is_first)
                ended_turns.append(turn)
            else:
                if is_first:
                    # Work-conserving: whatever is idle, the first in the queue cannot use it.
                    assert not isinstance(place(job.demand, tuple(self._nodes.values())), Placement)
                    is_first = False
                line.wait(job.demand, turn.run)
            # The hub goes on, to explain to each run why it waits; here nothing else can happen.
            if not any(line.has_room(shape) for shape, left in self._shapes.items() if left):
                break
        for turn in ended_turns:
            self._queue.remove(turn)
            del self._waiting[turn.run]
        self._claim(line.heads, now)

    def _start(self, job: Job, placement: Placement, now: float, *, borrowed: bool) -> None:
        for placed in placement.nodes:
            node = self._nodes[placed.name]
            assert set(placed.gpus) <= set(node.gpus), "a GPU was given twice"
            left = tuple(uuid for uuid in node.gpus if uuid not in placed.gpus)
            self._nodes[placed.name] = replace(node, gpus=left)
        assert len({placed.name for placed in placement.nodes}) == job.demand.nodes
        self._shapes[job.demand] -= 1
        self._backlog[job.workspace] -= 1
        self._running[job.run] = job, now, placement
        heapq.heappush(self._ends, (now + job.length_s, job.run))
        self.result.starts.append((now, job))
        self.result.borrowed += borrowed

    def _claim(self, heads: Mapping[str, float | None], now: float) -> None:
        """Keeps the claims of those at the head; ends those of jobs that a higher priority has passed."""
        for run in self._claims - heads.keys():
            if run in self._waiting:
                self._replace(run, claimed_at=None)
                self.result.estimates.pop(run, None)
        for run in heads.keys() - self._claims:
            start_s = heads[run]
            if start_s is not None:
                self.result.estimates[run] = now + start_s
            self._replace(run, claimed_at=now)
        self._claims = set(heads)

    def _replace(self, run: str, claimed_at: float | None) -> None:
        job, turn = self._waiting[run]
        self._queue.remove(turn)
        self._waiting[run] = job, replace(turn, claimed_at=claimed_at)
        self._queue.add(self._waiting[run][1])

    def _releases(self, now: float) -> dict[str, list[Release]]:
        releases: dict[str, list[Release]] = defaultdict(list)
        for job, start, placement in self._running.values():
            if job.demand.limit_s is not None:
                for placed in placement.nodes:
                    after_s = start + job.demand.limit_s - now
                    releases[placed.name].append(Release(after_s, len(placed.gpus), 0))
        return releases

    def _measure(self, seconds: float) -> None:
        """Counts what was delivered while both workspaces had waiting jobs."""
        if all(self._backlog[workspace] for workspace in self._shares):
            self.result.backlogged_s += seconds
            for job, _, _ in self._running.values():
                self.result.delivered[job.workspace] += job.gpus * seconds
