"""Operations on a cluster for operators: create, change, drain, resume and delete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from clusters.allocations import login_keys, slurm_tokens
from clusters.enrolment.node_tokens import EnrolmentError, check_name
from clusters.kinds import AGENT, BACKENDS, SLURM
from clusters.models import Allocation, Cluster, SlurmPartition, UnixAccount
from clusters.provisioning import cluster_journal, machines, providers
from clusters.provisioning.providers import ProviderError
from clusters.slurm_partitions import partition_settings
from trainhub_launch.errors import LaunchError, SpecError
from trainhub_launch.scheduler.capacity import counted, words
from workspaces import audit
from workspaces.models import User, Workspace

SETTINGS = (
    "description",
    "provider",
    "min_nodes",
    "max_nodes",
    "idle_s",
    "node_gpus",
    "node_gpu_model",
    "node_slots",
    "low_priority",
    "avoid_unhealthy_gpus",
)
DEFAULTS = {name: getattr(Cluster(), name) for name in SETTINGS}
# Where Slurm chooses nodes and GPUs, nobody else does.
SLURM_DEFAULTS = {**DEFAULTS, "avoid_unhealthy_gpus": False}
SLURM_SETTINGS = ("description",)
# Words that page addresses use in the place of a cluster's name.
RESERVED = ("add", "add-cluster", "invitations")
MAX_NODES, MAX_GPUS, MAX_SLOTS, MAX_IDLE_S = 1000, 64, 100_000, 30 * 86400


class ClusterExists(LaunchError):
    """A cluster of this name exists already."""


class ClusterInUse(LaunchError):
    """The cluster is not in a state that allows this; the message says what to do first."""


def create(name: str, values: Mapping[str, Any], who: User) -> Cluster:
    """Creates a cluster. Raises ClusterExists, or SpecError that names the wrong field.

    `values`: settings by name, `workspaces` as slugs, none = all, and `kind`, with `slurm` for the settings
    of a partition. Missing settings get their defaults."""
    check_name("name", name)
    if name in RESERVED:
        raise EnrolmentError("name", f"{name!r} is the name of a page; choose another name")
    kind = _checked_kind(values)
    defaults = SLURM_DEFAULTS if kind == SLURM else DEFAULTS
    if kind == SLURM:
        _refuse_node_settings(values, defaults)
    checked = {**_checked({**defaults, **values}), "kind": kind}
    slurm = partition_settings.check_settings(values.get("slurm", {})) if kind == SLURM else None
    with transaction.atomic():
        cluster, is_new = Cluster.objects.select_for_update().get_or_create(name=name, defaults=checked)
        if not is_new and cluster.deleted_at is None:
            raise ClusterExists(f"A cluster {name!r} exists already; change it, or choose another name.")
        if not is_new:
            # A deleted cluster with a history is reused.
            Cluster.objects.filter(pk=cluster.pk).update(**checked, drained_at=None, deleted_at=None)
            SlurmPartition.objects.filter(cluster=cluster).delete()
            cluster.refresh_from_db()
        if slurm is not None:
            partition_settings.store(cluster, slurm)
        cluster.workspaces.set(_workspaces(values.get("workspaces", ())))
        cluster_journal.record_event(cluster, "made", f"Created by {who}.", who.get_username())
        audit.record(who, "cluster.made", name)
    return cluster


def change(cluster: Cluster, values: Mapping[str, Any], who: User) -> tuple[str, ...]:
    """Changes the given settings and returns the names of those that changed. Raises SpecError that names the
    wrong field."""
    _checked_kind(values, cluster.kind)
    current = {name: getattr(cluster, name) for name in SETTINGS}
    slurm = _slurm_changes(cluster, values, current)
    checked = _checked({**current, **values}, current_provider=cluster.provider)
    changed = {name: value for name, value in checked.items() if value != current[name]}
    if "provider" in changed and machines.active(cluster):
        raise EnrolmentError(
            "provider", "has machines of this cluster; set max_nodes to 0 and wait until they are released"
        )
    with transaction.atomic():
        # Placement locks the same row: no run is placed by the old settings after this.
        Cluster.objects.select_for_update().get(pk=cluster.pk)
        Cluster.objects.filter(pk=cluster.pk).update(**changed)
        if slurm:
            partition_settings.store(cluster, slurm)
            changed |= {f"slurm.{name}": value for name, value in slurm.items()}
        changes = [f"{name} is {_value_text(value)}" for name, value in changed.items()]
        if "workspaces" in values:
            workspaces, previous = _workspaces(values["workspaces"]), set(cluster.workspaces.all())
            if set(workspaces) != previous:
                cluster.workspaces.set(workspaces)
                changes.append(f"workspaces are {', '.join(item.slug for item in workspaces) or 'all'}")
                changed["workspaces"] = None
        if changes:
            cluster_journal.record_event(
                cluster, "changed", f"Changed by {who}: {', '.join(changes)}.", who.get_username()
            )
            audit.record(who, "cluster.changed", cluster.name, fields=sorted(changed))
    cluster.refresh_from_db()
    return tuple(changed)


@transaction.atomic
def drain(cluster: Cluster, who: User) -> None:
    """Stops new runs on the cluster; present runs continue. Repeating it changes nothing."""
    if Cluster.objects.select_for_update().get(pk=cluster.pk).drained_at is None:
        Cluster.objects.filter(pk=cluster.pk).update(drained_at=timezone.now())
        cluster_journal.record_event(
            cluster, "drained", f"Drained by {who}: it takes no new runs.", who.get_username()
        )
        audit.record(who, "cluster.drained", cluster.name)
    cluster.refresh_from_db()


@transaction.atomic
def resume(cluster: Cluster, who: User) -> None:
    if Cluster.objects.select_for_update().get(pk=cluster.pk).drained_at is not None:
        Cluster.objects.filter(pk=cluster.pk).update(drained_at=None)
        cluster_journal.record_event(
            cluster, "resumed", f"Resumed by {who}: it takes runs again.", who.get_username()
        )
        audit.record(who, "cluster.resumed", cluster.name)
    cluster.refresh_from_db()


@transaction.atomic
def delete(cluster: Cluster, who: User) -> None:
    """Deletes an empty cluster; the history of runs on its nodes stays. Raises ClusterInUse."""
    current = Cluster.objects.select_for_update().get(pk=cluster.pk)
    jobs = Allocation.objects.filter(cluster=current, over_at=None).count()
    if jobs:
        raise ClusterInUse(
            f"{current.name} still has {counted(jobs, 'run')} in Slurm's queue; cancel or await them first."
        )
    nodes = list(current.nodes.filter(revoked_at=None).order_by("name").values_list("name", flat=True))
    if nodes:
        names = f"{', '.join(nodes[:6])} and {len(nodes) - 6} more" if len(nodes) > 6 else words(nodes)
        raise ClusterInUse(
            f"{current.name} still has {counted(len(nodes), 'node')}: {names}; remove them first."
        )
    active_machines = machines.active(current)
    if active_machines:
        raise ClusterInUse(
            f"{current.name} still has {counted(len(active_machines), 'machine')} that its provider is "
            "creating or releasing."
        )
    # A later cluster of this name decides anew whose jobs are under which account.
    UnixAccount.objects.filter(cluster=current).delete()
    login_keys.forget_key(current.pk)
    slurm_tokens.forget_tokens(current)
    audit.record(who, "cluster.deleted", current.name)
    # Journals and leases refer to nodes, so a cluster that ever had a node is hidden and not deleted.
    if not current.nodes.exists():
        current.delete()
        return
    current.nodes.filter(removed_at=None).update(removed_at=timezone.now())
    Cluster.objects.filter(pk=current.pk).update(deleted_at=timezone.now(), provider="")
    cluster_journal.record_event(current, "changed", f"Deleted by {who}.", who.get_username())


def _checked(values: Mapping[str, Any], current_provider: str | None = None) -> dict[str, Any]:
    """Returns the validated settings in `values`. Raises EnrolmentError. `current_provider` of the cluster is
    not checked again."""
    settings = {name: values[name] for name in SETTINGS}
    for name, maximum in (
        ("min_nodes", MAX_NODES),
        ("max_nodes", MAX_NODES),
        ("node_gpus", MAX_GPUS),
        ("node_slots", MAX_SLOTS),
        ("idle_s", MAX_IDLE_S),
    ):
        if not 0 <= settings[name] <= maximum:
            raise EnrolmentError(name, f"must be between 0 and {maximum}")
    if settings["min_nodes"] > settings["max_nodes"]:
        raise EnrolmentError(
            "min_nodes", f"is {settings['min_nodes']}, more than max_nodes, {settings['max_nodes']}"
        )
    if not settings["provider"] and settings["max_nodes"]:
        raise EnrolmentError(
            "provider", "is needed for a cluster that grows; choose one, or leave max_nodes at 0"
        )
    if settings["provider"] and not (settings["node_gpus"] or settings["node_slots"]):
        raise EnrolmentError("node_slots", "a node needs GPUs or process slots to take runs")
    if settings["provider"] and settings["provider"] != current_provider:
        try:
            providers.find(settings["provider"])
        except ProviderError as error:
            raise EnrolmentError("provider", str(error)) from None
    return settings


def _checked_kind(values: Mapping[str, Any], current: str = "") -> str:
    """Returns the kind of a cluster with these values. `current`: that of a present cluster, which stays."""
    kind = str(values.get("kind") or current or AGENT)
    if kind not in BACKENDS:
        raise SpecError(
            "kind", f"{kind!r} is no kind of cluster; choose {words(sorted(BACKENDS, reverse=True))}"
        )
    if current and kind != current:
        raise SpecError("kind", f"cannot be changed, it is {current}; create another cluster")
    if "slurm" in values and values["slurm"] is not None and kind != SLURM:
        raise SpecError("slurm", 'is for a Slurm partition; create the cluster with "kind": "slurm"')
    return kind


def _refuse_node_settings(values: Mapping[str, Any], current: Mapping[str, Any]) -> None:
    """Raises EnrolmentError if `values` change what only a cluster of nodes with agents has."""
    for name in SETTINGS:
        if name not in SLURM_SETTINGS and values.get(name, current[name]) != current[name]:
            raise EnrolmentError(
                name,
                "is for clusters whose nodes run TrainHub's agent; here Slurm has the nodes, so leave it out",
            )


def _slurm_changes(cluster: Cluster, values: Mapping[str, Any], current: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of the partition that change; none for another kind of cluster."""
    if cluster.kind != SLURM:
        return {}
    _refuse_node_settings(values, current)
    row = SlurmPartition.objects.get(cluster=cluster)
    checked = partition_settings.check_settings(values.get("slurm") or {}, row)
    return partition_settings.changed_fields(checked, row)


def _workspaces(slugs: Iterable[str]) -> list[Workspace]:
    requested = set(slugs)
    workspaces = list(Workspace.objects.filter(slug__in=requested).order_by("slug"))
    unknown = requested - {item.slug for item in workspaces}
    if unknown:
        raise SpecError("workspaces", f"there is no workspace {sorted(unknown)[0]!r}")
    return workspaces


def _value_text(value: object) -> str:
    return (
        {True: "on", False: "off", "": "empty"}.get(value, str(value))
        if isinstance(value, bool | str)
        else str(value)
    )
