from __future__ import annotations

from clusters.models import Node
from clusters.visibility import clusters_of
from datastores.models import DatasetVersion
from datastores.run_inputs import version_download


def nodes_with(version: DatasetVersion) -> list[str]:
    """Returns the names of the nodes that have all files of a ready version in their cache: those that the
    workspace can use."""
    key = version_download(version).list_key
    nodes = Node.objects.filter(
        cluster__in=clusters_of(version.dataset.workspace), removed_at=None, revoked_at=None
    )
    rows = nodes.exclude(data_lists=[]).order_by("name").values_list("name", "data_lists")
    return [name for name, keys in rows if key in keys]
