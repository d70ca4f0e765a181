"""Names the tests that passed only at their second try: `--reruns` must not hide such a fault."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

TITLE = "FLAKY"


def needed_a_second_try(
    rerun: Iterable[pytest.TestReport], failed: Iterable[pytest.TestReport]
) -> dict[str, str]:
    """The last line of the first failure, by test. A test that failed at every try is a plain failure."""
    hopeless = {report.nodeid for report in failed}
    tests: dict[str, str] = {}
    for report in rerun:
        if report.nodeid not in hopeless:
            lines = report.longreprtext.strip().splitlines()
            tests.setdefault(report.nodeid, f"{report.when}: {lines[-1].strip()}" if lines else report.when)
    return tests


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if not config.getoption("reruns", None):
        return
    stats = terminalreporter.stats
    tests = needed_a_second_try(stats.get("rerun", []), [*stats.get("failed", []), *stats.get("error", [])])
    if not tests:
        terminalreporter.write_line(f"{TITLE}: no test needed a second try")
        return
    noun = "test" if len(tests) == 1 else "tests"
    terminalreporter.section(
        f"{TITLE}: {len(tests)} {noun} needed a second try", sep="=", red=True, bold=True
    )
    for nodeid, failure in sorted(tests.items()):
        terminalreporter.write_line(f"{nodeid}  ({failure})", red=True)
