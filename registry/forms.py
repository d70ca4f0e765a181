from __future__ import annotations

from typing import Any

from django import forms

from jobs.models import Run
from registry.models import RegisteredModel
from registry.registering import choices_of, outputs_of
from workspaces.models import Workspace

MOST_RUNS = 50
MOST_CHOICES = 500


class RegisterForm(forms.Form):
    """Which output of which run becomes a version of which model; the rules are `registering.register`'s."""

    run = forms.CharField(required=False, label="Run", widget=forms.Select)
    path = forms.CharField(
        required=False, label="File or folder", help_text="A file such as <code>model.pt</code>, or a folder such as <code>checkpoints/</code>."
    )
    name = forms.CharField(
        required=False, label="Model", help_text="A new name makes a new model; a known name gets the next version.",
    )
    description = forms.CharField(
        required=False, label="Description", widget=forms.Textarea(attrs={"rows": 3}), help_text="What is special about this version."
    )

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            field.widget.attrs |= {"autocomplete": "off", "aria-describedby": f"id_{name}_helptext"}
        runs = list(Run.objects.filter(workspace=workspace, artifacts__isnull=False).distinct()[:MOST_RUNS])
        chosen = self.chosen_run(workspace)
        if chosen and chosen not in runs:
            runs.insert(0, chosen)
        select = self.fields["run"].widget
        assert isinstance(select, forms.Select)
        select.choices = [("", "Choose a run"), *((run.pk, f"{run} · {run.display_name}") for run in runs)]
        self.paths = choices_of(outputs_of(chosen))[:MOST_CHOICES] if chosen else []
        self.names = list(RegisteredModel.objects.filter(workspace=workspace).values_list("name", flat=True)[:MOST_CHOICES])
        self.fields["path"].widget.attrs["list"] = "paths"
        self.fields["name"].widget.attrs["list"] = "names"

    def chosen_run(self, workspace: Workspace) -> Run | None:
        key = self["run"].value()
        return Run.objects.filter(workspace=workspace, pk=key).first() if key else None
