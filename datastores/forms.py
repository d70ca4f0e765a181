"""The forms of a new datastore, one for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms

from datastores.changes import MAX_DESCRIPTION
from datastores.folder_path import MAX_LENGTH
from datastores.states import DatastoreKind
from trainhub_launch.data.shares import OPTIONS_HINT
from trainhub_launch.data.stores import DEFAULT_REGION, SignIn

TYPED = {"autocomplete": "off", "spellcheck": "false", "class": "th-mono"}
OF_WORKSPACE = "A secret of the workspace. {}"


def _text(label: str, help_text: str, *, required: bool = True) -> forms.CharField:
    return forms.CharField(
        label=label if required else f"{label} (optional)",
        max_length=MAX_LENGTH,
        required=required,
        help_text=help_text,
        widget=forms.TextInput(attrs=TYPED),
    )


class DatastoreForm(forms.Form):
    """The fields of every kind. The others have the names of `datastores.places`."""

    name = _text("Name", "For example: images.")
    description = forms.CharField(label="Description (optional)", required=False, max_length=MAX_DESCRIPTION)

    def __init__(self, data: Any, *, secrets: Sequence[str]) -> None:
        super().__init__(data, label_suffix="")
        if "secret" in self.fields:
            field: Any = self.fields["secret"]
            field.choices = [("", "No secret"), *((name, name) for name in secrets)]

    def place_fields(self) -> dict[str, str]:
        """Returns what was typed for the place."""
        data = self.cleaned_data
        fields = {name: value for name, value in data.items() if name not in ("name", "description")}
        if "read_only" in fields:
            fields["read_only"] = str(fields["read_only"]).lower()
        if "sign_in" in fields and fields["secret"]:
            fields["sign_in"] = SignIn.SECRET
        return fields


class FolderForm(DatastoreForm):
    path = _text("Folder on the nodes", "Its absolute path, the same on each node, such as /mnt/images.")
    field_order = ("name", "path", "description")


class NfsForm(DatastoreForm):
    host = _text("File server", "Its name or address, such as files.example.org.")
    export = _text("Export", "The path that the server exports, such as /srv/images.")
    path = _text("Path in the export", "Only what is below this folder; without one, all.", required=False)
    options = _text("Options", f"Separated by commas: {OPTIONS_HINT}.", required=False)
    read_only = forms.BooleanField(
        label="Read-only",
        required=False,
        initial=True,
        help_text="Without this, runs can change the files as far as the server lets their account.",
    )
    field_order = ("name", "host", "export", "path", "options", "read_only", "description")


class S3Form(DatastoreForm):
    bucket = _text("Bucket", "For example: my-team-data.")
    path = _text("Path in the bucket", "Only what is below this folder; without one, all.", required=False)
    endpoint = _text(
        "Endpoint", "Of another server than AWS, such as https://minio.example.org:9000.", required=False
    )
    region = _text("Region", f"Without one: {DEFAULT_REGION}.", required=False)
    access_key_id = _text("Access key ID", "The public part of an access key.", required=False)
    secret = forms.ChoiceField(
        label="Secret access key",
        required=False,
        choices=[],
        help_text=OF_WORKSPACE.format("Its value is the secret part of the access key."),
    )
    sign_in = forms.ChoiceField(
        label="Without a secret",
        choices=[(SignIn.NODE, "Use the role of each node"), (SignIn.NONE, "The bucket is public")],
    )
    field_order = (
        "name",
        "bucket",
        "path",
        "endpoint",
        "region",
        "access_key_id",
        "secret",
        "sign_in",
        "description",
    )


class AzureBlobForm(DatastoreForm):
    account = _text("Storage account", "For example: myteam.")
    container = _text("Container", "For example: images.")
    path = _text("Path in the container", "Only what is below this folder; without one, all.", required=False)
    endpoint = _text("Endpoint", "Of another service than Azure's public one.", required=False)
    secret = forms.ChoiceField(
        label="Shared access signature, or account key",
        required=False,
        choices=[],
        help_text=OF_WORKSPACE.format(
            "Better is a signature (SAS) for this container with the rights to read and list, for outputs "
            "and checkpoints of runs also to create, write and delete: it opens nothing else, and ends by "
            "itself."
        ),
    )
    sign_in = forms.ChoiceField(
        label="Without a secret",
        choices=[(SignIn.NODE, "Use the identity of each node"), (SignIn.NONE, "The container is public")],
    )
    field_order = ("name", "account", "container", "path", "endpoint", "secret", "sign_in", "description")


class HttpForm(DatastoreForm):
    url = _text("Address", "Of the folder above the files, such as https://data.example.org/sets/.")
    secret = forms.ChoiceField(
        label="Login",
        required=False,
        choices=[],
        help_text=OF_WORKSPACE.format("Its value is NAME:PASSWORD, or a token."),
    )
    field_order = ("name", "url", "secret", "description")


class HubForm(DatastoreForm):
    field_order = ("name", "description")


FORMS = {
    DatastoreKind.FOLDER: FolderForm,
    DatastoreKind.NFS: NfsForm,
    DatastoreKind.S3: S3Form,
    DatastoreKind.AZURE_BLOB: AzureBlobForm,
    DatastoreKind.HTTP: HttpForm,
    DatastoreKind.HUB: HubForm,
}
