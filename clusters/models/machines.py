"""Models of machines that a provider creates and releases."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from clusters.models.nodes import Cluster, JoinToken, Node


class ProvidedMachine(models.Model):
    """A machine of a cluster's provider, from its request until it is gone.

    `state`: see `clusters.provisioning.states`. `provider_id`: the provider's id of it. `tries`: attempts of
    the present step; `failures`: how often it was created without becoming a node. `calling_until`: until
    when the answer to a running call is accepted. `released_at`: when the provider confirmed the release."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="machines")
    name = models.SlugField(unique=True)
    state = models.CharField(max_length=16)
    provider_id = models.CharField(max_length=200, blank=True)
    node = models.OneToOneField(Node, models.SET_NULL, null=True, blank=True, related_name="machine")
    token = models.ForeignKey(JoinToken, models.SET_NULL, null=True, blank=True, related_name="+")
    error = models.TextField(blank=True)
    tries = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    calling_until = models.DateTimeField(null=True, blank=True)
    asked_at = models.DateTimeField(default=timezone.now)
    changed_at = models.DateTimeField(default=timezone.now)
    try_again_at = models.DateTimeField(null=True, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    gone_at = models.DateTimeField(null=True, blank=True)


class ClusterEvent(models.Model):
    """An entry of a cluster's append-only journal."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="events")
    at = models.DateTimeField(default=timezone.now)
    kind = models.CharField(max_length=32)
    message = models.TextField()
    actor = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ["id"]
