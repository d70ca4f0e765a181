"""The lanes of an attempt as the Logs tab shows them: titles, the log to open first, and the data that an
open page polls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.http import HttpResponse, JsonResponse
from django.utils.cache import patch_cache_control

from jobs.causes import log_lines
from jobs.causes.reasons import LOG_OF_REASON
from jobs.display.log_titles import OF_NODE, file_title
from jobs.display.text import exit_text, status_style
from jobs.logs import lanes as store
from jobs.logs.lanes import TAIL_BYTES, Lane, Lanes
from jobs.models import Attempt, Member, Run
from jobs.states import WAITING, MemberState, RunState
from jobs.views.cause import first_failed
from jobs.views.run_lookup import run_numbered
from trainhub_launch.json_types import JsonObject
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

__all__ = [
    "TAIL_BYTES",
    "LaneView",
    "chosen_log",
    "data",
    "last_line_of_log",
    "live",
    "logs_view",
    "requested_attempt",
]
# The names begin with numbers, which sort the files by the steps of an attempt.


@dataclass(frozen=True)
class LaneView:
    """A lane with its title and times for the page.

    `node`: name of its node, "" where it is not shown. `bar`: start and end of the process (None while it
    runs). `gaps`: its silences as (start, end, "silent" or "unheard"). All times are seconds after the start
    of the first process."""

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
        """Returns how the process ended unless it succeeded: `exit 3` or the signal's name; otherwise ""."""
        member = self.member
        if member is None or member.state == MemberState.SUCCEEDED:
            return ""
        return exit_text(member) if member.signal or member.exit_code is None else f"exit {member.exit_code}"


@dataclass(frozen=True)
class LogsView:
    """The content of the Logs tab. `groups`: (node name, lanes of its ranks) in the order of ranks. `files`:
    lanes of logs that belong to no rank. `chosen_log`: name of the log to open."""

    lanes: Lanes
    groups: tuple[tuple[str, tuple[LaneView, ...]], ...]
    files: tuple[LaneView, ...]
    chosen_log: str

    @property
    def ranks(self) -> list[LaneView]:
        return [lane for _, lanes in self.groups for lane in lanes]

    @property
    def failed(self) -> int:
        return sum(
            1
            for lane in self.lanes.ranks
            if lane.member and lane.member.state in (MemberState.FAILED, MemberState.LOST)
        )


def requested_attempt(run: Run, text: str) -> int:
    """Returns the attempt number of the query parameter, or the latest attempt if it is missing or
    invalid."""
    # Of limited length, because `int` raises an error for thousands of digits.
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0
    return number if 1 <= number <= run.attempt else run.attempt


def logs_view(run: Run, attempt: int, requested_log: str) -> LogsView:
    """Returns the lanes of an attempt for the page. `requested_log`: the log that the URL names, or ""."""
    members = list(Member.objects.filter(attempt__run=run, attempt__number=attempt).select_related("node"))
    failed = first_failed(run, attempt, members)
    built = store.build_lanes(run, attempt, members, failed)
    nodes = _nodes(run, attempt)
    is_mixed = len({member.role for member in members}) > 1
    ranks = [
        _lane_view(lane, built.from_ms, _title(lane, lonely=len(members) == 1, mixed=is_mixed), nodes)
        for lane in built.ranks
    ]
    files = [_lane_view(lane, built.from_ms, file_title(lane.name), nodes) for lane in built.others]
    # `groupby` merges neighbours only. Ranks are in order and those of a node follow each other.
    groups = tuple((node, tuple(lanes)) for node, lanes in groupby(ranks, key=lambda lane: lane.node))
    return LogsView(built, groups, tuple(files), chosen_log(run, built.all, requested_log, failed))


@needs(Role.VIEWER)
def live(request: WorkspaceRequest, number: int) -> HttpResponse:
    """Returns the changing data of all lanes as JSON, for the script of an open page."""
    run = run_numbered(request.principal, number)
    attempt = requested_attempt(run, request.GET.get("attempt", ""))
    response = JsonResponse(data(logs_view(run, attempt, request.GET.get("log", ""))))
    patch_cache_control(response, no_store=True)
    return response


def data(page: LogsView) -> JsonObject:
    lanes = page.lanes
    return {
        "from_ms": lanes.from_ms,
        "now_ms": lanes.now_ms,
        "failed_s": lanes.failed_s,
        "chosen": page.chosen_log,
        "lanes": [_data(lane) for lane in (*page.ranks, *page.files)],
    }


def _data(view: LaneView) -> JsonObject:
    lane, member = view.lane, view.member
    style = status_style(member.state) if member else None
    return {
        "log": lane.name,
        "size": lane.size,
        "line": view.last_line,
        "written_ms": lane.written_ms or lane.from_ms,
        "state": member.state if member else "",
        "tone": style.tone if style else "",
        "word": style.word if style else "",
        "exit": view.exit,
        "least_s": view.least_s,
        "bar": view.bar,
        "gaps": view.gaps,
    }


def chosen_log(run: Run, lanes: Sequence[Lane], requested_log: str, failed: Member | None = None) -> str:
    """Returns the name of the log to open: the requested one if it exists, otherwise the most informative one
    at present, or "" if there are no logs.

    `failed`: the rank that failed first, if any."""
    names = {lane.name for lane in lanes}
    if requested_log in names:
        return requested_log
    ranks = [lane for lane in lanes if lane.member]
    others = [lane for lane in lanes if not lane.member and lane.size]
    # A run can fail without a failed rank, for instance while its environment is built; the reason then names
    # the log.
    if failed is not None or run.state == RunState.FAILED:
        name = failed.log_name if failed else LOG_OF_REASON.get(run.reason, "")
        if name in names:
            return name
    # Before the ranks start, the log that grew last shows the present step: build or preparation.
    if run.state in WAITING and others:
        return max(others, key=lambda lane: lane.written_ms or 0).name
    if run.state == RunState.RUNNING and ranks:
        return ranks[0].name
    best = [lane for lane in lanes if lane.size] or lanes
    return best[0].name if best else ""


def last_line_of_log(tail: bytes) -> str:
    return log_lines.last_line(tail)[:300]


def _lane_view(lane: Lane, from_ms: int, title: str, nodes: Sequence[str]) -> LaneView:
    def seconds(moment_ms: int) -> float:
        return round((moment_ms - from_ms) / 1000, 3)

    # A process that has not started has no bar; one that runs has no end, and the page draws it to the
    # present.
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
    return LaneView(lane, title, node, last_line_of_log(lane.tail), bar, gaps)


def _title(lane: Lane, *, lonely: bool, mixed: bool) -> str:
    member = lane.member
    if member is None or lonely:
        return "Process"
    return f"Rank {member.rank} · {member.role}" if mixed else f"Rank {member.rank}"


def _node_of(name: str, nodes: Sequence[str]) -> str:
    """Returns the name of the node that wrote a log which belongs to no rank; "" if the attempt has one
    node."""
    if len(nodes) < 2:
        return ""
    match = OF_NODE.fullmatch(name)
    index = int(match[1]) if match else 0
    return nodes[index] if index < len(nodes) else f"node {index}"


def _nodes(run: Run, attempt: int) -> Sequence[str]:
    """Returns the names of the attempt's nodes in the order of node ranks."""
    placement: Iterable[JsonObject] = (
        Attempt.objects.filter(run=run, number=attempt).values_list("placement", flat=True).first() or ()
    )
    return [str(node["name"]) for node in placement]
