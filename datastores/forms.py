from __future__ import annotations

from django import forms

from datastores.changes import MAX_DESCRIPTION
from datastores.folder_path import MAX_LENGTH


class DatastoreForm(forms.Form):
    """The form of a new datastore of kind folder."""

    name = forms.CharField(
        max_length=100,
        help_text="For example: images.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "class": "th-mono"}),
    )
    path = forms.CharField(
        label="Folder on the nodes",
        max_length=MAX_LENGTH,
        help_text="Its absolute path, the same on each node, such as /mnt/images.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "class": "th-mono"}),
    )
    description = forms.CharField(required=False, max_length=MAX_DESCRIPTION)
