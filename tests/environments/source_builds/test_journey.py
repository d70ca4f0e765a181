"""From a package without a wheel to runs on two nodes: a real hub with its worker and agents, a real uv and
compiler."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.environments.package_index import PackageIndex
from tests.environments.source_builds.git_server import GitServer
from tests.environments.source_builds.source_packages import make_source, source_files
from tests.hub import Hub, eventually
from tests.node.processes import agent_process
from tests.runs import log, submit, wait_for
from trainhub_launch.log_names import ENVIRONMENT_LOG

pytestmark = pytest.mark.slow
# Modules of the run's own source: beside its script, and in a folder that PYTHONPATH names.
OWN = {"beside.py": "WORD = 'beside'\n", "src/inner/__init__.py": "WORD = 'inner'\n"}
USE_REPOSITORY = "import beside, gitted, inner\nprint('answer', gitted.answer(), beside.WORD, inner.WORD)\n"
USE = "import compiled\nprint('answer', compiled.answer(), compiled.__file__)\n"
ADDRESS = "/api/v1/environments/"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageIndex]:
    with PackageIndex(tmp_path_factory.mktemp("index")).serving() as served:
        served.add("base", "1.0")
        yield served


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, index: PackageIndex) -> Iterator[Hub]:
    file = tmp_path_factory.mktemp("pip") / "pip.conf"
    file.write_text(f"[global]\nindex-url = {index.url}\n")
    cache = str(tmp_path_factory.mktemp("cache"))
    pip = {"PIP_CONFIG_FILE": str(file), "PIP_FIND_LINKS": ""}
    hub = Hub(tmp_path_factory.mktemp("environments"), TRAINHUB_NODE_CACHE=cache, **pip)
    hub.is_recorded = True
    hub.start()
    try:
        yield hub
    finally:
        hub.cancel_all()
        hub.stop()


def ended_version(hub: Hub, name: str, *requirements: str) -> dict[str, Any]:
    with hub.client() as client:
        body = {"name": name, "kind": "pip", "requirements": list(requirements)}
        answer = client.post(ADDRESS, json=body)
        assert answer.status_code == 201, answer.text
        address = f"{ADDRESS}{name}/versions/{answer.json()['version']}/"

        def ended() -> dict[str, Any] | None:
            version = client.get(address).raise_for_status().json()
            return dict(version) if version["state"] not in ("resolving", "building") else None

        return eventually(ended, 120, "the version is locked")


def output(hub: Hub, run: str) -> str:
    wait_for(hub, run, "Completed", seconds=180)
    return log(hub, run).decode()


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        pytest.param(
            "broken",
            {"answer": "nothing"},
            "undeclared (first use in this function)",
            marks=pytest.mark.long,
        ),
        ("greedy", {"needs": "absent"}, "No index has a package absent"),
    ],
)
def test_what_cannot_be_built_says_why(
    hub: Hub, index: PackageIndex, name: str, fields: dict[str, str], words: str
) -> None:
    make_source(index.folder, name, **fields)
    version = ended_version(hub, name, name, f"--no-binary {name}")
    assert version["state"] == "failed"
    assert words in version["failure"]


def test_a_repository_is_built_once_at_the_commit_that_a_branch_names(
    hub: Hub, index: PackageIndex, tmp_path: Path
) -> None:
    with GitServer(tmp_path).serving() as git:
        line = f"gitted @ git+{git.url('gitted')}@main"
        commits = [git.commit("gitted", source_files("gitted", answer="1", needs="base"))]
        locks = [ended_version(hub, "from-git", line)]
        commits.append(git.commit("gitted", source_files("gitted", answer="2", needs="base")))
        locks.append(ended_version(hub, "from-git", line))
    # Without the server: nodes get what they need from the hub.
    for number, (commit, version) in enumerate(zip(commits, locks, strict=True), start=1):
        assert version["state"] == "locked", version["failure"]
        assert f"# from git+{git.url('gitted')}@{commit}" in version["lock"]
        run = submit(
            hub,
            USE_REPOSITORY,
            OWN,
            environment={"name": "from-git", "version": str(number)},
            environment_variables={"PYTHONPATH": "src"},
        )
        assert f"answer {number} beside inner" in output(hub, run)


def test_one_node_compiles_and_another_without_a_compiler_installs(
    hub: Hub, index: PackageIndex, tmp_path: Path
) -> None:
    """The last test here, because the hub may order builds on the second node for a while after its end."""
    make_source(index.folder, "compiled", needs="base")
    refused = ended_version(hub, "refused", "compiled")
    assert refused["state"] == "failed"
    assert "with the line --no-binary compiled" in refused["failure"]

    version = ended_version(hub, "own", "compiled", "--no-binary compiled")
    assert version["state"] == "locked", version["failure"]
    assert re.search(r"built on \S+ with glibc 2\.\d+ from", version["lock"])
    assert "answer 42 " in output(hub, submit(hub, USE, environment={"name": "own"}))

    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "env", "mount", "unshare"):
        path = shutil.which(name)
        if path:
            (programs / name).symlink_to(path)
    env = {
        "PATH": str(programs),
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
        run = submit(hub, USE, environment={"name": "own"}, resources={"cluster": "far"})
        assert "answer 42 " in output(hub, run)
        assert "uv pip install" in log(hub, run, ENVIRONMENT_LOG).decode()

    # The same again is not compiled again.
    again = ended_version(hub, "other", "compiled==1.0", "--no-binary compiled")
    with hub.client() as client:
        assert client.get(f"{ADDRESS}other/versions/1/").json()["lock"] == version["lock"]
    assert again["state"] == "locked"
