"""The version of each dataset that comes first on pages and in lists."""

from __future__ import annotations

from django.db.models import Case, IntegerField, OuterRef, Subquery, Value, When

from datastores.models import Dataset, DatasetVersion
from datastores.states import ListingState
from workspaces.models import Workspace


def newest_versions(workspace: Workspace) -> dict[int, DatasetVersion]:
    """Returns, by the dataset's key, its newest version that runs can read, else its newest one."""
    is_unread = Case(
        When(state=ListingState.READY, then=Value(0)), default=Value(1), output_field=IntegerField()
    )
    first = DatasetVersion.objects.filter(dataset=OuterRef("pk")).order_by(is_unread, "-number").values("pk")
    datasets = Dataset.objects.filter(workspace=workspace).order_by()
    keys = list(datasets.values_list(Subquery(first[:1]), flat=True))
    versions = DatasetVersion.objects.filter(pk__in=keys).select_related("dataset", "manifest", "created_by")
    return {version.dataset_id: version for version in versions.defer("differences", "manifest__starts")}
