"""The Debian package of a node, in a container of Debian without anything else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import PROJECT, Hub, eventually
from tests.releases import outer_node, podman
from tests.releases.installed import EPOCH
from tests.releases.podman import Podman

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="debootstrap needs root"),
]
NAME = f"trainhub-node-test-{os.getpid()}"
DATA = "/var/lib/trainhub-node"


def build(to: Path) -> Path:
    command = [sys.executable, f"{PROJECT}/packaging/build_deb.py", str(to)]
    variables = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("deb"))


@pytest.fixture(scope="module")
def machine(package: Path) -> Iterator[Podman]:
    """With a container of the name NAME, which has the package."""
    engine = podman.prepared()
    engine(
        "run",
        "-d",
        "--init",
        "--name",
        NAME,
        "-v",
        f"{package}:/node.deb:ro",
        podman.BASE,
        "sleep",
        "infinity",
    )
    try:
        engine("exec", NAME, "dpkg", "-i", "/node.deb")
        yield engine
    finally:
        engine("rm", "-f", "-t", "1", NAME, check=False)


def test_two_builds_have_the_same_bytes(package: Path, tmp_path: Path) -> None:
    assert build(tmp_path).read_bytes() == package.read_bytes()


def test_lintian_finds_no_error(package: Path) -> None:
    # Of others: what their wheels contain is built as their authors do it.
    others = "embedded-library,unstripped-binary-or-object,statically-linked-binary"
    # Whoever makes a release has a mail address.
    others += ",bogus-mail-host,bogus-mail-host-in-debian-changelog"
    command = ["lintian", "--fail-on", "error", "--suppress-tags", others, "--allow-root", str(package)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout


def test_its_unit_is_correct(machine: Podman, tmp_path: Path) -> None:
    text = machine("exec", NAME, "cat", "/lib/systemd/system/trainhub-node.service").stdout
    assert "KillMode=process" in text
    assert f"ConditionPathExists={DATA}/node.json" in text
    unit = tmp_path / "trainhub-node.service"
    unit.write_text(text.replace("/usr/bin/trainhub-node", "/bin/true"))
    subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], check=True)


def test_it_joins_a_hub_takes_a_run_and_keeps_its_data_until_purged(machine: Podman, own_hub: Hub) -> None:
    own_hub.settings["LOCAL_NODE"] = "0"
    own_hub.start()
    token = next(
        word for word in own_hub.manage("node", "token", "deb").stdout.split() if word.startswith("thj_")
    )
    machine("exec", NAME, "trainhub-node", "join", own_hub.url, "--token", token)
    machine("exec", "-d", NAME, "sh", "-c", "echo $$ >/agent.pid; exec trainhub-node run >/agent.log 2>&1")
    with outer_node.client(own_hub.url, own_hub.owner_token()) as client:
        assert outer_node.complete_a_run(client, "print('from a package')") == b"from a package\n"
    machine("exec", NAME, "sh", "-c", "kill $(cat /agent.pid)")

    machine("exec", NAME, "dpkg", "--remove", "trainhub-node")
    assert "node.json" in machine("exec", NAME, "ls", DATA).stdout
    assert "attempts" in machine("exec", NAME, "ls", DATA).stdout
    assert machine("exec", NAME, "ls", "/usr/lib/trainhub-node", check=False).returncode != 0
    eventually(
        lambda: machine("exec", NAME, "dpkg", "--purge", "trainhub-node", check=False).returncode == 0, 30
    )
    assert machine("exec", NAME, "ls", DATA, check=False).returncode != 0
