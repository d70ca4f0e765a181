from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict

from clusters.kinds import AGENT, SLURM
from clusters.models import Cluster
from clusters.provisioning import cluster_admin, providers
from workspaces.models import Workspace

PLAIN_TEXT = {"autocomplete": "off", "spellcheck": "false"}


KINDS = ((AGENT, "Nodes with TrainHub’s agent"), (SLURM, "A partition of a Slurm"))


class CommonForm(forms.Form):
    """The settings that a cluster of any kind has."""

    description = forms.CharField(
        max_length=200, required=False, help_text="A short description of these machines."
    )
    workspaces = forms.ModelMultipleChoiceField(
        Workspace.objects.order_by("slug"),
        required=False,
        to_field_name="slug",
        widget=forms.CheckboxSelectMultiple,
        help_text=(
            "The workspaces that may use the cluster. If none is selected, all workspaces may use it."
        ),
    )

    def __init__(self, data: QueryDict | None = None, *, cluster: Cluster | None = None) -> None:
        current = dict(cluster_admin.DEFAULTS)
        if cluster is not None:
            current = {name: getattr(cluster, name) for name in cluster_admin.SETTINGS}
            current["workspaces"] = cluster.workspaces.all()
        super().__init__(data, initial=current, label_suffix="")

    @property
    def values(self) -> dict[str, Any]:
        """Returns the values for `cluster_admin.create` and `cluster_admin.change`."""
        return {**self.cleaned_data, "workspaces": [item.slug for item in self.cleaned_data["workspaces"]]}


class ClusterForm(CommonForm):
    """The settings of a cluster whose nodes run the agent."""

    provider = forms.ChoiceField(
        required=False,
        help_text=(
            "The provider creates and releases the cluster's nodes. Without one, machines are added manually."
        ),
    )
    min_nodes = forms.IntegerField(
        min_value=0,
        max_value=cluster_admin.MAX_NODES,
        label="Minimum number of nodes",
        help_text="The cluster always keeps this number of nodes.",
    )
    max_nodes = forms.IntegerField(
        min_value=0,
        max_value=cluster_admin.MAX_NODES,
        label="Maximum number of nodes",
        help_text="The cluster grows up to this number when runs wait, not counting manually added nodes.",
    )
    idle_s = forms.IntegerField(
        min_value=0,
        max_value=cluster_admin.MAX_IDLE_S,
        label="Idle time in seconds",
        help_text="A node is released after it has been unused for this time.",
    )
    node_gpus = forms.IntegerField(
        min_value=0,
        max_value=cluster_admin.MAX_GPUS,
        label="GPUs per node",
        help_text="The number of GPUs of each node that the provider creates.",
    )
    node_gpu_model = forms.CharField(
        max_length=64,
        required=False,
        label="GPU model",
        widget=forms.TextInput(attrs=PLAIN_TEXT),
        help_text="The GPU model to request from the provider, for example H200.",
    )
    node_slots = forms.IntegerField(
        min_value=0,
        max_value=cluster_admin.MAX_SLOTS,
        label="Process slots per node",
        help_text="The number of slots per node. Each slot can hold one process without a GPU.",
    )
    low_priority = forms.BooleanField(
        required=False,
        label="Low priority",
        help_text=(
            "The cluster's nodes may disappear at any time. Their runs then restart, up to 10 times "
            "without using up a retry."
        ),
    )
    avoid_unhealthy_gpus = forms.BooleanField(
        required=False,
        label="Avoid unhealthy GPUs",
        help_text=(
            "A GPU with a critical alert, such as memory errors that were not corrected, gets no new run "
            "until the alert clears. Runs that hold it continue."
        ),
    )

    def __init__(self, data: QueryDict | None = None, *, cluster: Cluster | None = None) -> None:
        super().__init__(data, cluster=cluster)
        # The present provider stays a choice if its folder is missing, as no other setting could be saved
        # otherwise.
        choices = {*providers.names(), *([cluster.provider] if cluster and cluster.provider else [])}
        options = [("", "none"), *((name, name) for name in sorted(choices))]
        self.fields["provider"].choices = options  # type: ignore[attr-defined]


class NewClusterForm(ClusterForm):
    # The fields of the other kind are hidden, and a browser would wait for them.
    use_required_attribute = False
    name = forms.CharField(
        max_length=50,
        help_text=(
            "Letters, digits, '-' and '_'. Runs refer to the cluster by this name; it cannot be changed."
        ),
        widget=forms.TextInput(attrs=PLAIN_TEXT),
    )
    kind = forms.ChoiceField(
        choices=KINDS, required=False, initial=AGENT, widget=forms.RadioSelect, label="Machines"
    )
    field_order = ("name", "kind")

    def __init__(self, data: QueryDict | None = None) -> None:
        self.is_slurm = data is not None and data.get("kind") == SLURM
        super().__init__(_without_node_settings(data) if data and self.is_slurm else data)

    @property
    def values(self) -> dict[str, Any]:
        fields = super().values
        if not self.is_slurm:
            return fields
        return {name: fields[name] for name in ("name", "kind", "description", "workspaces")}


def _without_node_settings(data: QueryDict) -> QueryDict:
    """Returns the values with the defaults in the fields that are hidden for this kind."""
    values = data.copy()
    for name in cluster_admin.SETTINGS:
        if name not in cluster_admin.SLURM_SETTINGS:
            values[name] = str(cluster_admin.DEFAULTS[name])
    return values
