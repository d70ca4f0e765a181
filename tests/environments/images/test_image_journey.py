"""An environment of a private image, from the API to a run in a container, with a real hub, worker, agent,
registry and engine. The node has no login of the registry: it pulls from the hub."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator

import pytest

from tests.environments.images.image_registry import LOGIN, PASSWORD, USER, ImageRegistry
from tests.environments.test_journey import described, ended, log_of, ordered, output
from tests.hub import Hub, eventually
from tests.node.containers.docker import private_docker
from tests.node.containers.images import NAME, PrivateEngine, has_podman, make_root, private_podman
from tests.runs import log, submit
from trainhub_launch.log_names import ENVIRONMENT_LOG, PACKAGES_FILE
from trainhub_node.containers.engine import Engine
from trainhub_node.launch.image_cleanup import remove_unused_images

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_podman(), reason="needs root, podman and catatonit"),
]
PRIVATE_ENGINES = {"podman": private_podman, "docker": private_docker}
SCRIPT = "import os, sys\nprint(os.environ['GREETING'], sys.prefix, os.listdir('/opt'), flush=True)\n"


@pytest.fixture(scope="module", params=["podman", pytest.param("docker", marks=pytest.mark.long)])
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PrivateEngine]:
    """The engine of the node, with nothing in it."""
    with PRIVATE_ENGINES[request.param](tmp_path_factory.mktemp("node")) as of_node:
        yield of_node


@pytest.fixture(scope="module")
def registry(engine: PrivateEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageRegistry]:
    """A registry for each engine: the test stops it."""
    served = ImageRegistry(tmp_path_factory.mktemp("registry"))
    yield served
    served.stop()


@pytest.fixture(scope="module")
def image(registry: ImageRegistry, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The reference of an image in the registry, which the node's engine does not have."""
    root = make_root(tmp_path_factory.mktemp("root"))
    (root / "opt/only-in-the-image").touch()
    reference = f"{registry.host}/team/train:1"
    with private_podman(tmp_path_factory.mktemp("author")) as podman:
        podman.make_image(root)
        podman("push", "--quiet", "--tls-verify=false", f"--creds={USER}:{PASSWORD}", NAME, reference)
    return reference


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, engine: PrivateEngine) -> Iterator[Hub]:
    folder = tmp_path_factory.mktemp("images")
    own = {"TRAINHUB_NODE_CONTAINERS": engine.name, "TRAINHUB_NODE_CACHE": str(folder / "cache")}
    hub = Hub(folder, **own, **engine.variables)
    hub.is_recorded = True
    hub.start()
    try:
        yield hub
    finally:
        hub.cancel_all()
        hub.stop()


def test_a_private_image_is_locked_pulled_through_the_hub_and_outlives_its_registry(
    hub: Hub, image: str, registry: ImageRegistry, engine: PrivateEngine
) -> None:
    with hub.client() as client:
        secret = {"value": LOGIN, "scope": "workspace"}
        client.put("/api/v1/secrets/REGISTRY/", json=secret).raise_for_status()
        eventually(
            lambda: "containers" in client.get("/api/v1/nodes/").json()[0]["capabilities"], 60, "the trial"
        )
    body = {"name": "boxed", "kind": "image", "image": image, "registry_secret": "REGISTRY"}
    version = described(hub, body)
    assert version["state"] == "locked", version["failure"]

    build = ended(hub, ordered(hub, "1", "boxed"))
    assert (build["state"], build["reason"]) == ("built", "")
    assert "thi_" not in log_of(hub, build)
    registry.stop()
    run = submit(hub, SCRIPT, environment={"name": "boxed"})
    words = output(hub, run)
    assert words.startswith("from the image ")
    assert "['only-in-the-image']" in words
    assert "thi_" not in log(hub, run, ENVIRONMENT_LOG).decode()
    eventually(lambda: engine.containers() == [], what="the container is removed")
    # What the image has, not what the node has.
    assert json.loads(log(hub, run, PACKAGES_FILE))["packages"] == []

    _unused_images_leave_the_engine(hub, engine)
    assert "from the image" in output(hub, submit(hub, SCRIPT, environment={"name": "boxed"}))


def _unused_images_leave_the_engine(hub: Hub, private: PrivateEngine) -> None:
    """The agent removes what it has pulled and nobody has used since, and nothing of a person."""
    (record,) = hub.data_dir.rglob("*.image.json")
    program = shutil.which(private.name)
    assert program is not None
    engine = Engine(private.name, program, "", {**os.environ, **private.variables}, "mark")
    name = json.loads(record.read_text())["pulled"][1]
    image = private("image", "inspect", "--format={{.Id}}", name).strip().removeprefix("sha256:")
    assert remove_unused_images(engine, record.parent, unused_since=time.time() - 60) == []

    private("tag", image, "localhost/of-a-person:1")
    assert remove_unused_images(engine, record.parent, unused_since=time.time() + 60) == []
    private("rmi", "localhost/of-a-person:1")
    container = private("create", image, "sh").strip()
    assert remove_unused_images(engine, record.parent, unused_since=time.time() + 60) == []
    private("rm", container)

    assert image[:12] in private("image", "ls", "--quiet")
    assert remove_unused_images(engine, record.parent, unused_since=time.time() + 60) == [name]
    assert image[:12] not in private("image", "ls", "--quiet")
    assert not record.exists()
