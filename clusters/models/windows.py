"""The model of the times in which a node is kept free."""

from __future__ import annotations

from django.db import models

from clusters.models.nodes import Node
from workspaces.models import Workspace


class NodeReservation(models.Model):
    """A time in which a node takes only the runs of one workspace, or none (`workspace` None: maintenance).

    Deleted when an operator ends it; one that is over stays."""

    node = models.ForeignKey(Node, models.CASCADE, related_name="reservations")
    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField(db_index=True)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", null=True, blank=True)
    note = models.CharField(max_length=200, blank=True)
    created_by = models.CharField(max_length=150)
