"""The newest test of each datastore. Part of `datastores.models`."""

from __future__ import annotations

from django.db import models

from datastores.testing.states import ProbeState
from workspaces.models import User


class DatastoreTest(models.Model):
    """A test of a datastore, which is kept until the next one. `path`: what is read below the datastore, ""
    for all of it. `hub_state`: how far the hub is; `hub_reason`: a sentence why it failed or has nothing to
    do; `hub_result`: what it has read, as a node reports it. `hub_begun_at`: since when a worker reads.
    `left_out`: how many nodes were too many for it."""

    datastore = models.OneToOneField("datastores.Datastore", models.CASCADE, related_name="test")
    path = models.CharField(max_length=1024, blank=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    hub_state = models.CharField(
        max_length=16,
        default=ProbeState.WAITING,
        choices=[(state.value, state.value) for state in ProbeState],
    )
    hub_reason = models.TextField(blank=True)
    hub_result = models.JSONField(default=dict)
    hub_begun_at = models.DateTimeField(null=True)
    left_out = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"test of {self.datastore}"
