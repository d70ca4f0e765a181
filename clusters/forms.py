from __future__ import annotations

from django import forms

from clusters.enrolment.join import cluster_names, default_cluster_name


class InvitationForm(forms.Form):
    cluster = forms.CharField(
        max_length=50,
        initial=default_cluster_name,
        help_text="A run takes all its nodes from one cluster. A new name creates a new cluster.",
        widget=forms.TextInput(attrs={"list": "clusters", "autocomplete": "off", "spellcheck": "false"}),
    )
    name = forms.CharField(
        max_length=50,
        required=False,
        help_text="The name of the node. If empty, its host name is used.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    monitor_only = forms.BooleanField(
        required=False,
        label="Monitor only",
        help_text="The node's GPUs and metrics are shown, but it never takes runs.",
    )

    def cluster_names(self) -> list[str]:
        return cluster_names()
