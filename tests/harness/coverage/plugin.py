"""Prints at the end of a test run how much of the product the tests have reached, if TRAINHUB_TEST_COVERAGE
names a folder, as in `make test`.

Loaded by `-p` in pyproject.toml: conftest.py imports the product, and only what is imported later is
recorded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness.coverage import recorder

REPORT = "unreached.txt"
_writers: list[Callable[[], None]] = []


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests() -> Iterator[None]:
    # A wrapper runs before pytest-django's hook, which imports the settings.
    folder = os.environ.get(recorder.FOLDER_VARIABLE)
    if folder:
        path = Path(folder).resolve()
        if "PYTEST_XDIST_WORKER" not in os.environ:
            path.mkdir(parents=True, exist_ok=True)
            # Only what an earlier run has written: the folder may be any.
            for file in (*path.glob(f"{recorder.PREFIX}*.json"), path / REPORT):
                file.unlink(missing_ok=True)
            # Processes of a hub run in another folder.
            os.environ[recorder.FOLDER_VARIABLE] = str(path)
        _writers.append(recorder.start(path))
    yield


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    # Before the summary, which does not wait for the processes of xdist to end.
    for write in _writers:
        write()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not os.environ.get(recorder.FOLDER_VARIABLE):
        return
    folder = Path(os.environ[recorder.FOLDER_VARIABLE])
    files = recorder.unreached(folder)
    report = folder / REPORT
    report.write_text(
        "".join(f"{name}: {' '.join(map(str, lines))}\n" for name, (_, lines) in files.items() if lines)
    )
    total = sum(count for count, _ in files.values())
    terminalreporter.write_line(
        f"COVERAGE: the tests reach {recorder.percent(files):.1f} % of {total:,} lines; "
        f"{report} lists the others"
    )
