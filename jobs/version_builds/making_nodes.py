"""Which node makes a version, and why none can."""

from __future__ import annotations

from django.db.models import Count

from clusters.models import Node
from clusters.visibility import visible_nodes
from environments.kinds.all_kinds import maker_of
from environments.models import EnvironmentVersion
from environments.states import VersionState
from jobs.builds.build_requests import MAX_UNFINISHED_BUILDS, build_refusal
from jobs.builds.build_targets import making_target
from jobs.models import AttemptNode, EnvironmentBuild
from trainhub_launch.scheduler.capacity import counted, words

MAX_REASONS, MAX_NAMES = 3, 2


def able_nodes(version: EnvironmentVersion) -> list[Node]:
    """Returns the nodes that can make the version now, those with the least to do first."""
    target = making_target(version)
    workspace = version.environment.workspace
    nodes = visible_nodes(workspace).filter(revoked_at=None)
    unfinished = EnvironmentBuild.objects.filter(node__in=nodes, ended_at=None).order_by()
    builds = dict(unfinished.values_list("node_id").annotate(Count("pk")))
    able = [
        node
        for node in nodes
        if builds.get(node.pk, 0) < MAX_UNFINISHED_BUILDS and not build_refusal(node, target)
    ]
    running = AttemptNode.objects.filter(node__in=able, settled_at=None).order_by()
    counts = dict(running.values_list("node_id").annotate(Count("pk")))
    return sorted(able, key=lambda node: (builds.get(node.pk, 0), counts.get(node.pk, 0), node.name))


def waiting_reason(version: EnvironmentVersion) -> str:
    """Returns why no node makes the version yet, with the remedy, as a sentence; "" if one can or does."""
    if version.state != VersionState.BUILDING:
        return ""
    if maker_of(version).awaits_other(version):
        return "A node builds the same packages for an earlier version; this one uses them then."
    if able_nodes(version):
        return ""
    target = making_target(version)
    nodes = visible_nodes(version.environment.workspace).filter(revoked_at=None)
    # Phrase after the name of a node -> the nodes.
    refused: dict[str, list[str]] = {}
    for node in nodes:
        if refusal := build_refusal(node, target):
            refused.setdefault(refusal.removeprefix(node.name), []).append(node.name)
    if not refused:
        return (
            "It waits for a node: there is none, or all have too many builds to do. Add one under Clusters."
        )
    shown = "; ".join(_refusal_of(names, phrase) for phrase, names in [*refused.items()][:MAX_REASONS])
    return f"It waits for a node that can build it: {shown}. It is built as soon as there is one."


def _refusal_of(names: list[str], phrase: str) -> str:
    """Returns the refusal of the first node, and which others have the same one."""
    first, *others = names
    if not others:
        return f"{first}{phrase}"
    more = len(others) - MAX_NAMES
    shown = [*others[:MAX_NAMES], *([counted(more, "other")] if more > 0 else [])]
    return f"{first}{phrase} (the same holds for {words(shown)})"
