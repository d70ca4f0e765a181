"""Which nodes have prepared which environments. Part of `jobs.models`, which every other module imports."""

from __future__ import annotations

from django.db import models

from clusters.models import Node
from environments.models import EnvironmentVersion


class PreparedEnvironment(models.Model):
    """An environment that a node has prepared for a run. The node may have removed it since, to keep its
    cache small. `own_version`: the version of a workspace's own environment, None for a curated one.
    `build_s`: seconds that its last build there took; `built_at`: its end; None: unknown."""

    node = models.ForeignKey(Node, models.CASCADE, related_name="prepared_environments")
    name = models.CharField(max_length=200)
    version = models.CharField(max_length=50)
    own_version = models.ForeignKey(
        EnvironmentVersion, models.CASCADE, null=True, related_name="prepared", db_index=False
    )
    prepared_at = models.DateTimeField()
    built_at = models.DateTimeField(null=True)
    build_s = models.FloatField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["node", "name", "version"],
                condition=models.Q(own_version=None),
                name="environment_per_node",
            ),
            models.UniqueConstraint(fields=["own_version", "node"], name="own_environment_per_node"),
        ]
