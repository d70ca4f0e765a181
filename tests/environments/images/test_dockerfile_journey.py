"""An environment of a Dockerfile, from the API to runs in the image, with a real hub, worker, agent, registry
and podman: the node builds it, the hub keeps it, and nodes pull it from the hub."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.environments.images.container_images import make_image
from tests.environments.images.image_registry import LOGIN, PASSWORD, USER, ImageRegistry
from tests.environments.test_journey import ADDRESS, described, log_of, output
from tests.hub import Hub, eventually
from tests.node.containers.images import NAME, Podman, has_podman, make_root, private_podman
from tests.node.processes import remaining_processes
from tests.runs import submit
from trainhub_node.environments.making.build_namespaces import FIRST_UID

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_podman(), reason="needs root, podman and catatonit"),
]
SCRIPT = "import os\nprint(os.environ['GREETING'], os.environ['ADDED'], os.listdir('/opt'), flush=True)\n"


@pytest.fixture(scope="module")
def base(registry: ImageRegistry, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The reference of a base image, which is only in the registry."""
    root = make_root(tmp_path_factory.mktemp("root"))
    reference = f"{registry.host}/team/base:1"
    with private_podman(tmp_path_factory.mktemp("author")) as podman:
        podman.make_image(root)
        podman("push", "--quiet", "--tls-verify=false", f"--creds={USER}:{PASSWORD}", NAME, reference)
    return reference


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, podman: Podman, registry: ImageRegistry) -> Iterator[Hub]:
    folder = tmp_path_factory.mktemp("dockerfiles")
    registries = folder / "registries.conf"
    registries.write_text(f'[[registry]]\nlocation = "{registry.host}"\ninsecure = true\n')
    hub = Hub(
        folder / "hub",
        TRAINHUB_NODE_CONTAINERS="podman",
        TRAINHUB_NODE_CACHE=str(folder / "cache"),
        CONTAINERS_REGISTRIES_CONF=str(registries),
        **podman.variables,
    )
    hub.data_dir.mkdir()
    hub.is_recorded = True
    hub.start()
    with hub.client() as client:
        for name, value in (("REGISTRY", LOGIN), ("WRONG", f"{USER}:wrong")):
            secret = {"value": value, "scope": "workspace"}
            client.put(f"/api/v1/secrets/{name}/", json=secret).raise_for_status()
    try:
        yield hub
    finally:
        hub.cancel_all()
        hub.stop()


def made(hub: Hub, name: str, dockerfile: str, login: str = "REGISTRY") -> dict[str, Any]:
    """The version as the API shows it, once the hub has passed it on to a node. `login`: the name of the
    secret with that of the registry."""
    body = {"name": name, "kind": "dockerfile", "dockerfile": dockerfile, "registry_secret": login}
    with hub.client() as client:
        eventually(
            lambda: "image-builds" in client.get("/api/v1/nodes/").json()[0]["capabilities"], 60, "the trial"
        )
    return described(hub, body)


def ended_version(hub: Hub, name: str) -> dict[str, Any]:
    def reached() -> dict[str, Any] | None:
        with hub.client() as client:
            body = dict(client.get(f"{ADDRESS}{name}/versions/1/").raise_for_status().json())
        return body if body["state"] in ("locked", "failed") else None

    return eventually(reached, 120, "the version is locked or has failed")


def only_build(hub: Hub, name: str, *states: str) -> dict[str, Any]:
    """The only build of the version, once it has one of the states."""

    def reached() -> dict[str, Any] | None:
        with hub.client() as client:
            builds = client.get(f"{ADDRESS}{name}/versions/1/builds/").raise_for_status().json()
        return dict(builds[0]) if len(builds) == 1 and builds[0]["state"] in states else None

    return eventually(reached, 120, f"the build is {states}")


def leftovers(hub: Hub, build: str) -> list[str]:
    """What is left of a build: mounts, processes in its namespaces, podman's folder."""
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if build in line]
    processes = subprocess.run(["pgrep", "-f", build], capture_output=True, text=True, check=False)
    folders = Path("/run").glob(f"trainhub-build-{build[:20]}")
    return [*mounts, *processes.stdout.split(), *map(str, (*folders, *remaining_processes((build, 1))))]


def _has_password(path: Path) -> bool:
    content = path.read_bytes()
    return any(text in content for text in (PASSWORD.encode(), base64.b64encode(LOGIN.encode())))


def sleeping() -> list[str]:
    """The processes of the RUN line that only ends when it is killed."""
    return subprocess.run(
        ["pgrep", "-f", "^sleep 4321$"], capture_output=True, text=True, check=False
    ).stdout.split()


