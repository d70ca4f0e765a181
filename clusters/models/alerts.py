"""What deserves somebody's attention."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from clusters.models.nodes import Node


class Alert(models.Model):
    """One condition of one thing, from when it was first seen until it has cleared; then it is history.

    `kind` names a rule (`clusters.alerts.rules`), `subject` what it is about: a GPU's UUID, "" for the node,
    or for a rule about runs the holder. `key` is all of that in one, and unique among those that have not
    cleared. `state`: pending (seen, not yet for long enough), firing, cleared. In `sentence`, "{holder}"
    stands for whoever holds the GPU: each workspace reads there what it may know
    (`clusters.alerts.presenters`)."""

    key = models.CharField(max_length=200)
    kind = models.CharField(max_length=32)
    node = models.ForeignKey(Node, models.CASCADE, related_name="alerts", null=True, blank=True)
    subject = models.CharField(max_length=96, blank=True)
    holder = models.CharField(
        max_length=32, blank=True, help_text="The run that holds the GPU, or that the alert is about."
    )
    severity = models.CharField(max_length=16)
    state = models.CharField(max_length=16)
    sentence = models.TextField(blank=True)
    facts = models.JSONField(default=dict)
    since = models.DateTimeField(default=timezone.now, help_text="When the condition was first seen.")
    fired_at = models.DateTimeField(null=True, blank=True)
    cleared_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(
        default=timezone.now, help_text="When the condition was last found to hold."
    )

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["key"], condition=~models.Q(state="cleared"), name="one_open_alert"
            ),
        ]
        indexes = [
            models.Index(fields=["state"], condition=~models.Q(state="cleared"), name="alert_open"),
            models.Index(fields=["holder"], condition=~models.Q(holder=""), name="alert_of_run"),
        ]


class Baseline(models.Model):
    """What was seen of a node before, for rules that tell a change: `ports` {name: when it was last active},
    `ecc` {UUID: [errors not corrected, by how many they last grew, when]}."""

    node = models.OneToOneField(Node, models.CASCADE, primary_key=True, related_name="baseline")
    ports = models.JSONField(default=dict)
    ecc = models.JSONField(default=dict)
