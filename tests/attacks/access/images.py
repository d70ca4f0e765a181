"""A run in a container image in the world of the routes."""

from __future__ import annotations

import json
from typing import Any

from clusters.models import Node
from environments.changes import create_version
from environments.images import image_store
from environments.images.image_lock import make_image_lock
from environments.images.registry_client import StoredManifest
from environments.states import VersionState
from jobs.image_registry.tickets import image_ticket
from jobs.models import Run
from tests.environments.images.container_images import make_image
from workspaces.access import Principal

Values = dict[str, Any]


def ordered_image(who: Principal, run: Run, node: Node) -> tuple[str, dict[str, Values]]:
    """Gives the claimed run an image. Returns the ticket of its order, and the parameters of the routes."""
    image = make_image({"data": b"x"})
    config = json.loads(image.manifest)["config"]["digest"]
    lock = make_image_lock(
        "registry.example.org/train:1",
        StoredManifest(image.manifest, image.media_type),
        image.media_type,
        image.blobs[config],
    )
    version = create_version(who, "boxed", "image", "registry.example.org/train:1")
    version.state, version.lock = VersionState.LOCKED, lock.text
    version.save()
    for data in (image.manifest, *image.blobs.values()):
        image_store.store(version, data)
    run.spec = {**run.spec, "environment": {"name": "boxed", "version": "1"}}
    run.save(update_fields=["spec"])
    return image_ticket(run.pk, 1, node.pk), {
        "/v2/env/{version}/manifests/": {"version": version.pk, "digest": image.digest},
        "/v2/env/{version}/blobs/": {"version": version.pk, "digest": config},
    }
