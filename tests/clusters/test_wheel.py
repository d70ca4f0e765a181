from __future__ import annotations

import time
from pathlib import Path

import pytest
from pytest_django import Settings

from clusters.enrolment.join_instructions import instructions
from clusters.enrolment.node_wheel import NODE_WHEEL, node_wheel
from tests.hub import eventually
from workspaces.own_wheels import own_wheel
from workspaces.own_wheels.own_wheel import build_after_start


@pytest.mark.slow
def test_the_package_for_nodes_is_built_before_anybody_asks_for_it(
    settings: Settings, tmp_path: Path
) -> None:
    settings.NODE_WHEELS = tmp_path / "wheels"
    (tmp_path / "wheels" / "of-an-older-version").mkdir(parents=True)
    (tmp_path / "wheels" / "a-file").touch()
    with build_after_start(NODE_WHEEL, after_seconds=0):
        built = eventually(
            lambda: next((tmp_path / "wheels").rglob("*.whl"), None), 110, "the package is built"
        )
    assert node_wheel() == built
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
        monkeypatch.setattr(own_wheel, "BUILDER", path)

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
        monkeypatch.setattr(own_wheel, "BUILD_TIMEOUT_S", 1)
        assert node_wheel() is None
        assert "The package for nodes was not built within 1 s" in caplog.text

    @pytest.mark.parametrize("address", ["http://localhost:8000", "https://hub.example"])
    def test_commands_need_no_insecure_http_on_this_machine_or_with_tls(
        self, address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Settings
    ) -> None:
        self.builder(monkeypatch, tmp_path, "raise SystemExit(1)")
        settings.API_URL = address
        assert instructions("thj_1").join == f"trainhub-node join {address} --token thj_1"


class TestManyRequests:
    """Anybody may ask for a wheel, so asking costs little."""

    @pytest.fixture
    def builds(self, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """The file in which the builder counts."""
        settings.NODE_WHEELS = tmp_path / "wheels"
        script = tmp_path / "build_wheel.py"
        count, fails = tmp_path / "builds", tmp_path / "fails"
        script.write_text(
            "import pathlib, sys\n"
            f"open({str(count)!r}, 'a').write('x')\n"
            f"assert not pathlib.Path({str(fails)!r}).exists()\n"
            "pathlib.Path(sys.argv[1], 'trainhub_node-1-py3-none-any.whl').touch()\n"
        )
        monkeypatch.setattr(own_wheel, "BUILDER", script)
        return count

    def test_the_sources_are_compared_once_in_a_while(
        self, builds: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wheel = node_wheel()
        assert wheel is not None
        # No file of the sources can be read now.
        monkeypatch.setattr(Path, "read_bytes", None)
        assert node_wheel() == wheel
        later = time.monotonic() + own_wheel.SOURCES_CURRENT_S
        monkeypatch.setattr(time, "monotonic", lambda: later)
        with pytest.raises(TypeError):
            node_wheel()

    def test_one_that_is_gone_is_built_again_at_once(self, builds: Path) -> None:
        wheel = node_wheel()
        assert wheel is not None
        wheel.unlink()
        assert node_wheel() == wheel
        assert builds.read_text() == "xx"

    def test_a_failed_build_is_tried_again_after_some_minutes(
        self, builds: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (builds.parent / "fails").touch()
        assert [node_wheel(), node_wheel()] == [None, None]
        assert builds.read_text() == "x"
        (builds.parent / "fails").unlink()
        later = time.monotonic() + own_wheel.FAILURE_CURRENT_S
        monkeypatch.setattr(time, "monotonic", lambda: later)
        assert node_wheel() is not None
        assert builds.read_text() == "xx"


def test_a_server_that_stops_at_once_builds_nothing(settings: Settings, tmp_path: Path) -> None:
    settings.NODE_WHEELS = tmp_path / "wheels"
    with build_after_start(NODE_WHEEL):
        pass
    assert not (tmp_path / "wheels").exists()
