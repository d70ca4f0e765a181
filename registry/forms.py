from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.db.models import Exists, OuterRef

from jobs.models import Artifact, Run, StoredOutput
from jobs.outputs import all_of
from registry.models import RegisteredModel
from registry.registration import MODEL_NAME, choices_of
from trainhub_launch.json_types import JsonValue
from workspaces.models import Workspace

MAX_RUNS = 50
MAX_CHOICES = 500
HELP = {
    "run": "Runs that left something in outputs/.",
    "path": "A file such as model.pt, or a folder such as checkpoints/ with all that is in it.",
    "name": "A new name creates a new model; an existing name gets the next version.",
    "description": "A description of this version (optional).",
}


class RegisterForm(forms.Form):
    """The form that registers outputs of a run as a version. It only reads the values;
    `registration.register` has the rules."""

    run = forms.CharField(required=False, label="Run", widget=forms.Select)
    path = forms.CharField(required=False, label="File or folder")
    name = forms.CharField(required=False, label="Model")
    description = forms.CharField(
        required=False, label="Description", widget=forms.Textarea(attrs={"rows": 3})
    )

    def __init__(
        self,
        data: Mapping[str, JsonValue] | None = None,
        *,
        workspace: Workspace,
        initial: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(data, initial=initial, label_suffix="")
        self._name_run_by_id(workspace)
        for name, field in self.fields.items():
            field.help_text = HELP[name]
            field.widget.attrs |= {"autocomplete": "off", "aria-describedby": f"id_{name}_helptext"}
        runs = list(
            Run.objects.for_workspace(workspace).filter(
                Exists(Artifact.objects.filter(run=OuterRef("pk")))
                | Exists(StoredOutput.objects.filter(folder__run=OuterRef("pk")))
            )[:MAX_RUNS]
        )
        chosen = self.chosen_run(workspace)
        # The run of a link may be older than the newest MAX_RUNS; without this line the select would lose
        # it.
        if chosen and chosen not in runs:
            runs.insert(0, chosen)
        choices = [("", "Choose a run"), *((run.pk, f"{run} · {run.display_name}") for run in runs)]
        self.fields["run"].widget = forms.Select(choices=choices, attrs=self.fields["run"].widget.attrs)
        # Most experiments train one model.
        if chosen and MODEL_NAME.match(chosen.experiment.name):
            self.initial.setdefault("name", chosen.experiment.name)
        self.paths = choices_of(all_of(chosen))[:MAX_CHOICES] if chosen else []
        self.names = list(
            RegisteredModel.objects.filter(workspace=workspace).values_list("name", flat=True)[:MAX_CHOICES]
        )
        self.fields["path"].widget.attrs["list"] = "paths"
        self.fields["name"].widget.attrs["list"] = "names"

    def _name_run_by_id(self, workspace: Workspace) -> None:
        """Replaces a run's number in the initial values by its id: links may contain the number that people
        know."""
        number = str(self.initial.get("run", ""))
        if number.isdecimal() and len(number) < 10:
            self.initial["run"] = (
                Run.objects.for_workspace(workspace)
                .filter(number=int(number))
                .values_list("pk", flat=True)
                .first()
            )

    def chosen_run(self, workspace: Workspace) -> Run | None:
        key = self["run"].value()
        return Run.objects.for_workspace(workspace).filter(pk=key).first() if key else None
