"""One walk through the queue of a cluster, which looks at as few runs as it can.

Most of many waiting runs are alike (`DemandGroup`). Once nothing can change for one of them, nothing can for
the others of its group, and they are passed over without being read. What is placed, who is at the head, and
what waiting runs claim is the same as if each were looked at."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from django.db import DatabaseError

from jobs.models import Run
from jobs.queues.demands import QueuedRun, queued_with_ids, with_needs
from jobs.queues.waiting_runs import DemandGroup, WaitingQueue, WaitingRun
from jobs.scheduling.cluster_queue import ClusterQueue, StaleOffers
from trainhub_launch.scheduler.capacity import Demand
from trainhub_launch.spec_reader import read_spec

MAX_READ_AT_ONCE = 64


class RunReader:
    """Reads the runs that a walk looks at: first one, then more at once the more it looks at. `order`: all
    that wait."""

    def __init__(self, order: Iterator[WaitingRun]) -> None:
        self._order = order
        self._ahead: deque[WaitingRun] = deque()
        self._rows: dict[str, Run] = {}
        self._read_at_once = 1

    def __iter__(self) -> Iterator[WaitingRun]:
        while self._ahead or self._extend():
            yield self._ahead.popleft()

    def read(self, waiting: WaitingRun, is_passed_over: Callable[[WaitingRun], bool]) -> Run | None:
        """Returns the run as it is now, None if it no longer waits. `is_passed_over`: of which runs the walk
        knows that it will not look at them."""
        if waiting.pk not in self._rows:
            next_ones, place = [waiting.pk], 0
            # Not far ahead: mostly all that follow are passed over.
            while place < self._read_at_once and (place < len(self._ahead) or self._extend()):
                if not is_passed_over(self._ahead[place]):
                    next_ones.append(self._ahead[place].pk)
                place += 1
            self._rows = {run.pk: run for run in queued_with_ids(next_ones)}
            self._read_at_once = min(2 * self._read_at_once, MAX_READ_AT_ONCE)
        return self._rows.pop(waiting.pk, None)

    def _extend(self) -> bool:
        following = next(self._order, None)
        if following is not None:
            self._ahead.append(following)
        return following is not None


class QueueWalk:
    """`fail`: what happens to a run that raises an error. `is_whole`: the walk goes on to the last run, for
    the sentences. `notes`: the runs that it passed over, in order, with why each waits."""

    def __init__(
        self,
        cluster_queue: ClusterQueue,
        queue: WaitingQueue,
        fail: Callable[[Run], None],
        *,
        is_whole: bool,
    ) -> None:
        self._cluster_queue, self._queue, self._fail = cluster_queue, queue, fail
        self._is_whole = is_whole
        self._needs: dict[DemandGroup, Demand] = {}
        # Why the runs of a group wait that cannot start in this walk, whatever is free.
        self._sentences: dict[DemandGroup, str] = {}
        self._reserved_for = cluster_queue.reserved_for & queue.runs.keys()
        # What is still to come: how many runs of each group, and those for which something is reserved.
        self._groups_to_come = dict(queue.group_sizes)
        self._reserved_to_come = set(self._reserved_for)
        self.notes: list[tuple[WaitingRun, str]] = []

    def walk(self, order: Iterator[WaitingRun]) -> None:
        """Places the runs that fit, and records why the others wait. Raises StaleOffers."""
        reader, is_over_unchecked = RunReader(order), True
        for waiting in reader:
            self._count(waiting)
            if not self._is_passed_over(waiting):
                self._look_at(waiting, reader)
                is_over_unchecked = True
                continue
            self._pass_over(waiting)
            if is_over_unchecked and not self._is_whole and self._is_over():
                break
            is_over_unchecked = False
        self._cluster_queue.finish(self._queue)

    def _count(self, waiting: WaitingRun) -> None:
        self._reserved_to_come.discard(waiting.pk)
        self._groups_to_come[waiting.group] -= 1
        if not self._groups_to_come[waiting.group]:
            del self._groups_to_come[waiting.group]

    def _is_passed_over(self, waiting: WaitingRun) -> bool:
        return waiting.pk not in self._reserved_for and self._is_settled(waiting.group)

    def _is_settled(self, group: DemandGroup) -> bool:
        needs = self._needs.get(group)
        return needs is not None and (group in self._sentences or self._cluster_queue.is_out_of_reach(needs))

    def _is_over(self) -> bool:
        """Returns whether nothing can change for any of the runs to come."""
        return not self._reserved_to_come and all(map(self._is_settled, self._groups_to_come))

    def _pass_over(self, waiting: WaitingRun) -> None:
        sentence = self._sentences.get(waiting.group)
        if sentence is None:
            sentence = self._cluster_queue.pass_over(waiting, self._needs[waiting.group])
        self.notes.append((waiting, sentence))

    def _look_at(self, waiting: WaitingRun, reader: RunReader) -> None:
        run = reader.read(waiting, self._is_passed_over)
        waiting.sentence = None
        if run is None:
            return
        try:
            sentence = self._cluster_queue.process(self._with_needs(waiting, run))
        except (DatabaseError, StaleOffers):
            raise
        except Exception:
            # A bug that one run triggers must not block the rest of the queue.
            self._fail(run)
            return
        if sentence:
            self._sentences[waiting.group] = sentence

    def _with_needs(self, waiting: WaitingRun, run: Run) -> QueuedRun:
        if waiting.group in self._needs:
            return QueuedRun(run, read_spec(run.spec), self._needs[waiting.group])
        turn = with_needs(run)
        self._needs[waiting.group] = turn.needs
        return turn
