from __future__ import annotations

from django import forms

from clusters.enrolment.join import cluster_names


class InvitationForm(forms.Form):
    cluster = forms.CharField(
        max_length=50,
        initial="local",
        help_text="A run takes all its nodes from one cluster. A new name makes a new one.",
        widget=forms.TextInput(attrs={"list": "clusters", "autocomplete": "off", "spellcheck": "false"}),
    )
    name = forms.CharField(
        max_length=50,
        required=False,
        help_text="What the node will be called here. Empty: by its host name.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    monitor_only = forms.BooleanField(
        required=False,
        label="Only watch it",
        help_text="Its GPUs and numbers are shown here, and no run is ever placed on it.",
    )

    def cluster_names(self) -> list[str]:
        return cluster_names()
