"""How pages and tables write states, sizes, times and runs.

static/js/formats.js writes sizes and times in the browser in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from jobs.models import Member, Run
from jobs.outcomes import signal_name
from jobs.states import RunKind
from trainhub_launch.frameworks import stored_summary


@dataclass(frozen=True)
class StatusStyle:
    """How pages show a state: `tone` names its colour, `icon` a heroicon, `word` is its text."""

    tone: str
    icon: str
    word: str


STATUS_STYLES: dict[str, StatusStyle] = {
    "Queued": StatusStyle("waiting", "clock", "Queued"),
    "Provisioning": StatusStyle("waiting", "server-stack", "Provisioning"),
    "Preparing": StatusStyle("preparing", "wrench", "Preparing"),
    "Running": StatusStyle("running", "play", "Running"),
    "Finalizing": StatusStyle("finalizing", "arrow-up-tray", "Finalizing"),
    "CancelRequested": StatusStyle("canceled", "stop-circle", "Canceling"),
    "Completed": StatusStyle("completed", "check-circle", "Completed"),
    "Failed": StatusStyle("failed", "x-circle", "Failed"),
    "Canceled": StatusStyle("canceled", "no-symbol", "Canceled"),
    "Waiting": StatusStyle("waiting", "clock", "Waiting"),
    "Succeeded": StatusStyle("completed", "check-circle", "Succeeded"),
    "Stopped": StatusStyle("canceled", "stop-circle", "Stopped"),
    "Lost": StatusStyle("failed", "signal-slash", "Lost"),
    "ready": StatusStyle("completed", "check-circle", "Ready"),
    "unreachable": StatusStyle("preparing", "exclamation-triangle", "Unreachable"),
    "lost": StatusStyle("failed", "signal-slash", "Lost"),
    "new": StatusStyle("waiting", "clock", "Never reported"),
    "unhealthy": StatusStyle("failed", "exclamation-triangle", "Unhealthy"),
    "revoked": StatusStyle("canceled", "no-symbol", "Revoked"),
    "error": StatusStyle("failed", "exclamation-circle", "Error"),
    "warning": StatusStyle("preparing", "exclamation-triangle", "Warning"),
    "critical": StatusStyle("failed", "fire", "Critical"),
    "resolving": StatusStyle("running", "arrow-path", "Resolving"),
    "listing": StatusStyle("running", "arrow-path", "Listing"),
    "uploading": StatusStyle("running", "arrow-up-tray", "Uploading"),
    "locked": StatusStyle("completed", "lock-closed", "Locked"),
    "failed": StatusStyle("failed", "x-circle", "Failed"),
    "queued": StatusStyle("waiting", "clock", "Queued"),
    "building": StatusStyle("running", "arrow-path", "Building"),
    "built": StatusStyle("completed", "check-circle", "Built"),
    "canceled": StatusStyle("canceled", "no-symbol", "Canceled"),
    "waiting": StatusStyle("waiting", "clock", "Waiting"),
    "testing": StatusStyle("running", "arrow-path", "Testing"),
    "ok": StatusStyle("completed", "check-circle", "OK"),
    "skipped": StatusStyle("waiting", "minus-circle", "Not tested"),
    "hint": StatusStyle("waiting", "light-bulb", "Hint"),
}


def status_style(state: str) -> StatusStyle:
    return STATUS_STYLES.get(str(state)) or StatusStyle("waiting", "question-mark-circle", str(state))


def bytesize(count: float | None) -> str:
    if count is None:
        return ""
    if count < 1024:
        return f"{int(count)} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024:
            return f"{count:.{1 if count < 10 else 0}f} {unit}"
    return f"{count / 1024:.1f} TiB"


def duration(span: timedelta | float | None) -> str:
    """Returns a duration with at most two units: `42 s`, `3 min 4 s`, `5 h 2 min`, `3 d 4 h`. Below one
    second it has one decimal; None gives ""."""
    if span is None:
        return ""
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)
    if 0 < seconds < 1:
        return f"{seconds:.1f} s" if seconds >= 0.1 else "<0.1 s"
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes} min {whole % 60} s"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def framework_text(run: Run) -> str:
    """Returns how the run is distributed: the framework and its counts, such as `PyTorch, 2 × 4`."""
    if run.kind == RunKind.EXTERNAL:
        return "External"
    return stored_summary(run.spec)


def exit_text(member: Member) -> str:
    """Returns the exit code (`0`, `3`) or the name of the signal that ended the process; "" while it runs."""
    if member.signal:
        return signal_name(member.signal)
    return "" if member.exit_code is None else str(member.exit_code)