def is_no_account(pid: str) -> bool:
    """Whether the process has only ids that belong to no account of the machine, also as root of its
    container."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    ids = {int(word) for line in lines if line.startswith(("Uid:", "Gid:")) for word in line.split()[1:]}
    return ids == {FIRST_UID}


def test_a_dockerfile_is_built_on_a_node_and_pulled_from_the_hub(
    hub: Hub, base: str, registry: ImageRegistry, podman: Podman
) -> None:
    lines = (f"FROM {base}", "ENV ADDED=by-the-dockerfile", "RUN echo made > /opt/built", "CMD /nothing", "")
    assert made(hub, "built", "\n".join(lines))["state"] in ("building", "locked")
    version = ended_version(hub, "built")
    assert version["state"] == "locked", version["failure"]
    build = only_build(hub, "built", "built")
    assert build["purpose"] == "make"
    text = log_of(hub, build)
    assert "STEP 3/4: RUN echo made > /opt/built" in text
    logged = [path for path in hub.data_dir.rglob("*") if path.is_file() and _has_password(path)]
    assert ("thu_" in text, logged) == (False, [])
    with hub.client() as client:
        uses = client.get("/api/v1/secrets/REGISTRY/").raise_for_status().json()["uses"]
    assert [(use["subject"], bool(use["node"])) for use in uses] == [("built 1", True), ("built 1", False)]
    assert leftovers(hub, build["id"]) == []
    # Nodes pull it from the hub, which needs no registry for that.
    words = output(hub, submit(hub, SCRIPT, environment={"name": "built"}))
    assert words.strip() == "from the image by-the-dockerfile ['built']"
    # Another engine, which has nothing of it.
    eventually(lambda: podman.containers() == [], 30, "the container of the run is removed")
    podman("image", "rm", "--all", "--force")
    assert "by-the-dockerfile" in output(hub, submit(hub, SCRIPT, environment={"name": "built"}))


# What tests/environments/test_journey.py tries with packages.
@pytest.mark.long
def test_a_failed_a_canceled_and_a_killed_build_leave_nothing(
    hub: Hub, base: str, registry: ImageRegistry
) -> None:
    made(hub, "failing", f"FROM {base}\nRUN echo no luck && exit 7\n")
    made(hub, "baseless", f"FROM {base}-missing\nRUN true\n")
    failure = ended_version(hub, "failing")["failure"]
    expected = "Step 2 of 2 ended with exit status 7: RUN echo no luck && exit 7. Its last line: no luck"
    assert failure == expected
    made(hub, "refused", f"FROM {base}\nRUN true\n", "WRONG")
    registry.push("team/arm", "1", make_image({"bin/sh": b"x"}, architecture="arm64"))
    made(hub, "foreign", f"FROM {registry.host}/team/arm:1\nRUN true\n")
    made(hub, "public", f"FROM {base}\nRUN true\n", "")
    failure = ended_version(hub, "baseless")["failure"]
    assert "-missing could not be pulled: its registry does not have it" in failure
    assert "refuses the login in the secret WRONG, which is" in ended_version(hub, "refused")["failure"]
    assert "A base image is for arm64, and the nodes need amd64" in ended_version(hub, "foreign")["failure"]
    assert "its registry wants a login, or has no such" in ended_version(hub, "public")["failure"]

    made(hub, "hanging", f"FROM {base}\nRUN exec sleep 4321\n")
    eventually(sleeping, 60, "the RUN line runs")
    build = only_build(hub, "hanging", "building")
    for pid in sleeping():
        assert is_no_account(pid)
        assert Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
    with hub.client() as client:
        client.post(f"{ADDRESS}hanging/versions/1/builds/{build['id']}/cancel/").raise_for_status()
    assert "canceled" in ended_version(hub, "hanging")["failure"]
    only_build(hub, "hanging", "canceled")
    assert (sleeping(), leftovers(hub, build["id"])) == ([], [])

    # Built again, and killed together with the agent: it is ordered once more, and that build goes on.
    with hub.client() as client:
        (build,) = client.post(f"{ADDRESS}hanging/versions/1/build/", json={}).raise_for_status().json()
        (killed,) = eventually(sleeping, 60, "the RUN line runs again")
        (record,) = hub.data_dir.rglob(f"{build['id']}-1/child.json")
        os.kill(json.loads(record.read_text())["pid"], signal.SIGKILL)
        hub.kill("agent")
        eventually(lambda: killed not in sleeping(), 30, "its process has ended")
        again = eventually(lambda: [pid for pid in sleeping() if pid != killed], 90, "it is ordered again")
        assert again
        builds = client.get(f"{ADDRESS}hanging/versions/1/builds/").raise_for_status().json()
        assert builds[0]["id"] != build["id"]
        assert [line for line in leftovers(hub, build["id"]) if not line.startswith("/run/")] == []
        client.post(f"{ADDRESS}hanging/versions/1/builds/{builds[0]['id']}/cancel/").raise_for_status()
    ended_version(hub, "hanging")
    eventually(lambda: not sleeping(), 30, "nothing of it runs")
