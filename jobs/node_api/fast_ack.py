"""Answers a report that contains only measurements from the node's session, without a query, a thread or
waiting.

Thousands of such reports arrive each second. All other reports take the full way (`jobs.node_api.reports`),
which repeats every check of this one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from clusters.node_reports import heartbeat
from jobs.node_api.assignment import Assignment, Key
from jobs.node_api.node_session import NodeSession
from jobs.node_api.report_ack import complete_ack, report_interval_s
from trainhub_launch.report import Ack, Report
from trainhub_launch.states import Phase
from workspaces import background_loop


def try_fast_ack(session: NodeSession, report: Report, now: datetime) -> Ack | None:
    """Ingests the report and returns its answer, or returns None and changes nothing if it must take the full
    way.

    Raises WireError as `reports.ingest` does."""
    if not _brings_only_numbers(session, report) or not background_loop.is_running():
        return None
    assignments = session.assignments.recent()
    if assignments is None or not _is_quiet(report, assignments):
        return None
    node = session.node
    offset_before_s = node.clock_offset_s
    if session.clock.observe(node, report.sent_at, now):
        # A change belongs into the node's journal: the full way observes it again.
        # The node object is shared by all reports of this node, so what `observe` has changed is put back.
        node.clock_offset_s = offset_before_s
        return None
    session.late_logs.observe(node, report, assignments, now)
    has_runs = bool(assignments)
    if not heartbeat.apply_numbers(node, report.heartbeat, now, agent=report.agent, has_runs=has_runs):
        return None
    return complete_ack(node, report, Ack(interval_s=report_interval_s(node, assignments)), now)


def _brings_only_numbers(session: NodeSession, report: Report) -> bool:
    return (
        not report.logs
        and not report.events
        and report.heartbeat is not None
        and session.is_punctual(report)
        and all(fact.phase is not Phase.DONE and session.has_accepted(fact) for fact in report.attempts)
    )


def _is_quiet(report: Report, assignments: Mapping[Key, Assignment]) -> bool:
    """Returns whether the node runs exactly the attempts that it should, and none of them needs an action."""
    reported = {(fact.run, fact.attempt) for fact in report.attempts} | set(report.living)
    return assignments.keys() == reported and not any(
        assignment.claimed_at is None
        or assignment.phase == Phase.DONE
        or assignment.to_start
        or assignment.needs_daemon
        or assignment.checkpoints
        or assignment.stop() is not None
        for assignment in assignments.values()
    )
