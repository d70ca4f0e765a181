"""What people do to a cluster: make, change, drain and resume, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from clusters.enrolment.node_tokens import EnrolmentError, check_name
from clusters.models import Cluster
from clusters.provisioning import cluster_journal, machines, providers
from clusters.provisioning.providers import ProviderError
from trainhub_launch.errors import LaunchError, SpecError
from trainhub_launch.offers import counted, words
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
)
DEFAULTS = {name: getattr(Cluster(), name) for name in SETTINGS}
RESERVED = ("add", "add-cluster", "invitations")
"""Words that stand where a cluster's name does, in the addresses of pages."""
MAX_NODES, MAX_GPUS, MAX_SLOTS, MAX_IDLE_S = 1000, 64, 100_000, 30 * 86400


class ClusterExists(LaunchError):
    """There is a cluster of that name."""


class ClusterInUse(LaunchError):
    """The cluster is not in a state that allows this; the message says what to do first."""


def create(name: str, values: Mapping[str, Any], who: User) -> Cluster:
    """A new cluster. Raises ClusterExists, and EnrolmentError naming the field that is wrong.

    `values`: settings by their names, and `workspaces`: slugs, none = all. What is not given is as by
    default."""
    check_name("name", name)
    if name in RESERVED:
        raise EnrolmentError("name", f"{name!r} is taken by a page; choose another name")
    checked = {**DEFAULTS, **_checked({**DEFAULTS, **values})}
    with transaction.atomic():
        cluster, made = Cluster.objects.select_for_update().get_or_create(name=name, defaults=checked)
        if not made and cluster.deleted_at is None:
            raise ClusterExists(f"There is a cluster {name!r} already; change it, or choose another name.")
        if not made:
            # Of a deleted one only its history is left.
            Cluster.objects.filter(pk=cluster.pk).update(**checked, drained_at=None, deleted_at=None)
            cluster.refresh_from_db()
        cluster.workspaces.set(_workspaces(values.get("workspaces", ())))
        cluster_journal.add(cluster, "made", f"Made by {who}.", who.get_username())
        audit.record(who, "cluster.made", name)
    return cluster


def change(cluster: Cluster, values: Mapping[str, Any], who: User) -> tuple[str, ...]:
    """Change the settings that are given; the names of those that changed. Raises EnrolmentError naming the
    field."""
    current = {name: getattr(cluster, name) for name in SETTINGS}
    wanted = _checked({**current, **values}, known=cluster.provider)
    changed = {name: value for name, value in wanted.items() if value != current[name]}
    if "provider" in changed and machines.active(cluster):
        raise EnrolmentError(
            "provider", "has machines of this cluster; set max_nodes to 0 and wait until they are released"
        )
    with transaction.atomic():
        Cluster.objects.select_for_update().get(pk=cluster.pk)
        Cluster.objects.filter(pk=cluster.pk).update(**changed)
        told = [f"{name} is {_said(value)}" for name, value in changed.items()]
        if "workspaces" in values:
            found, before = _workspaces(values["workspaces"]), set(cluster.workspaces.all())
            if set(found) != before:
                cluster.workspaces.set(found)
                told.append(f"workspaces are {', '.join(item.slug for item in found) or 'all'}")
                changed["workspaces"] = None
        if told:
            cluster_journal.add(
                cluster, "changed", f"Changed by {who}: {', '.join(told)}.", who.get_username()
            )
            audit.record(who, "cluster.changed", cluster.name, fields=sorted(changed))
    cluster.refresh_from_db()
    return tuple(changed)


@transaction.atomic
def drain(cluster: Cluster, who: User) -> None:
    """No new runs; those that run go on. Asked again, it changes nothing."""
    if Cluster.objects.select_for_update().get(pk=cluster.pk).drained_at is None:
        Cluster.objects.filter(pk=cluster.pk).update(drained_at=timezone.now())
        cluster_journal.add(
            cluster, "drained", f"Drained by {who}: it takes no new runs.", who.get_username()
        )
        audit.record(who, "cluster.drained", cluster.name)
    cluster.refresh_from_db()


@transaction.atomic
def resume(cluster: Cluster, who: User) -> None:
    if Cluster.objects.select_for_update().get(pk=cluster.pk).drained_at is not None:
        Cluster.objects.filter(pk=cluster.pk).update(drained_at=None)
        cluster_journal.add(cluster, "resumed", f"Resumed by {who}: it takes runs again.", who.get_username())
        audit.record(who, "cluster.resumed", cluster.name)
    cluster.refresh_from_db()


@transaction.atomic
def delete(cluster: Cluster, who: User) -> None:
    """Once it is empty. Where runs have been on its nodes, their history stays. Raises ClusterInUse."""
    current = Cluster.objects.select_for_update().get(pk=cluster.pk)
    there = list(current.nodes.filter(revoked_at=None).order_by("name").values_list("name", flat=True))
    if there:
        named = f"{', '.join(there[:6])} and {len(there) - 6} more" if len(there) > 6 else words(there)
        raise ClusterInUse(
            f"{current.name} still has {counted(len(there), 'node')}: {named}; remove them first."
        )
    left = machines.active(current)
    if left:
        raise ClusterInUse(
            f"{current.name} still has {counted(len(left), 'machine')} that its provider is making or "
            "releasing."
        )
    audit.record(who, "cluster.deleted", current.name)
    if not current.nodes.exists():
        current.delete()
        return
    current.nodes.filter(removed_at=None).update(removed_at=timezone.now())
    Cluster.objects.filter(pk=current.pk).update(deleted_at=timezone.now(), provider="")
    cluster_journal.add(current, "changed", f"Deleted by {who}.", who.get_username())


def _checked(values: Mapping[str, Any], known: str | None = None) -> dict[str, Any]:
    """The settings in `values`; `known`: the provider that the cluster has, which need not be looked at
    again."""
    found = {name: values[name] for name in SETTINGS}
    for name, most in (
        ("min_nodes", MAX_NODES),
        ("max_nodes", MAX_NODES),
        ("node_gpus", MAX_GPUS),
        ("node_slots", MAX_SLOTS),
        ("idle_s", MAX_IDLE_S),
    ):
        if not 0 <= found[name] <= most:
            raise EnrolmentError(name, f"must be between 0 and {most}")
    if found["min_nodes"] > found["max_nodes"]:
        raise EnrolmentError(
            "min_nodes", f"is {found['min_nodes']}, more than max_nodes, {found['max_nodes']}"
        )
    if not found["provider"] and found["max_nodes"]:
        raise EnrolmentError(
            "provider", "is needed for a cluster that grows; choose one, or leave max_nodes at 0"
        )
    if found["provider"] and not (found["node_gpus"] or found["node_slots"]):
        raise EnrolmentError("node_slots", "a node without GPUs and process slots could carry nothing")
    if found["provider"] and found["provider"] != known:
        try:
            providers.find(found["provider"])
        except ProviderError as error:
            raise EnrolmentError("provider", str(error)) from None
    return found


def _workspaces(slugs: Any) -> list[Workspace]:
    wanted = set(slugs)
    found = list(Workspace.objects.filter(slug__in=wanted).order_by("slug"))
    unknown = wanted - {item.slug for item in found}
    if unknown:
        raise SpecError("workspaces", f"there is no workspace {sorted(unknown)[0]!r}")
    return found


def _said(value: object) -> str:
    return (
        {True: "on", False: "off", "": "empty"}.get(value, str(value))
        if isinstance(value, bool | str)
        else str(value)
    )
