from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from clusters.enrolment import node_wheel
from tests.hub import eventually


@pytest.mark.slow
def test_the_package_for_nodes_is_built_before_anybody_asks_for_it(
    settings: Settings, tmp_path: Path
) -> None:
    settings.NODE_WHEELS = tmp_path / "wheels"
    with node_wheel.build_after_start(after_seconds=0):
        built = eventually(
            lambda: next((tmp_path / "wheels").rglob("*.whl"), None), 110, "the package is built"
        )
    assert node_wheel.node_wheel() == built


def test_a_server_that_stops_at_once_builds_nothing(settings: Settings, tmp_path: Path) -> None:
    settings.NODE_WHEELS = tmp_path / "wheels"
    with node_wheel.build_after_start():
        pass
    assert not (tmp_path / "wheels").exists()
