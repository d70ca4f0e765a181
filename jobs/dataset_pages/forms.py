"""The forms of a new dataset, one for each source of its files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms

from datastores.changes import MAX_DESCRIPTION
from datastores.folder_path import MAX_LENGTH
from datastores.models import Dataset
from datastores.states import DatastoreKind
from workspaces.models import Workspace

MAX_NUMBER = 2**31 - 1
MAX_NAMES = 500
TYPED = {"autocomplete": "off", "spellcheck": "false", "class": "th-mono"}


class _NamedForm(forms.Form):
    name = forms.CharField(
        max_length=100, help_text="For example: birds.", widget=forms.TextInput(attrs=TYPED)
    )


class UploadForm(_NamedForm):
    """`datastores`: the names of those whose files are uploaded; the person chooses if there are several."""

    datastore = forms.ChoiceField(choices=[], help_text="To which the files belong.")
    description = forms.CharField(label="Description (optional)", required=False, max_length=MAX_DESCRIPTION)

    def __init__(self, data: Any, *, datastores: Sequence[str]) -> None:
        super().__init__(data, label_suffix="")
        field: Any = self.fields["datastore"]
        field.choices = [(name, name) for name in datastores]
        if len(datastores) < 2:
            del self.fields["datastore"]


class DatasetForm(_NamedForm):
    """`datastores`: the names of those whose files the hub or a node can list."""

    datastore = forms.ChoiceField(choices=[], help_text="Where the files lie.")
    path = forms.CharField(
        label="Path (optional)",
        max_length=MAX_LENGTH,
        required=False,
        help_text="The folder or file below the datastore; without one, all of it.",
        widget=forms.TextInput(attrs=TYPED),
    )
    description = forms.CharField(label="Description (optional)", required=False, max_length=MAX_DESCRIPTION)

    def __init__(
        self, data: Any, *, datastores: Sequence[str], initial: dict[str, str] | None = None
    ) -> None:
        super().__init__(data, label_suffix="", initial=initial)
        field: Any = self.fields["datastore"]
        field.choices = [(name, name) for name in datastores]


class OutputForm(forms.Form):
    """The outputs of a run. `datastores`: the names of those whose files the hub keeps."""

    run = forms.IntegerField(min_value=1, max_value=MAX_NUMBER, help_text="The number of a run that is over.")
    attempt = forms.IntegerField(
        label="Attempt (optional)",
        required=False,
        min_value=1,
        max_value=MAX_NUMBER,
        help_text="Without one, the latest file of every path.",
    )
    path = forms.CharField(
        label="Folder (optional)",
        max_length=MAX_LENGTH,
        required=False,
        help_text="A folder or file of its outputs, such as outputs/features; without one, all of them.",
        widget=forms.TextInput(attrs=TYPED),
    )
    name = forms.CharField(
        label="Dataset",
        max_length=100,
        help_text="A new name makes a dataset; one whose files the hub keeps gets the next version.",
        widget=forms.TextInput(attrs={**TYPED, "list": "names"}),
    )
    datastore = forms.ChoiceField(
        label="Datastore (optional)", required=False, choices=[], help_text="To which a new dataset belongs."
    )

    def __init__(
        self, data: Any, *, datastores: Sequence[str], workspace: Workspace, initial: dict[str, str]
    ) -> None:
        super().__init__(data, label_suffix="", initial=initial)
        existing = Dataset.objects.filter(workspace=workspace, datastore__kind=DatastoreKind.HUB)
        self.names = list(existing.values_list("name", flat=True)[:MAX_NAMES])
        field: Any = self.fields["datastore"]
        field.choices = [("", "The first one"), *((name, name) for name in datastores)]
        if len(datastores) < 2:
            del self.fields["datastore"]
