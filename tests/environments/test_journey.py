"""From requirements or a conda file to a run in exactly the locked packages: a real hub with its worker and
node, a real uv, rattler, pip, channel and index."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.environments.conda_channel import CondaChannel
from tests.environments.package_index import PackageIndex
from tests.hub import Hub, eventually
from tests.node.processes import agent_process, remaining_processes
from tests.runs import log, submit, told, wait_for
from trainhub_launch.log_names import ENVIRONMENT_LOG

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
    # In a file and not in a variable: an agent with such a variable prefers that index to the hub's.
    file = tmp_path_factory.mktemp("pip") / "pip.conf"
    file.write_text(f"[global]\nindex-url = {index.url}\n")
    pip = {"PIP_CONFIG_FILE": str(file), "PIP_FIND_LINKS": ""}
    cache = str(tmp_path_factory.mktemp("cache"))
    hub = Hub(tmp_path_factory.mktemp("environments"), TRAINHUB_NODE_CACHE=cache, **pip)
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


def ordered(hub: Hub, number: str, name: str = "mine") -> dict[str, Any]:
    """The only build of this version, just ordered."""
    with hub.client() as client:
        answer = client.post(f"{ADDRESS}{name}/versions/{number}/build/", json={})
        assert answer.status_code == 202, answer.text
        (build,) = answer.json()
    return dict(build)


def looked_up(hub: Hub, build: dict[str, Any]) -> dict[str, Any]:
    with hub.client() as client:
        address = f"{ADDRESS}{build['name']}/versions/{build['version']}/builds/{build['id']}/"
        return dict(client.get(address).raise_for_status().json())


def log_of(hub: Hub, build: dict[str, Any]) -> str:
    with hub.client() as client:
        return client.get(build["log"]).raise_for_status().text


def ended(hub: Hub, build: dict[str, Any]) -> dict[str, Any]:
    def finished() -> dict[str, Any] | None:
        body = looked_up(hub, build)
        return body if body["state"] not in ("queued", "building") else None

    return eventually(finished, 120, "the build has ended")


def hanging(hub: Hub, index: PackageIndex, number: str) -> dict[str, Any]:
    """A build that waits for an index that has stopped answering: the hub has not fetched the wheels yet."""
    index.is_silent = True
    build = ordered(hub, number)
    eventually(lambda: "The hub fetches the packages" in log_of(hub, build), 60, "the hub asks the index")
    return build


def test_a_build_makes_it_before_a_run_needs_it(hub: Hub, index: PackageIndex) -> None:
    number = made(hub, "tinylib", "base<9")["version"]
    build = ended(hub, ordered(hub, number))
    assert (build["state"], build["reason"], build["created_by"]) == ("built", "", "admin")
    assert "uv pip install" in log_of(hub, build)
    with hub.client() as client:
        (on_node,) = client.get(f"{ADDRESS}mine/versions/{number}/").json()["builds"]
    assert (on_node["state"], on_node["build"], on_node["build_s"] > 0) == ("ready", build["id"], True)
    index.is_silent = True
    try:
        output(hub, submit(hub, USE, environment={"name": "mine", "version": number}))
    finally:
        index.is_silent = False


def test_a_canceled_and_a_killed_build_leave_nothing_and_the_next_run_builds(
    hub: Hub, index: PackageIndex
) -> None:
    index.add("late", "1.0")
    number = made(hub, "tinylib", "late")["version"]
    try:
        build = hanging(hub, index, number)
        # Somebody else gets the same one.
        assert ordered(hub, number)["id"] == build["id"]
        with hub.client() as client:
            address = f"{ADDRESS}mine/versions/{number}/builds/{build['id']}/cancel/"
            assert client.post(address).status_code == 202
            assert ended(hub, build)["state"] == "canceled"
            assert client.post(address).status_code == 409
        assert not remaining_processes((build["id"], 1))

        build = hanging(hub, index, number)
        (record,) = hub.data_dir.rglob(f"{build['id']}-1/child.json")
        os.kill(json.loads(record.read_text())["pid"], signal.SIGKILL)
        hub.kill("agent")
        body = ended(hub, build)
    finally:
        index.is_silent = False
    assert (body["state"], "was killed" in body["reason"]) == ("failed", True)
    assert not remaining_processes((build["id"], 1))
    with hub.client() as client:
        # A new agent looks for its interpreters first.
        eventually(lambda: client.get("/api/v1/environments/").json()[-1]["version"], what="interpreters")
        output(hub, submit(hub, USE, environment={"name": "mine", "version": number}))
        (on_node,) = client.get(f"{ADDRESS}mine/versions/{number}/").json()["builds"]
    assert on_node["state"] == "ready"


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


def test_a_second_node_needs_only_the_hub(hub: Hub, index: PackageIndex, tmp_path: Path) -> None:
    """The last test here, because it ends the index."""
    first = submit(hub, USE, environment={"name": "mine", "version": "1"})
    assert "1.0 1.0 " in output(hub, first)
    index.stop()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PIP_CONFIG_FILE": "/dev/null",
        "TRAINHUB_NODE_NAME": "far",
        "TRAINHUB_NODE_DIR": str(tmp_path / "node"),
    }
    token = hub.manage("node", "token", "far", "--cluster", "far").stdout.split()[0]
    join = [sys.executable, "-m", "trainhub_node", "join", hub.url, "--token", token]
    subprocess.run(join, env=env, check=True, capture_output=True, timeout=60)
    with agent_process(env), hub.client() as client:
        eventually(lambda: client.get("/api/v1/nodes/far/").json().get("interpreters"), 60)
        run = submit(hub, USE, environment={"name": "mine", "version": "1"}, resources={"cluster": "far"})
        assert "1.0 1.0 " in output(hub, run)
        built = log(hub, run, ENVIRONMENT_LOG).decode()
    assert "uv pip install" in built
    assert "thk_" not in built
