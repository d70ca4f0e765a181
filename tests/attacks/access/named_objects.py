"""What members of the workspace name: a secret, a datastore, a dataset, and a log system."""

from __future__ import annotations

from django.utils import timezone

from clusters.models import Node
from datastores.models import Dataset, Datastore, DatastoreTest
from jobs.models import DataOrder, LogTarget
from tests.datastores.datasets.builders import ready
from workspaces.access import Principal
from workspaces.models import Secret


def named_objects_of(who: Principal) -> dict[str, dict[str, object]]:
    """Makes one of each. Returns what fills their routes."""
    secret = Secret.objects.create(
        workspace=who.workspace, name="hf-token", sealed=b"sealed", changed_by=who.user.get_username()
    )
    images = Datastore.objects.create(
        workspace=who.workspace, name="images", kind="s3", settings={"bucket": "images"}
    )
    birds = Dataset.objects.create(workspace=who.workspace, name="birds", datastore=images)
    ready(birds, "a.bin")
    ready(birds, "b.bin")
    test = DatastoreTest.objects.create(datastore=images, created_by=who.user)
    order = DataOrder.objects.create(node=Node.objects.get(), datastore=images, work="test", test=test)
    now = timezone.now()
    address = "https://logs.example.org/v1/logs"
    LogTarget.objects.create(workspace=who.workspace, kind="otlp", url=address, since=now, try_at=now)
    return {
        "/api/v1/data-orders/": {"order": order.pk},
        "/api/v1/node/data-orders/": {"order": order.pk},
        "/settings/secrets/": {"pk": secret.pk},
        "/api/v1/secrets/": {"name": secret.name},
        "/api/v1/datastores/": {"name": "images"},
        "/data/datastores/": {"name": "images"},
        "/api/v1/datasets/": {"name": "birds", "number": 2, "path": "a.bin"},
        "/data/sets/": {"name": "birds", "number": 2},
    }
