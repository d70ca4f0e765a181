"""`python -m bench.containers.image_pull`: an image of 1 GB on a second node, which pulls it from the hub,
beside `skopeo copy` by hand from the registry into the same kind of store, in turn.

Both begin with an empty store of the engine and end with an unpacked image. What the first node costs, for
which the hub fetches the layers, is printed beside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.support.limits import Limits, median
from bench.support.stack import Stack, stack
from tests.environments.images.image_registry import LOGIN, PASSWORD, USER, ImageRegistry
from tests.node.containers.images import NAME, Podman, has_podman, make_root, private_podman

ROUNDS = 3
MAX_RATIO = 1.3
FILES, FILE_BYTES = 8, 125_000_000
ADDRESS = "/environments/"
MAX_S = 600


def registry_with_image(folder: Path) -> tuple[ImageRegistry, str]:
    """Returns a registry, and the reference of an image in it whose bytes cannot be compressed."""
    registry = ImageRegistry(folder / "registry")
    root = make_root(folder / "root")
    for number in range(FILES):
        (root / "opt" / f"weights-{number}").write_bytes(os.urandom(FILE_BYTES))
    (author_folder := folder / "author").mkdir()
    reference = f"{registry.host}/team/train:1"
    with private_podman(author_folder) as author:
        author.make_image(root)
        login = f"--creds={USER}:{PASSWORD}"
        author("push", "--quiet", "--tls-verify=false", login, NAME, reference)
    shutil.rmtree(root)
    return registry, reference


def by_hand(folder: Path, reference: str) -> float:
    """Returns the seconds in which skopeo copies the image into an empty store."""
    folder.mkdir()
    with private_podman(folder) as podman:
        command = ["skopeo", "copy", "--quiet", "--src-tls-verify=false", f"--src-creds={USER}:{PASSWORD}"]
        command += [f"docker://{reference}", "containers-storage:localhost/by-hand:1"]
        started_at = time.monotonic()
        subprocess.run(command, env={**os.environ, **podman.variables}, check=True)
        return time.monotonic() - started_at


def by_node(hub: Stack, podman: Podman) -> float:
    """Returns the seconds from the order to a node whose store is empty until it has the image."""
    podman("image", "rm", "--all", "--force")
    started_at = time.monotonic()
    (build,) = hub.api("POST", f"{ADDRESS}boxed/versions/1/build/", json={})
    while (answer := _build(hub, build["id"]))["state"] in ("queued", "building"):
        if time.monotonic() - started_at > MAX_S:
            raise RuntimeError(f"the node has no image after {MAX_S} s")
        time.sleep(0.05)
    seconds = time.monotonic() - started_at
    if answer["state"] != "built":
        raise RuntimeError(answer["reason"])
    return seconds


def _build(hub: Stack, build: str) -> dict[str, Any]:
    answer: dict[str, Any] = hub.api("GET", f"{ADDRESS}boxed/versions/1/builds/{build}/")
    return answer


def lock(hub: Stack, reference: str) -> None:
    """Makes the environment of the image, and waits for the node's engine."""
    hub.api("PUT", "/secrets/REGISTRY/", json={"value": LOGIN, "scope": "workspace"})
    body = {"name": "boxed", "kind": "image", "image": reference, "registry_secret": "REGISTRY"}
    hub.api("POST", ADDRESS, json=body)
    while (version := hub.api("GET", f"{ADDRESS}boxed/versions/1/"))["state"] == "resolving":
        time.sleep(0.1)
    if version["state"] != "locked":
        raise RuntimeError(version["failure"])
    while "containers" not in hub.api("GET", "/nodes/")[0]["capabilities"]:
        time.sleep(0.2)


def measure(folder: Path) -> int:
    registry, reference = registry_with_image(folder)
    (node_folder := folder / "node").mkdir()
    try:
        with (
            private_podman(node_folder) as podman,
            stack(None, TRAINHUB_NODE_CONTAINERS="podman", **podman.variables) as hub,
        ):
            lock(hub, reference)
            first = by_node(hub, podman)
            hand, node = [], []
            for _ in range(ROUNDS):
                hand.append(by_hand(folder / "hand", reference))
                node.append(by_node(hub, podman))
    finally:
        registry.stop()
    print(f"an image of {FILES * FILE_BYTES / 1e9:.0f} GB, medians of {ROUNDS}")
    print(f"skopeo copy by hand from the registry        {median(hand):8.2f} s")
    print(f"a node from the hub, which has the layers    {median(node):8.2f} s")
    print(f"the first node, while the hub fetches them   {first:8.2f} s")
    limits = Limits()
    limits.at_most("a second node to skopeo copy", median(node) / median(hand), MAX_RATIO)
    return limits.exit_code()


def main() -> int:
    if not has_podman() or shutil.which("skopeo") is None:
        print("not measured: needs root, podman, runc, catatonit and skopeo")
        return 0
    folder = Path(tempfile.mkdtemp(prefix="trainhub-bench-", dir="/var/lib"))
    try:
        return measure(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
