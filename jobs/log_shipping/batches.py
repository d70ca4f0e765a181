"""Delivers the lines of one request, or finds out which of them the log system does not accept."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from jobs.log_shipping import progress, targets
from jobs.log_shipping.backlog import UnshippedLines
from jobs.log_shipping.line_reader import SourceLine
from jobs.log_shipping.log_requests import LinesRefused, LogConnection, TargetUnavailable
from jobs.log_shipping.models import LogTarget

log = logging.getLogger(__name__)
# A refused request is halved to find the lines that are refused. One of 5,000 takes 26 requests; what is
# still refused after so many is left out as it is.
MAX_REQUESTS = 64
# Halves wait for the next round after so long.
MAX_S = 25.0


class BatchDelivery:
    """One batch on its way. What is accepted is recorded at once, so that it is not sent again."""

    def __init__(self, target: LogTarget, connection: LogConnection, waiting: UnshippedLines) -> None:
        self._target = target
        self._connection = connection
        self._waiting = waiting
        self._is_notice_accepted = False

    def deliver(self, lines: Sequence[SourceLine]) -> None:
        """Sends the lines. Those that the log system will never accept are left out, and a line there says
        so. Raises TargetUnavailable and Overtaken; then the others come again."""
        deadline = time.monotonic() + MAX_S
        parts, requests = [lines], 0
        while parts:
            if time.monotonic() > deadline:
                raise TargetUnavailable("The log system refuses many lines, and answers slowly.")
            part = parts.pop()
            requests += 1
            try:
                drops, reason = self._connection.send(part)
            except LinesRefused as error:
                if len(part) > 1 and requests < MAX_REQUESTS:
                    middle = len(part) // 2
                    parts += [part[middle:], part[:middle]]
                else:
                    self._leave_out(part, error.message)
            else:
                self._settle(part, min(drops, len(part)), reason)

    def _leave_out(self, lines: Sequence[SourceLine], reason: str) -> None:
        """Goes on behind lines that are refused, if the log system takes others: where it takes none, not the
        lines are wrong, but the settings, and nothing may be lost for that."""
        if not self._is_notice_accepted:
            text = (
                f"[TrainHub] The log system refused lines of this log; the hub leaves them out. {reason}. "
                "The whole log is at the hub."
            )
            notice = SourceLine(lines[0].source, time.time_ns(), text, 0)
            try:
                self._connection.send([notice])
            except LinesRefused as error:
                raise TargetUnavailable(
                    f"{error.message}. It refuses every line, so check its settings and the kind."
                ) from error
            self._is_notice_accepted = True
        self._settle(lines, len(lines), reason)

    def _settle(self, lines: Sequence[SourceLine], refused: int, reason: str) -> None:
        progress.settle(self._target, self._waiting, lines, refused)
        if refused:
            first = lines[0].source
            log.warning(
                "%d of %d lines, the first of %s of run %d in %s, are refused by %s: %s",
                refused,
                len(lines),
                first.log,
                first.number,
                first.workspace,
                self._target,
                reason,
            )
            targets.record_refusal(self._target, reason)
