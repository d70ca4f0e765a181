"""Models of clusters that are partitions of a Slurm, and of what the hub asks for there."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from clusters.models.nodes import Cluster, Node
from workspaces.models import User


class SlurmPartition(models.Model):
    """How the hub reaches the Slurm of a cluster; what the fields mean: `clusters.backends.slurm.settings`.

    `public_key`: of the key with which the hub logs in on `command_host`, "" = it has none yet.
    `relay_trouble`: why the relay does not stand, "" = it does. `relay_holder`: the worker that keeps it, and
    was last there at `relay_seen_at`.
    `python`: the Python on its nodes that runs the node program, at least 3.11. `has_accounting`: whether
    sacct answers, None = not known yet. `trouble`: why the last call failed, "" = it did not, since
    `trouble_since`."""

    cluster = models.OneToOneField(Cluster, models.CASCADE, related_name="slurm")
    partition = models.CharField(max_length=64)
    command_host = models.CharField(max_length=300, blank=True)
    host_key = models.TextField(blank=True)
    login_group = models.CharField(max_length=32, blank=True)
    public_key = models.CharField(max_length=200, blank=True)
    rest_url = models.CharField(max_length=300, blank=True)
    rest_ca = models.TextField(blank=True)
    relay_host = models.CharField(max_length=255, blank=True)
    relay_port = models.PositiveIntegerField(default=0)
    relay_trouble = models.TextField(blank=True)
    relay_holder = models.CharField(max_length=100, blank=True)
    relay_seen_at = models.DateTimeField(null=True, blank=True)
    account = models.CharField(max_length=64, blank=True)
    qos = models.CharField(max_length=64, blank=True)
    default_time_s = models.PositiveIntegerField(default=3600)
    max_time_s = models.PositiveIntegerField(default=7 * 24 * 3600)
    gres = models.JSONField(default=dict)
    shared_folder = models.CharField(max_length=255, blank=True)
    node_cache = models.CharField(max_length=255, blank=True)
    python = models.CharField(max_length=255, default="python3")
    has_accounting = models.BooleanField(null=True)
    trouble = models.TextField(blank=True)
    trouble_since = models.DateTimeField(null=True, blank=True)


class UnixAccount(models.Model):
    """Under which Unix account of a cluster the runs of a person are."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="unix_accounts")
    person = models.ForeignKey(User, models.CASCADE, related_name="+")
    name = models.CharField(max_length=32)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "person"], name="one_unix_account_per_person")
        ]


class SlurmToken(models.Model):
    """A token of a Unix account for the slurmrestd of a cluster; its value is a secret of the hub
    (`clusters.allocations.slurm_tokens`).

    `person`: whose account it is, None = the observer's, with which the hub looks. `warned_at`: when somebody
    was told that it ends soon."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="slurm_tokens")
    person = models.ForeignKey(User, models.CASCADE, null=True, blank=True, related_name="+")
    account = models.CharField(max_length=32)
    expires_at = models.DateTimeField()
    stored_at = models.DateTimeField(default=timezone.now)
    warned_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "person"], name="one_slurm_token_per_person"),
            models.UniqueConstraint(
                fields=["cluster"], condition=models.Q(person=None), name="one_observer_token"
            ),
        ]


class Allocation(models.Model):
    """One job in Slurm's queue: the nodes of one attempt of a run, from the request to the end.

    `holder` and `attempt` as in leases. `state`: see `clusters.allocations.states`. `account`: the Unix
    account that owns the job. `job_id`: Slurm's number of it, None before it has one. `word`, `reason`: what
    Slurm said last; `sentence`: the same for people. `nodes`: their names in Slurm, in its order, once it has
    some. `estimated_at`: when Slurm expects to start it. `refused`: the request can never be met, and
    `sentence` says why. `name`: the job's own, "" before it was submitted. `calling_until`: until when the
    answer to its submission may come; later Slurm may have the job, although nobody knows its number.
    `losses`: how many jobs it lost before the attempt started. `end_report_at`: when its nodes first
    reported an end that Slurm may have caused. `trouble`: why one of its nodes could not start the node
    program, as that node says. `cancel_requested_at`: since when it is given up, `cancel_trouble`: why Slurm
    could not be told so yet, "" = it was."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="allocations")
    holder = models.CharField(max_length=32, db_index=True)
    attempt = models.PositiveIntegerField()
    person = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    account = models.CharField(max_length=32)
    state = models.CharField(max_length=16)
    job_id = models.BigIntegerField(null=True, blank=True)
    word = models.CharField(max_length=32, blank=True)
    reason = models.CharField(max_length=200, blank=True)
    sentence = models.TextField(blank=True)
    refused = models.BooleanField(default=False)
    name = models.CharField(max_length=64, blank=True)
    calling_until = models.DateTimeField(null=True, blank=True)
    losses = models.PositiveIntegerField(default=0)
    end_report_at = models.DateTimeField(null=True, blank=True)
    trouble = models.CharField(max_length=400, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_trouble = models.TextField(blank=True)
    nodes = models.JSONField(default=list)
    estimated_at = models.DateTimeField(null=True, blank=True)
    requested_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField(null=True, blank=True)
    over_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["holder", "attempt"], name="one_allocation_per_attempt")
        ]
        indexes = [models.Index(fields=["cluster"], condition=models.Q(over_at=None), name="allocation_open")]


class AllocatedNode(models.Model):
    """A node of an allocation that has redeemed its claim, which it may do once per start of the job."""

    allocation = models.ForeignKey(Allocation, models.CASCADE, related_name="members")
    slurm_node = models.CharField(max_length=255)
    restart_count = models.PositiveIntegerField(default=0)
    node = models.ForeignKey(Node, models.CASCADE, related_name="+")
    redeemed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["allocation", "restart_count", "slurm_node"], name="one_claim_per_node_and_start"
            )
        ]
