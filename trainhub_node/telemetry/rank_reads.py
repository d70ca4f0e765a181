"""Measures how fast the ranks of runs read, with all processes that they have started, such as those that
load data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from trainhub_launch.metrics import MEDIUM_S
from trainhub_launch.telemetry import MAX_RANK_READS, RankRead
from trainhub_node import proc
from trainhub_node.gpu.gpu_processes import ProcessOwner

# A reading a little early counts.
JITTER_S = 0.5
FIELDS = (b"rchar:", b"read_bytes:")

# Of a process: what it has read by calls, and what of that and of its mapped files came from storage.
Counts = tuple[int, int]


class RankReads:
    """`list_ranks`: the processes of ranks, by their ids. `read` is called by one thread."""

    def __init__(self, list_ranks: Callable[[], Mapping[int, ProcessOwner]]) -> None:
        self._list_ranks = list_ranks
        self._at = float("-inf")
        self._counts: dict[tuple[int, int], Counts] = {}
        self._latest: tuple[RankRead, ...] = ()

    def read(self, now: float) -> tuple[RankRead, ...]:
        """Returns the present rates, measured every MEDIUM_S seconds. `now`: seconds of a steady clock. The
        kernel may refuse the numbers of a process, which then count as none."""
        elapsed_s = now - self._at
        if elapsed_s >= MEDIUM_S - JITTER_S:
            ranks = self._list_ranks()
            counts = {} if not ranks else _counts(ranks)
            self._latest = self._rates(counts, elapsed_s)
            self._counts = {key: count for by_process in counts.values() for key, count in by_process.items()}
            self._at = now
        return self._latest

    def _rates(
        self, counts: Mapping[ProcessOwner, Mapping[tuple[int, int], Counts]], elapsed_s: float
    ) -> tuple[RankRead, ...]:
        # Without an earlier reading, what was read long ago would count as read now.
        if not self._counts:
            return ()
        result = []
        for owner, by_process in counts.items():
            grown = [
                (now[0] - before[0], now[1] - before[1])
                for key, now in by_process.items()
                for before in (self._counts.get(key, (0, 0)),)
            ]
            result.append(
                RankRead(
                    owner.run,
                    owner.attempt,
                    owner.rank or 0,
                    max(0.0, sum(calls for calls, _ in grown) / elapsed_s),
                    max(0.0, sum(storage for _, storage in grown) / elapsed_s),
                )
            )
        return tuple(sorted(result, key=lambda read: (read.run, read.rank))[:MAX_RANK_READS])


def _counts(ranks: Mapping[int, ProcessOwner]) -> dict[ProcessOwner, dict[tuple[int, int], Counts]]:
    """Returns the counts of the processes of each rank, by process id and start."""
    children: dict[int, list[proc.ProcessStat]] = defaultdict(list)
    processes = proc.list_processes()
    for process in processes:
        children[process.parent].append(process)
    result: dict[ProcessOwner, dict[tuple[int, int], Counts]] = defaultdict(dict)
    for top in processes:
        if top.pid in ranks:
            for process in _below(top, children):
                count = _count(process.pid)
                if count is not None:
                    result[ranks[top.pid]][process.pid, process.start] = count
    return result


def _below(
    top: proc.ProcessStat, children: Mapping[int, list[proc.ProcessStat]]
) -> Iterable[proc.ProcessStat]:
    waiting = [top]
    while waiting:
        process = waiting.pop()
        yield process
        waiting += children.get(process.pid, ())


def _count(pid: int) -> Counts | None:
    lines = dict(line.split()[:2] for line in (proc.read(f"/proc/{pid}/io") or b"").splitlines())
    return (int(lines[FIELDS[0]]), int(lines[FIELDS[1]])) if all(name in lines for name in FIELDS) else None
