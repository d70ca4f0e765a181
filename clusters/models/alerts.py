"""Models of alerts."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from clusters.models.nodes import Cluster, Node


class Alert(models.Model):
    """A condition of a subject, from its first detection until it clears; afterwards it is history.

    `kind` names a rule (`clusters.alerts.rules`). `subject` is a GPU's UUID, "" for the node, or the holder
    for a rule about runs. `key` combines them and is unique among open alerts. `state`: pending (the delay of
    the rule has not passed), firing, cleared. "{holder}" in `sentence` is a placeholder that is filled in for
    each workspace (`clusters.alerts.presenters`).

    `acknowledged_at` and `_by`: who has seen it. `snoozed_until`: until then nobody is notified of it and it
    is not counted among the firing alerts."""

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
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.CharField(max_length=150, blank=True)
    snoozed_until = models.DateTimeField(null=True, blank=True)
    snoozed_by = models.CharField(max_length=150, blank=True)

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


class AlertThreshold(models.Model):
    """An operator's value of a threshold (`clusters.alerts.thresholds`), for one cluster, or without a
    cluster for all that have no value of their own."""

    cluster = models.ForeignKey(
        Cluster, models.CASCADE, related_name="alert_thresholds", null=True, blank=True
    )
    name = models.CharField(max_length=32)
    value = models.FloatField()
    set_by = models.CharField(max_length=150)
    set_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="one_threshold_per_cluster"),
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(cluster=None), name="one_threshold_for_all"
            ),
        ]


class Baseline(models.Model):
    """Earlier values of a node for rules that detect changes: `ports` {name: when it was last active}, `ecc`
    {UUID: [uncorrected errors, their last growth, when]}."""

    node = models.OneToOneField(Node, models.CASCADE, primary_key=True, related_name="baseline")
    ports = models.JSONField(default=dict)
    ecc = models.JSONField(default=dict)
