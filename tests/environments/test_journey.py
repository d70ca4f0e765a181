"""From requirements or a conda file to a run in exactly the locked packages: a real hub with its worker and
node, a real uv, rattler, pip, channel and index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.environments.conda_channel import CondaChannel
from tests.environments.package_index import PackageIndex
from tests.hub import Hub, eventually
from tests.runs import log, submit, told, wait_for

pytestmark = pytest.mark.slow
USE = "import sys, base, tinylib\nprint(tinylib.VERSION, base.VERSION, sys.version_info[1])\n"
ADDRESS = "/api/v1/environments/"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageIndex]:
    with PackageIndex(tmp_path_factory.mktemp("index")).serving() as served:
        served.add("base", "1.0")
        served.add("tinylib", "1.0", "base")
        yield served


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, index: PackageIndex) -> Iterator[Hub]:
    pip = {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": index.url, "PIP_FIND_LINKS": ""}
    hub = Hub(tmp_path_factory.mktemp("environments"), **pip)
    hub.is_recorded = True
    hub.start()
    try:
        yield hub
    finally:
        hub.cancel_all()
        hub.stop()


def made(hub: Hub, *requirements: str) -> dict[str, Any]:
    """The next version of `mine`, once it is locked or has failed."""
    return described(hub, {"name": "mine", "kind": "pip", "requirements": list(requirements)})


def described(hub: Hub, body: dict[str, Any]) -> dict[str, Any]:
    """The version that the body describes, once it is locked or has failed."""
    with hub.client() as client:
        answer = client.post(ADDRESS, json=body)
        assert answer.status_code == 201, answer.text
        address = f"{ADDRESS}{body['name']}/versions/{answer.json()['version']}/"

        def ended() -> dict[str, Any] | None:
            body = client.get(address).raise_for_status().json()
            return dict(body) if body["state"] != "resolving" else None

        return eventually(ended, 120, "the version is resolved")


def output(hub: Hub, run: str) -> str:
    wait_for(hub, run, "Completed", seconds=180)
    return log(hub, run).decode()


def test_a_run_has_exactly_the_locked_packages(hub: Hub, index: PackageIndex) -> None:
    first = made(hub, "tinylib")
    assert first["state"] == "locked", first["failure"]
    run = submit(hub, USE, environment={"name": "mine"})
    assert "1.0 1.0 " in output(hub, run)
    assert told(hub, run)["spec"]["environment"] == {"name": "mine", "version": "1"}

    # The index has something newer; the version does not change, the next one takes it.
    index.add("base", "2.0")
    again = submit(hub, USE, environment={"name": "mine"})
    assert "1.0 1.0 " in output(hub, again)
    assert made(hub, "tinylib", "base>=2")["state"] == "locked"
    newer = submit(hub, USE, environment={"name": "mine"})
    assert "1.0 2.0 " in output(hub, newer)
    with hub.client() as client:
        (build,) = client.get(f"{ADDRESS}mine/versions/2/").json()["builds"]
    assert build["build_s"] > 0


def test_a_conflict_is_named_and_cannot_be_used(hub: Hub, index: PackageIndex) -> None:
    index.add("picky", "1.0", "base<1")
    failed = made(hub, "picky", "base>=1")
    assert failed["state"] == "failed"
    assert "picky needs base<1" in failed["failure"]
    with hub.client() as client:
        spec = {
            "source": {"type": "example", "name": "hello"},
            "command": ["python", "-V"],
            "environment": {"name": "mine", "version": failed["version"]},
        }
        answer = client.post("/api/v1/runs/", json=spec)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "environment.version"


def test_a_run_in_a_conda_environment(hub: Hub, index: PackageIndex, tmp_path: Path) -> None:
    channel = CondaChannel(tmp_path / "channel")
    channel.add_python()
    channel.add_module("base", "1.0")
    channel.index()
    with channel.serving():
        # As Azure ML's users have it: the package of pip needs one that conda has, in another version.
        index.add("onconda", "1.0", "base")
        index.add("base", "3.0")
        file = {"channels": [channel.url], "dependencies": ["python=3.11", "base", {"pip": ["onconda"]}]}
        version = described(hub, {"name": "snake", "kind": "conda", "conda": file})
        assert version["state"] == "locked", version["failure"]
        use = "import sys, base, onconda\nprint(onconda.VERSION, base.VERSION, sys.prefix)\n"
        words = output(hub, submit(hub, use, environment={"name": "snake"})).split()
    assert words[:2] == ["1.0", "1.0"]
    assert "/environments/" in words[2]
