"""Ends the hubs that slow tests share once a process comes to tests that need none: several idle hubs beside
them take a quarter of a core. Whoever asks for one later gets a new one.

A plugin of its own (see pyproject.toml): pytest asks no conftest.py of a folder about fixtures of the
session."""

from __future__ import annotations

import pytest

# Fixture of the session -> the marks of tests beside which it stays. Those that depend on it end as well.
MARKS = {
    "hosts": frozenset({"hosts"}),
    "hub": frozenset({"slow", "hosts", "browser"}),
    "runs": frozenset({"slow", "hosts", "browser"}),
    "slurm": frozenset({"slurm"}),
}
_fixtures: list[tuple[pytest.FixtureDef[object], pytest.FixtureRequest]] = []


def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest) -> None:
    if fixturedef.argname in MARKS and fixturedef.scope == "session":
        _fixtures.append((fixturedef, request))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    if nextitem is None:
        return
    marks = {mark.name for mark in nextitem.iter_markers()}
    for definition, request in reversed(_fixtures):
        if not marks & MARKS[definition.argname]:
            definition.finish(request)  # type: ignore[arg-type]  # its class is not public
    _fixtures[:] = [pair for pair in _fixtures if marks & MARKS[pair[0].argname]]
