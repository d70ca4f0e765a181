"""How the lanes of an attempt are shown: titles for people, the log to begin with, what of them changes while
one looks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.http import HttpResponse, JsonResponse
from django.utils.cache import patch_cache_control

from jobs.causes import log_lines
from jobs.causes.reasons import BUILD_LOG, LOG_OF_REASON, PREPARATION_LOG
from jobs.logs import lanes as store
from jobs.logs.lanes import TAIL_BYTES, Lane, Lanes
from jobs.models import Attempt, Member, Run
from jobs.states import WAITING, MemberState, RunState
from jobs.templatetags.formats import look
from jobs.templatetags.runs import exit_word
from jobs.views.cause import first_failed
from jobs.views.run_lookup import run_numbered
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

__all__ = ["TAIL_BYTES", "ShownLane", "attempt_asked", "chosen_log", "data", "last_line", "live", "shown"]
TITLES = {BUILD_LOG: "Environment build", PREPARATION_LOG: "Preparation", "60_launcher_log.txt": "Launcher"}
OF_NODE = re.compile(r"node_(\d+)/(.+)", re.DOTALL)


@dataclass(frozen=True)
class ShownLane:
    """`bar`: its life, begin and end; `gaps`: its silences, with a word. In seconds of the clock."""

    lane: Lane
    title: str
    node: str
    last_line: str
    bar: tuple[float, float | None] | None
    gaps: tuple[tuple[float, float, str], ...]

    @property
    def member(self) -> Member | None:
        return self.lane.member

    @property
    def least_s(self) -> float:
        return self.lane.min_gap_ms / 1000

    @property
    def exit(self) -> str:
        """How it ended, where that was not well: `exit 3`, or the signal's name."""
        member = self.member
        if member is None or member.state == MemberState.SUCCEEDED:
            return ""
        return exit_word(member) if member.signal or member.exit_code is None else f"exit {member.exit_code}"


@dataclass(frozen=True)
class Shown:
    """`groups`: the ranks by node, in order of rank. `failed`: how many failed."""

    found: Lanes
    groups: tuple[tuple[str, tuple[ShownLane, ...]], ...]
    files: tuple[ShownLane, ...]
    chosen_log: str

    @property
    def ranks(self) -> list[ShownLane]:
        return [lane for _, lanes in self.groups for lane in lanes]

    @property
    def failed(self) -> int:
        return sum(
            1
            for lane in self.found.ranks
            if lane.member and lane.member.state in (MemberState.FAILED, MemberState.LOST)
        )


def attempt_asked(run: Run, text: str) -> int:
    """The attempt named in the address, else the last one."""
    return int(text) if text.isascii() and text.isdigit() and 1 <= int(text) <= run.attempt else run.attempt


def shown(run: Run, attempt: int, wanted: str) -> Shown:
    """The lanes as the page draws them; `wanted`: the log asked for in the address."""
    members = list(Member.objects.filter(attempt__run=run, attempt__number=attempt).select_related("node"))
    failed = first_failed(run, attempt, members)
    found = store.build_lanes(run, attempt, members, failed)
    nodes = _nodes(run, attempt)
    is_mixed = len({member.role for member in members}) > 1
    ranks = [
        _shown(lane, found.from_ms, _title(lane, lonely=len(members) == 1, mixed=is_mixed), nodes)
        for lane in found.ranks
    ]
    files = [_shown(lane, found.from_ms, _file_title(lane.name), nodes) for lane in found.others]
    groups = tuple((node, tuple(lanes)) for node, lanes in groupby(ranks, key=lambda lane: lane.node))
    return Shown(found, groups, tuple(files), chosen_log(run, found.all, wanted, failed))


