"""The page of a cluster that is a partition of a Slurm."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render

from clusters.overview import ClusterCard
from clusters.slurm_partitions.forms import SlurmTokenForm
from clusters.slurm_partitions.partition_overview import partition_overview
from clusters.slurm_partitions.token_access import own_access
from workspaces.access import WorkspaceRequest

PAGE, REFRESHED_PART = "clusters/slurm/cluster.html", "clusters/slurm/_cluster.html"


def show_partition(
    request: WorkspaceRequest, card: ClusterCard, refused: SlurmTokenForm | None = None
) -> HttpResponse:
    """`refused`: the form of the person's token, if it was sent and not taken."""
    context = {
        "card": card,
        "slurm": partition_overview(card.cluster),
        "access": own_access(card.cluster, request.principal.user, refused),
    }
    if refused is not None:
        return render(request, PAGE, context, status=400)
    return render(request, REFRESHED_PART if request.headers.get("HX-Request") else PAGE, context)
