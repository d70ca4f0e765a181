from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.environments.images.image_registry import ImageRegistry
from tests.node.containers.images import Podman, private_podman


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageRegistry]:
    served = ImageRegistry(tmp_path_factory.mktemp("registry"))
    yield served
    served.stop()


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    with private_podman(tmp_path_factory.mktemp("node")) as of_node:
        yield of_node
