"""Since when the ranks of running runs have written nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from django.db.models import F, Max

from clusters.alerts.facts import RankSilence, RunSilence
from jobs.logs import log_store
from jobs.models import Member, RunEvent
from jobs.states import MemberState, RunState

# More ranks than a sentence names.
MAX_RANKS = 8
# Only the other files of a run whose ranks have been silent for so long are searched.
MIN_SILENCE_S = 60


def silences(run_ids: Collection[str], now: float) -> dict[str, RunSilence]:
    """Returns run id -> the silence of its ranks that run, the longest first, for the runs that are Running.

    `now`: Unix seconds. The time of a rank's last output is that of its log file at the hub."""
    members = (
        Member.objects.filter(
            attempt__run__in=run_ids,
            attempt__number=F("attempt__run__attempt"),
            attempt__run__state=RunState.RUNNING,
            state=MemberState.RUNNING,
        )
        .select_related("attempt", "node")
        .defer("node__vitals", "node__interpreters")
    )
    by_run: dict[str, list[Member]] = defaultdict(list)
    for member in members:
        by_run[member.attempt.run_id].append(member)
    running = RunEvent.objects.filter(run__in=by_run, to_state=RunState.RUNNING)
    started = dict(running.values_list("run").annotate(Max("at")))
    return {
        run_id: _silence(run_id, ranks, started[run_id].timestamp(), now)
        for run_id, ranks in by_run.items()
        if run_id in started
    }


def _silence(run_id: str, members: list[Member], started: float, now: float) -> RunSilence:
    ranks = []
    for member in members:
        written = _written(log_store.path(run_id, member.attempt.number, member.log_name))
        ranks.append(RankSilence(member.rank, member.node.name, now - max(written, started)))
    ranks.sort(key=lambda item: (-item.silent_s, item.rank))
    silent_s = ranks[-1].silent_s
    if silent_s > MIN_SILENCE_S:
        # Files that belong to no rank, such as those of processes that a rank starts itself.
        silent_s = min(silent_s, now - log_store.last_written(run_id, members[0].attempt.number))
    return RunSilence(silent_s, tuple(ranks[:MAX_RANKS]))


def _written(log: Path) -> float:
    """Returns when the last bytes of the log arrived (Unix seconds), 0 if none have."""
    try:
        return log.stat().st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return 0.0
