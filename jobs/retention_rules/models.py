"""Retention rules, what of them is in force, and what they have removed. Part of `jobs.models`."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from jobs.states import DataKind
from workspaces.models import Workspace

KINDS = [(kind.value, kind.label) for kind in DataKind]


class RetentionRule(models.Model):
    """What somebody has set for one kind of data: an owner for the `workspace`, or an operator for all that
    have no rule of their own (`workspace` None).

    `days`: removed of runs that ended so many days ago; None: never. `only_unsuccessful`: only of runs that
    failed or were canceled. Only in a rule for all: `least_days`, earlier than which no workspace may remove,
    and `most_days`, longer than which none keeps."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, related_name="retention_rules")
    kind = models.CharField(max_length=16, choices=KINDS)
    days = models.PositiveIntegerField(null=True)
    only_unsuccessful = models.BooleanField(default=False)
    least_days = models.PositiveIntegerField(null=True)
    most_days = models.PositiveIntegerField(null=True)
    changed_by = models.CharField(max_length=150)
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        app_label = "jobs"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "kind"], name="retention_rule_once"),
            models.UniqueConstraint(
                fields=["kind"], condition=models.Q(workspace=None), name="retention_rule_for_all_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.workspace or 'all workspaces'}"


class RuleInForce(models.Model):
    """By what the worker removes one kind of data of a workspace now; without a row nothing is removed.

    `next_days` and `next_only_unsuccessful`: a rule that removes more, and holds from `next_at` on; None: no
    such rule waits."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="rules_in_force")
    kind = models.CharField(max_length=16, choices=KINDS)
    days = models.PositiveIntegerField(null=True)
    only_unsuccessful = models.BooleanField(default=False)
    next_days = models.PositiveIntegerField(null=True)
    next_only_unsuccessful = models.BooleanField(default=False)
    next_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "jobs"
        constraints = [models.UniqueConstraint(fields=["workspace", "kind"], name="rule_in_force_once")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.workspace}"


class DataRemoval(models.Model):
    """A rule has removed one kind of data of a run, or is about to (`done_at` None). `days`: of the rule.
    `size_bytes`: what was there; of files that others name, too, nothing was freed."""

    run = models.ForeignKey("jobs.Run", models.CASCADE, related_name="removals")
    kind = models.CharField(max_length=16, choices=KINDS)
    days = models.PositiveIntegerField()
    size_bytes = models.BigIntegerField(default=0)
    started_at = models.DateTimeField(default=timezone.now)
    done_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "jobs"
        constraints = [models.UniqueConstraint(fields=["run", "kind"], name="data_removal_once")]
        indexes = [
            models.Index(fields=["id"], condition=models.Q(done_at=None), name="data_removal_unfinished")
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.run}"
