"""The page on which operators change the thresholds of alerts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render

from clusters.alerts import presenters, thresholds
from clusters.alerts.thresholds import THRESHOLDS, Threshold
from clusters.models import Cluster
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, must_operate, needs
from workspaces.states import Role


class ThresholdForm(forms.Form):
    """A field for each threshold; empty = the value that holds otherwise."""

    def __init__(self, data: QueryDict | None, cluster: Cluster | None) -> None:
        super().__init__(data, label_suffix="")
        self._inherited = thresholds.inherited(cluster)
        values = thresholds.values_by_cluster().get(None if cluster is None else cluster.pk, {})
        for threshold in THRESHOLDS:
            label = f"{presenters.title(threshold.kind)}: {threshold.label} ({threshold.unit})"
            self.fields[threshold.name] = forms.FloatField(
                required=False,
                initial=values.get(threshold.name),
                label=label,
                widget=forms.TextInput(
                    attrs={
                        "class": "th-input",
                        "inputmode": "decimal",
                        "autocomplete": "off",
                        "aria-label": label,
                        "placeholder": f"{threshold.read(self._inherited):g}",
                    }
                ),
                error_messages={"invalid": "must be a number, or empty for the default"},
            )

    def rows(self) -> Iterator[tuple[str, Threshold, forms.BoundField, float]]:
        """Yields for each threshold its rule's title, itself, its field and the default beside it."""
        for threshold in THRESHOLDS:
            default = threshold.read(self._inherited)
            yield presenters.title(threshold.kind), threshold, self[threshold.name], default


@needs(Role.VIEWER)
def alert_thresholds(request: WorkspaceRequest) -> HttpResponse:
    """Shows and changes the thresholds of the cluster in the address, or of all clusters."""
    must_operate(request.user)
    name = request.GET.get("cluster", "").replace("\x00", "")
    cluster = get_object_or_404(Cluster, name=name, deleted_at=None) if name else None
    form = ThresholdForm(request.POST or None, cluster)
    if form.is_valid():
        try:
            changed = thresholds.change(cluster, form.cleaned_data, request.user)
        except SpecError as error:
            form.add_error(error.field, error.message)
        else:
            messages.success(request, "The thresholds were changed." if changed else "Nothing was changed.")
            return redirect(request.get_full_path())
    context: dict[str, Any] = {
        "form": form,
        "cluster": cluster,
        "clusters": Cluster.objects.filter(deleted_at=None).order_by("name"),
    }
    return render(request, "clusters/alert_thresholds.html", context, status=400 if form.is_bound else 200)
