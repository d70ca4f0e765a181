"""The page on which operators keep nodes of a cluster free for a time."""

from __future__ import annotations

from datetime import UTC
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from clusters.models import Cluster, NodeReservation
from clusters.windows import node_windows
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, operators_only
from workspaces.models import Workspace


class MinuteInput(forms.DateTimeInput):
    """A day and a minute, with the browser's own way to choose them."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%dT%H:%M")


class WindowForm(forms.Form):
    nodes = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple)
    begins_at = forms.DateTimeField(label="From (UTC)", widget=MinuteInput)
    ends_at = forms.DateTimeField(label="To (UTC)", widget=MinuteInput)
    workspace = forms.ChoiceField(required=False, label="For")
    note = forms.CharField(
        required=False,
        max_length=node_windows.MAX_NOTE,
        help_text="Runs that wait because of the window show it.",
    )

    def __init__(self, data: QueryDict | None, cluster: Cluster) -> None:
        super().__init__(data, label_suffix="")
        names = cluster.nodes.filter(revoked_at=None).order_by("name").values_list("name", flat=True)
        slugs = Workspace.objects.filter(archived_at=None).order_by("slug").values_list("slug", flat=True)
        _choose(self.fields["nodes"], [(name, name) for name in names])
        _choose(self.fields["workspace"], [("", "nobody (maintenance)"), *((slug, slug) for slug in slugs)])


def _choose(field: forms.Field, choices: list[tuple[str, str]]) -> None:
    cast("forms.ChoiceField", field).choices = choices


@operators_only
def cluster_windows(request: WorkspaceRequest, name: str) -> HttpResponse:
    cluster = get_object_or_404(Cluster, name=name, deleted_at=None)
    # Times are typed and shown in UTC, whatever the hub's time zone.
    with timezone.override(UTC):
        form = WindowForm(request.POST if request.method == "POST" else None, cluster)
        if form.is_valid() and _is_added(cluster, form, request):
            return redirect("cluster-windows", cluster.name)
        context = {"cluster": cluster, "form": form, "windows": node_windows.current(cluster)}
        status = 400 if form.is_bound else 200
        return render(request, "clusters/windows.html", context, status=status)


@operators_only
@require_POST
def end_window(request: WorkspaceRequest, name: str, pk: int) -> HttpResponse:
    windows = NodeReservation.objects.select_related("node__cluster")
    window = get_object_or_404(windows, pk=pk, node__cluster__name=name)
    node_windows.end(window, request.user)
    messages.success(request, f"The window of {window.node.name} was ended.")
    return redirect("cluster-windows", name)


def _is_added(cluster: Cluster, form: WindowForm, request: WorkspaceRequest) -> bool:
    values: dict[str, Any] = form.cleaned_data
    try:
        node_windows.add(
            cluster,
            values["nodes"],
            (values["begins_at"], values["ends_at"]),
            request.user,
            workspace=values["workspace"],
            note=values["note"],
        )
    except SpecError as error:
        form.add_error(error.field, error.message)
        return False
    messages.success(request, "The window was set; active runs continue.")
    return True
