"""The image of the hub: read-only, without root and without rights, and it stops as it should."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import PROJECT, eventually, free_port
from tests.releases import outer_node, podman
from tests.releases.podman import Podman

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="debootstrap needs root"),
]
IMAGE = "localhost/trainhub-hub:test"
NAME = f"trainhub-test-{os.getpid()}"
CONFINED = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "all", "--security-opt", "no-new-privileges")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Podman:
    engine = podman.prepared()
    release = tmp_path_factory.mktemp("release") / "dist"
    subprocess.run([sys.executable, f"{PROJECT}/packaging/make_release.py", str(release)], check=True)
    podman.hub_image(engine, release, IMAGE)
    return engine


@pytest.fixture(scope="module")
def address(engine: Podman) -> Iterator[str]:
    """Of a hub in a container."""
    port = free_port()
    binds = ("-e", f"BIND=127.0.0.1:{port}", "-e", f"BROKER_BIND=127.0.0.1:{free_port()}")
    engine("run", "-d", "--name", NAME, *CONFINED, "-v", f"{NAME}:/var/lib/trainhub", *binds, IMAGE)
    try:
        eventually(lambda: "Ctrl-C" in logs(engine), 180, "the container's hub is ready")
        yield f"https://127.0.0.1:{port}"
    finally:
        engine("rm", "-f", "-t", "60", NAME, check=False)
        engine("volume", "rm", NAME, check=False)


def logs(engine: Podman) -> str:
    done = engine("logs", NAME)
    return done.stdout + done.stderr


def hub(engine: Podman, *words: str) -> str:
    return engine("exec", NAME, "trainhub-hub", *words).stdout.strip()


def test_a_first_run_completes_on_a_node_outside(engine: Podman, address: str, tmp_path: Path) -> None:
    token = hub(engine, "token", "create", "admin").split()[-1]
    join_token = next(
        word for word in hub(engine, "node", "token", "outer").split() if word.startswith("thj_")
    )
    with (
        outer_node.client(address, token) as client,
        outer_node.joined(address, join_token, tmp_path / "node"),
    ):
        assert outer_node.complete_a_run(client, "print('from a container')") == b"from a container\n"


def test_it_is_healthy_and_not_root(engine: Podman, address: str) -> None:
    assert engine("healthcheck", "run", NAME).returncode == 0
    assert engine("exec", NAME, "id", "-u").stdout.strip() == "10001"
    assert engine("exec", NAME, "touch", "/opt/trainhub/x", check=False).returncode != 0


def test_orphans_are_collected(engine: Podman, address: str) -> None:
    engine("exec", "-d", NAME, "sh", "-c", "(sleep 0.2 &) ; exit")
    zombies = ("exec", NAME, "sh", "-c", "grep -l '^State:.Z' /proc/[0-9]*/status")
    eventually(lambda: engine(*zombies, check=False).stdout == "", 30)


def test_all_that_it_says_is_json(engine: Podman, address: str) -> None:
    assert all(json.loads(line)["message"] for line in logs(engine).splitlines() if line)


def test_no_layer_has_a_secret_or_what_a_build_leaves(engine: Podman, address: str) -> None:
    history = engine("history", "--no-trunc", "--format", "{{.CreatedBy}}", IMAGE).stdout
    variables = json.loads(engine("image", "inspect", IMAGE).stdout)[0]["Config"]["Env"]
    assert not [
        word for word in ("TOKEN", "PASSWORD", "SECRET", "PIP_INDEX") if word in history + str(variables)
    ]
    # What the first start makes is in the volume alone.
    places = "find / -xdev \\( -name secret-key -o -name '*.keyring' -o -name ca-key.pem -o -path /dist \\)"
    assert engine("run", "--rm", "--entrypoint", "sh", IMAGE, "-c", places, check=False).stdout == ""


def test_it_stops_cleanly_and_keeps_its_data(engine: Podman, address: str) -> None:
    engine("stop", "-t", "60", NAME)
    state = json.loads(engine("inspect", NAME).stdout)[0]["State"]
    assert state["ExitCode"] == 0
    assert "TrainHub has stopped" in logs(engine)
    engine("start", NAME)
    eventually(lambda: logs(engine).count("Ctrl-C") == 2, 180, "it starts again")
    assert logs(engine).count("first account is admin") == 1