@needs(Role.VIEWER)
def live(request: WorkspaceRequest, number: int) -> HttpResponse:
    """What of the lanes changes while a page is open, for its script."""
    run = run_numbered(request.principal, number)
    attempt = attempt_asked(run, request.GET.get("attempt", ""))
    response = JsonResponse(data(shown(run, attempt, request.GET.get("log", ""))))
    patch_cache_control(response, no_store=True)
    return response


def data(page: Shown) -> dict[str, Any]:
    found = page.found
    return {
        "from_ms": found.from_ms,
        "now_ms": found.now_ms,
        "failed_s": found.failed_s,
        "chosen": page.chosen_log,
        "lanes": [_data(lane) for lane in (*page.ranks, *page.files)],
    }


def _data(shown: ShownLane) -> dict[str, Any]:
    lane, member = shown.lane, shown.member
    seen = look(member.state) if member else None
    return {
        "log": lane.name,
        "size": lane.size,
        "line": shown.last_line,
        "written_ms": lane.written_ms or lane.from_ms,
        "state": member.state if member else "",
        "tone": seen.tone if seen else "",
        "word": seen.word if seen else "",
        "exit": shown.exit,
        "least_s": shown.least_s,
        "bar": shown.bar,
        "gaps": shown.gaps,
    }


def chosen_log(run: Run, found: Sequence[Lane], wanted: str, failed: Member | None = None) -> str:
    """The log asked for; else the one that tells most now: of the rank that failed first, of the preparation,
    of rank 0."""
    names = {lane.name for lane in found}
    if wanted in names:
        return wanted
    ranks = [lane for lane in found if lane.member]
    others = [lane for lane in found if not lane.member and lane.size]
    if failed is not None or run.state == RunState.FAILED:
        name = failed.log_name if failed else LOG_OF_REASON.get(run.reason, "")
        if name in names:
            return name
    if run.state in WAITING and others:
        return max(others, key=lambda lane: lane.written_ms or 0).name
    if run.state == RunState.RUNNING and ranks:
        return ranks[0].name
    best = [lane for lane in found if lane.size] or found
    return best[0].name if best else ""


def last_line(tail: bytes) -> str:
    return log_lines.last_line(tail)[:300]


def _shown(lane: Lane, from_ms: int, title: str, nodes: Sequence[str]) -> ShownLane:
    def seconds(moment_ms: int) -> float:
        return round((moment_ms - from_ms) / 1000, 3)

    bar = (
        None
        if lane.from_ms is None
        else (seconds(lane.from_ms), None if lane.to_ms is None else seconds(lane.to_ms))
    )
    gaps = tuple(
        (seconds(gap.from_ms), seconds(gap.to_ms), "unheard" if gap.is_outage else "silent")
        for gap in lane.gaps
    )
    node = lane.member.node.name if lane.member else _node_of(lane.name, nodes)
    return ShownLane(lane, title, node, last_line(lane.tail), bar, gaps)


def _title(lane: Lane, *, lonely: bool, mixed: bool) -> str:
    member = lane.member
    if member is None or lonely:
        return "Process"
    return f"Rank {member.rank} · {member.role}" if mixed else f"Rank {member.rank}"


def _file_title(name: str) -> str:
    """For a log of another node than the head the node's own prefix is said beside it."""
    found = OF_NODE.fullmatch(name)
    plain = found[2] if found else name
    return TITLES.get(plain, plain.removeprefix("logs/"))


def _node_of(name: str, nodes: Sequence[str]) -> str:
    """Which node's own log it is; said only where there are several."""
    if len(nodes) < 2:
        return ""
    found = OF_NODE.fullmatch(name)
    index = int(found[1]) if found else 0
    return nodes[index] if index < len(nodes) else f"node {index}"


def _nodes(run: Run, attempt: int) -> Sequence[str]:
    """The nodes of an attempt by their rank."""
    placement: Iterable[dict[str, Any]] = (
        Attempt.objects.filter(run=run, number=attempt).values_list("placement", flat=True).first() or ()
    )
    return [str(node["name"]) for node in placement]
