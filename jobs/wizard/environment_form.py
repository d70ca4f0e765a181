"""Step 4: environment, environment variables, experiment, name and tags of the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from jobs.wizard.forms import Raw, StepForm
from jobs.wizard.parts import EnvironmentPart
from trainhub_launch.spec import EXPERIMENT_NAME, VARIABLE_NAME, EnvironmentRef, Variable

MAX_ENVIRONMENT_LENGTH = 500


class EnvironmentForm(StepForm[EnvironmentPart]):
    """The form of the step. Variables and tags are repeated fields: `variable_name`, `variable_value` and
    `variable_kind`, `tag_name` and `tag_value`."""

    template = "jobs/wizard/_environment.html"
    independent_fields = frozenset({"experiment", "display_name"})

    environment = forms.CharField(
        label="Environment",
        max_length=MAX_ENVIRONMENT_LENGTH,
        error_messages={"required": "Choose an environment."},
    )
    # Only a place for labels and errors: the rows are read from the repeated fields below.
    variables = forms.Field(label="Environment variables", required=False)
    experiment = forms.CharField(
        label="Experiment",
        max_length=128,
        error_messages={"required": "Name the experiment, for example 'default'."},
        help_text="Groups the runs that you want to compare.",
        widget=forms.TextInput(attrs={"list": "experiments", "autocomplete": "off"}),
    )
    display_name = forms.CharField(
        label="Run name",
        required=False,
        max_length=200,
        help_text=(
            "Shown in lists. If blank, the name is that of the script or program, with the run's number."
        ),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    tags = forms.Field(label="Tags", required=False)

    def clean_experiment(self) -> str:
        name: str = self.cleaned_data["experiment"]
        if not EXPERIMENT_NAME.match(name):
            raise forms.ValidationError(
                "Experiment: use letters, digits, space, '.', '_' and '-', starting with a letter or digit."
            )
        return name

    def clean_variables(self) -> dict[str, Variable]:
        variables: dict[str, Variable] = {}
        for name, value, kind in self.variable_rows():
            if not name and not value:
                continue
            if not VARIABLE_NAME.match(name):
                label = f"'{name}'" if name else f"the name before '{value}'"
                raise forms.ValidationError(
                    f"Environment variables: {label} is not a name; use letters, digits and '_', not "
                    "starting with a digit."
                )
            if name in variables:
                raise forms.ValidationError(
                    f"Environment variables: {name} is given twice; keep one of the two."
                )
            # Django's own fields reject NUL, but these values are read from the raw data. An environment
            # cannot contain it.
            if "\x00" in value:
                raise forms.ValidationError(
                    f"Environment variables: {name} must not contain a NUL character."
                )
            if kind == "secret" and not value.strip():
                raise forms.ValidationError(
                    f"Environment variables: choose a secret for {name}; new ones are stored under Settings, "
                    "Secrets."
                )
            variables[name] = Variable(secret=value.strip()) if kind == "secret" else Variable(value=value)
        return variables

    def clean_tags(self) -> dict[str, str]:
        tags: dict[str, str] = {}
        for name, value in self.tag_rows():
            if not name and not value:
                continue
            if not name:
                raise forms.ValidationError(f"Tags: give the tag with the value '{value}' a name.")
            if name in tags:
                raise forms.ValidationError(f"Tags: {name} is given twice; keep one of the two.")
            tags[name] = value
        return tags

    def variable_rows(self) -> list[tuple[str, str, str]]:
        names, values, kinds = (self.column(f"variable_{column}") for column in ("name", "value", "kind"))
        # `zip` would silently drop variables of a request that has fewer kinds than names.
        kinds += ["value"] * (len(names) - len(kinds))
        # Values are not stripped: spaces may be part of them.
        return [(name.strip(), value, kind) for name, value, kind in zip(names, values, kinds, strict=False)]

    def tag_rows(self) -> list[tuple[str, str]]:
        return [
            (name.strip(), value.strip())
            for name, value in zip(self.column("tag_name"), self.column("tag_value"), strict=False)
        ]

    def part(self) -> EnvironmentPart:
        data: dict[str, Any] = self.cleaned_data
        return EnvironmentPart(
            read_environment(data["environment"]),
            data["variables"],
            data["experiment"],
            data["display_name"],
            data["tags"],
        )

    @classmethod
    def raw(cls, part: EnvironmentPart) -> Raw:
        return {
            "environment": [write_environment(part.environment)],
            "experiment": [part.experiment],
            "display_name": [part.display_name],
            **_variable_columns(part.variables),
            "tag_name": list(part.tags),
            "tag_value": list(part.tags.values()),
        }

    @property
    def paths(self) -> dict[str, str]:
        return {
            "environment": "environment",
            "environment_variables": "variables",
            "experiment": "experiment",
            "display_name": "display_name",
            "tags": "tags",
        }


def _variable_columns(variables: Mapping[str, Variable]) -> Raw:
    return {
        "variable_name": list(variables),
        "variable_value": [variable.secret or variable.value or "" for variable in variables.values()],
        "variable_kind": [
            "secret" if variable.secret is not None else "value" for variable in variables.values()
        ],
    }


def read_environment(text: str) -> EnvironmentRef:
    """Parses `name` or `name:version`."""
    name, _, version = text.partition(":")
    return EnvironmentRef(name, version)


def write_environment(ref: EnvironmentRef) -> str:
    return f"{ref.name}:{ref.version}" if ref.version else ref.name
