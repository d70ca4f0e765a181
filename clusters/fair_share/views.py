"""The page on which operators set the shares of workspaces in a cluster and see what they have used."""

from __future__ import annotations

from collections.abc import Iterator

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render

from clusters.fair_share import shares
from clusters.fair_share.shares import MAX_SHARE, ShareRow
from clusters.models import Cluster
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, operators_only


class SharesForm(forms.Form):
    """A field for each workspace that may use the cluster, named by its slug."""

    def __init__(self, data: QueryDict | None, rows: list[ShareRow]) -> None:
        super().__init__(data, label_suffix="", prefix="share")
        self._rows = rows
        for row in rows:
            self.fields[row.workspace.slug] = forms.FloatField(
                initial=f"{row.share:g}",
                min_value=0,
                max_value=MAX_SHARE,
                label=f"Share of {row.workspace}",
                widget=forms.TextInput(
                    attrs={
                        "class": "th-input",
                        "inputmode": "decimal",
                        "autocomplete": "off",
                        "aria-label": f"Share of {row.workspace}",
                    }
                ),
                error_messages={"invalid": "must be a number", "required": "must be a number, 0 or more"},
            )

    def rows(self) -> Iterator[tuple[ShareRow, forms.BoundField]]:
        for row in self._rows:
            yield row, self[row.workspace.slug]


@operators_only
def cluster_shares(request: WorkspaceRequest, name: str) -> HttpResponse:
    cluster = get_object_or_404(Cluster, name=name, deleted_at=None)
    form = SharesForm(request.POST if request.method == "POST" else None, shares.share_rows(cluster))
    if form.is_valid():
        try:
            changed = shares.set_shares(cluster, form.cleaned_data, request.user)
        except SpecError as error:
            form.add_error(error.field if error.field in form.fields else None, error.message)
        else:
            messages.success(request, "The shares were changed." if changed else "Nothing was changed.")
            return redirect("cluster-shares", cluster.name)
    context = {"cluster": cluster, "form": form, "half_life_days": settings.FAIR_SHARE_HALF_LIFE_DAYS}
    return render(request, "clusters/shares.html", context, status=400 if form.is_bound else 200)
