"""Names the tests that passed only at their second try, and shows the first failure of those that failed
twice: `--reruns` must hide neither. What each first try said has a line of its own, which .ci/run repeats
at its end: that is left of an output that somebody has cut."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

TITLE, FIRST = "FLAKY", "FIRST TRY"
LONGEST_REASON = 300


def needed_a_second_try(
    rerun: Iterable[pytest.TestReport], failed: Iterable[pytest.TestReport]
) -> dict[str, str]:
    """Why the first try failed, by test. A test that failed at every try is a plain failure."""
    hopeless = {report.nodeid for report in failed}
    tests: dict[str, str] = {}
    for report in rerun:
        if report.nodeid not in hopeless:
            tests.setdefault(report.nodeid, in_short(report))
    return tests


def in_short(report: pytest.TestReport) -> str:
    """When, why and where it failed, in one line."""
    lines = report.longreprtext.strip().splitlines()
    if not lines:
        return report.when
    reason = next((line[1:].strip() for line in lines if line.startswith("E ")), "")
    return ": ".join(filter(None, (report.when, reason[:LONGEST_REASON], lines[-1].strip())))


def other_first_failures(
    rerun: Iterable[pytest.TestReport], failed: Iterable[pytest.TestReport]
) -> dict[str, str]:
    """The text of the first failure, by test, of those that failed otherwise at their last try, which often
    shows only what the first try left behind."""
    last = {report.nodeid: _reason(report) for report in failed}
    return {
        report.nodeid: report.longreprtext
        for report in rerun
        if report.nodeid in last and _reason(report) != last[report.nodeid]
    }


def _reason(report: pytest.TestReport) -> str:
    """Where and why it failed, which pytest marks with an E, without the values of variables."""
    return "\n".join(line for line in report.longreprtext.splitlines() if line.startswith(("E ", ">")))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if not config.getoption("reruns", None):
        return
    stats = terminalreporter.stats
    rerun, failed = stats.get("rerun", []), [*stats.get("failed", []), *stats.get("error", [])]
    for nodeid, text in sorted(other_first_failures(rerun, failed).items()):
        terminalreporter.section(f"First try of {nodeid}", sep="_", red=True, bold=True)
        terminalreporter.write_line(text)
    for report in sorted(rerun, key=lambda report: report.nodeid):
        terminalreporter.write_line(f"{FIRST} {report.nodeid}  ({in_short(report)})")
    tests = needed_a_second_try(rerun, failed)
    if not tests:
        terminalreporter.write_line(f"{TITLE}: no test needed a second try")
        return
    noun = "test" if len(tests) == 1 else "tests"
    terminalreporter.section(
        f"{TITLE}: {len(tests)} {noun} needed a second try", sep="=", red=True, bold=True
    )
    for nodeid, failure in sorted(tests.items()):
        terminalreporter.write_line(f"{nodeid}  ({failure})", red=True)
