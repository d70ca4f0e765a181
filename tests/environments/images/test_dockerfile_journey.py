"""An environment of a Dockerfile, from the API to runs in the image, with a real hub, worker, agent, registry
and podman: the node builds it, the hub keeps it, and nodes pull it from the hub."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.environments.images.image_registry import LOGIN, PASSWORD, USER, ImageRegistry
from tests.environments.test_journey import ADDRESS, described, log_of, output
from tests.hub import Hub, eventually
from tests.node.containers.images import NAME, Podman, has_podman, make_root, private_podman
from tests.node.processes import remaining_processes
from tests.runs import submit

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_podman(), reason="needs root, podman and catatonit"),
]
SCRIPT = "import os\nprint(os.environ['GREETING'], os.environ['ADDED'], os.listdir('/opt'), flush=True)\n"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageRegistry]:
    served = ImageRegistry(tmp_path_factory.mktemp("registry"))
    yield served
    served.stop()


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
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    with private_podman(tmp_path_factory.mktemp("node")) as of_node:
        yield of_node


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, podman: Podman, registry: ImageRegistry) -> Iterator[Hub]:
    folder = tmp_path_factory.mktemp("dockerfiles")
    registries, logins = folder / "registries.conf", folder / "logins.json"
    registries.write_text(f'[[registry]]\nlocation = "{registry.host}"\ninsecure = true\n')
    login = base64.b64encode(LOGIN.encode()).decode()
    logins.write_text(json.dumps({"auths": {registry.host: {"auth": login}}}))
    hub = Hub(
        folder / "hub",
        TRAINHUB_NODE_CONTAINERS="podman",
        TRAINHUB_NODE_CACHE=str(folder / "cache"),
        CONTAINERS_REGISTRIES_CONF=str(registries),
        REGISTRY_AUTH_FILE=str(logins),
        **podman.variables,
    )
    hub.data_dir.mkdir()
    hub.is_recorded = True
    hub.start()
    try:
        yield hub
    finally:
        hub.cancel_all()
        hub.stop()


def builds_of(hub: Hub, name: str) -> list[dict[str, Any]]:
    with hub.client() as client:
        return list(client.get(f"{ADDRESS}{name}/versions/1/builds/").raise_for_status().json())


def version_of(hub: Hub, name: str, *states: str) -> dict[str, Any]:
    """The version once it has one of the states."""

    def reached() -> dict[str, Any] | None:
        with hub.client() as client:
            body = dict(client.get(f"{ADDRESS}{name}/versions/1/").raise_for_status().json())
        return body if body["state"] in states else None

    return eventually(reached, 120, f"the version is {states}")


def leftovers(hub: Hub, build: str) -> list[str]:
    """What is left of a build: its files, mounts, processes in its namespaces."""
    cache = Path(hub.settings["TRAINHUB_NODE_CACHE"]) / "image-builds" / build
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(cache) in line]
    processes = subprocess.run(["pgrep", "-f", str(cache)], capture_output=True, text=True, check=False)
    return [*mounts, *processes.stdout.split(), *map(str, remaining_processes((build, 1)))]


def test_a_dockerfile_is_built_on_a_node_and_pulled_from_the_hub(
    hub: Hub, base: str, registry: ImageRegistry, podman: Podman
) -> None:
    if True:
        # Without a node that can, it waits, and says for what.
        text = (
            f'FROM {base}\nENV ADDED=by-the-dockerfile\nRUN echo made > /opt/built\nENTRYPOINT ["/nothing"]\n'
        )
        body = {"name": "built", "kind": "dockerfile", "dockerfile": text}
        assert described(hub, body)["state"] in ("building", "locked")
    version = version_of(hub, "built", "locked", "failed")
    assert version["state"] == "locked", version["failure"]
    (build,) = builds_of(hub, "built")
    assert (build["state"], build["purpose"]) == ("built", "make")
    text = log_of(hub, build)
    assert "STEP 3/4: RUN echo made > /opt/built" in text
    assert "thu_" not in text
    assert leftovers(hub, build["id"]) == []
    # Nodes pull it from the hub, which needs no registry for that.
    registry.stop()
    words = output(hub, submit(hub, SCRIPT, environment={"name": "built"}))
    assert words.strip() == "from the image by-the-dockerfile ['built']"
    podman("image", "rm", "--all", "--force")
    assert "by-the-dockerfile" in output(hub, submit(hub, SCRIPT, environment={"name": "built"}))
