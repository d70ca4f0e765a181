from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from clusters.enrolment import node_wheel
from clusters.enrolment.join_instructions import instructions
from tests.hub import eventually


@pytest.mark.slow
def test_the_package_for_nodes_is_built_before_anybody_asks_for_it(
    settings: Settings, tmp_path: Path
) -> None:
    settings.NODE_WHEELS = tmp_path / "wheels"
    (tmp_path / "wheels" / "of-an-older-version").mkdir(parents=True)
    (tmp_path / "wheels" / "a-file").touch()
    with node_wheel.build_after_start(after_seconds=0):
        built = eventually(
            lambda: next((tmp_path / "wheels").rglob("*.whl"), None), 110, "the package is built"
        )
    assert node_wheel.node_wheel() == built
    assert list((tmp_path / "wheels").iterdir()) == [built.parent]


class TestFailedBuild:
    """The hub cannot build the package; machines can still join with a package of their own."""

    @pytest.fixture(autouse=True)
    def _wheels(self, settings: Settings, tmp_path: Path) -> None:
        settings.NODE_WHEELS = tmp_path / "wheels"
        settings.API_URL = "http://hub.example:8000"

    def builder(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
        path = tmp_path / "build_wheel.py"
        path.write_text(script)
        monkeypatch.setattr(node_wheel, "BUILDER", path)

    def test_is_logged_with_its_output_and_the_commands_lack_the_installation(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        self.builder(monkeypatch, tmp_path, "raise SystemExit('setuptools is missing')")
        assert instructions("thj_1").steps == (
            "trainhub-node join http://hub.example:8000 --token thj_1 --insecure-http",
            "trainhub-node run",
        )
        assert "The package for nodes could not be built:\nsetuptools is missing" in caplog.text

    def test_that_takes_too_long_is_ended(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        self.builder(monkeypatch, tmp_path, "import time; time.sleep(600)")
        monkeypatch.setattr(node_wheel, "BUILD_TIMEOUT_S", 1)
        assert node_wheel.node_wheel() is None
        assert "The package for nodes was not built within 1 s" in caplog.text

    @pytest.mark.parametrize("address", ["http://localhost:8000", "https://hub.example"])
    def test_commands_need_no_insecure_http_on_this_machine_or_with_tls(
        self, address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Settings
    ) -> None:
        self.builder(monkeypatch, tmp_path, "raise SystemExit(1)")
        settings.API_URL = address
        assert instructions("thj_1").join == f"trainhub-node join {address} --token thj_1"


def test_a_server_that_stops_at_once_builds_nothing(settings: Settings, tmp_path: Path) -> None:
    settings.NODE_WHEELS = tmp_path / "wheels"
    with node_wheel.build_after_start():
        pass
    assert not (tmp_path / "wheels").exists()
