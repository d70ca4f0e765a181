"""Everything in this folder has the marker `fuzz`, and a profile that says how long it looks: `short`, unless
TRAINHUB_FUZZ_PROFILE names `long`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).resolve().parent
CHECKS = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.function_scoped_fixture,
    HealthCheck.filter_too_much,
]
settings.register_profile(
    "short", max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=CHECKS
)
settings.register_profile("long", max_examples=10_000, deadline=None, suppress_health_check=CHECKS)
PROFILE = settings.get_profile(os.environ.get("TRAINHUB_FUZZ_PROFILE", "short"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("fuzz")
