"""The form of a new dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms

from datastores.changes import MAX_DESCRIPTION
from datastores.folder_path import MAX_LENGTH

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
