"""The form of a new dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms

from datastores.changes import MAX_DESCRIPTION
from datastores.folder_path import MAX_LENGTH

TYPED = {"autocomplete": "off", "spellcheck": "false", "class": "th-mono"}


class DatasetForm(forms.Form):
    """`datastores`: the names of those whose files can be listed."""

    name = forms.CharField(
        max_length=100, help_text="For example: birds.", widget=forms.TextInput(attrs=TYPED)
    )
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
