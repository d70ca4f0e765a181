from __future__ import annotations

from typing import Any
from urllib.parse import quote

from rest_framework import serializers

from registry.file_paths import MAX_FILES
from registry.models import ModelFile, ModelVersion, ReferencedFile, RegisteredModel
from registry.scanning.verdicts import entry, verdict

SCAN = (
    "clean, contains_code, not_scanned or dangerous; pending until the scanner has scanned the version, or "
    "while it scans it again."
)


class FileSerializer(serializers.Serializer[ModelFile | ReferencedFile]):
    path = serializers.CharField()
    size_bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    place = serializers.CharField(
        default="",
        help_text=(
            "Where the file lies if that is in a datastore; its size and SHA-256 are then as the node said. "
            "Empty: on the hub."
        ),
    )
    scan = serializers.SerializerMethodField(
        help_text=(
            "The scanner's verdict on the file, with its findings: code that loading the file would run."
        )
    )
    url = serializers.SerializerMethodField(
        help_text="The address of the file's content; supports Range requests."
    )

    def get_scan(self, file: ModelFile | ReferencedFile) -> dict[str, Any]:
        return entry(file.version, file.path)

    def get_url(self, file: ModelFile | ReferencedFile) -> str:
        return f"{file_address(file.version)}/files/{quote(file.path)}"


class VersionSerializer(serializers.Serializer[object]):
    model = serializers.CharField(source="model.name")
    version = serializers.IntegerField(source="number")
    aliases = serializers.SerializerMethodField()
    stage = serializers.CharField(
        help_text="The stage in MLflow's sense: None, Staging, Production or Archived."
    )
    tags = serializers.DictField(child=serializers.CharField())
    kind = serializers.CharField(
        help_text=(
            "The origin of the version: run, logged_model, upload, export, or version (a copy of another "
            "version)."
        )
    )
    source = serializers.CharField(  # type: ignore[assignment]
        help_text="The address from which the version was registered; may be empty."
    )
    run = serializers.CharField(
        source="run_id",
        allow_null=True,
        help_text="The id of the run that the version comes from; null if there is none or it was purged.",
    )
    run_number = serializers.IntegerField(source="run.number", allow_null=True, default=None)
    logged_model = serializers.CharField(source="logged_model_id", allow_null=True)
    parent = serializers.SerializerMethodField(  # type: ignore[assignment]
        help_text="The version that this one was made from, as models:/NAME/NUMBER; null if there is none."
    )
    path = serializers.CharField(
        source="source_path",
        help_text="The registered file or folder, relative to the run's outputs; empty if there is none.",
    )
    description = serializers.CharField()
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()
    scan = serializers.SerializerMethodField(
        help_text=f"The worst verdict of the scanner on the version's files: {SCAN}"
    )
    zip_url = serializers.SerializerMethodField(
        help_text="The address of a zip with all files and the certificate; supports Range requests."
    )
    certificate_url = serializers.SerializerMethodField()
    signature_url = serializers.SerializerMethodField()
    files = FileSerializer(many=True, source="all_files")

    def get_aliases(self, version: ModelVersion) -> list[str]:
        return sorted(alias.name for alias in version.aliases.all())

    def get_parent(self, version: ModelVersion) -> str | None:
        return f"models:/{version.parent.model.name}/{version.parent.number}" if version.parent else None

    def get_scan(self, version: ModelVersion) -> str:
        return verdict(version)

    def get_zip_url(self, version: ModelVersion) -> str:
        return f"{file_address(version)}/zip"

    def get_certificate_url(self, version: ModelVersion) -> str:
        return f"{file_address(version)}/certificate"

    def get_signature_url(self, version: ModelVersion) -> str:
        return f"{file_address(version)}/signature"


class ModelSerializer(serializers.Serializer[object]):
    name = serializers.CharField()
    description = serializers.CharField()
    tags = serializers.DictField(child=serializers.CharField())
    protected = serializers.ListField(
        child=serializers.CharField(), help_text="The aliases that only owners may change."
    )
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    latest_version = serializers.IntegerField(source="last_version")
    aliases = serializers.SerializerMethodField(help_text="Each alias, mapped to the number of its version.")

    def get_aliases(self, model: RegisteredModel) -> dict[str, int]:
        return {alias.name: alias.version.number for alias in model.aliases.all()}


class NamedFileSerializer(serializers.Serializer[object]):
    path = serializers.CharField(max_length=1000, help_text="The path inside the version.")
    sha256 = serializers.RegexField(
        r"^[0-9a-f]{64}$",
        help_text="The SHA-256 of the content, which was sent to /api/v1/uploads/SHA256 before.",
    )


class RegisterSerializer(serializers.Serializer[object]):
    """What to register: either a file or folder among a run's outputs and logged files (`run` and `path`), or
    the address of a logged model or version (`source`), or files that you have sent before (`files`)."""

    run = serializers.CharField(required=False, help_text="The id of the run; used with `path`.")
    path = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        help_text="The path of a file or folder of the run, such as model.pt or checkpoints/last/.",
    )
    source = serializers.CharField(  # type: ignore[assignment]
        required=False,
        help_text=(
            "Replaces `run` and `path`: runs:/ID/PATH, models:/m-ID, models:/NAME/VERSION or "
            "mlflow-artifacts:/…"
        ),
    )
    files = serializers.ListField(
        child=NamedFileSerializer(),
        required=False,
        max_length=MAX_FILES,
        help_text="Replaces `run` and `path`: files of your own, each sent to /api/v1/uploads/SHA256.",
    )
    description = serializers.CharField(required=False, allow_blank=True, default="")
    tags = serializers.DictField(child=serializers.CharField(allow_blank=True), required=False, default=dict)


class TagsField(serializers.DictField):
    child = serializers.CharField(allow_blank=True, allow_null=True)


class ModelChangeSerializer(serializers.Serializer[object]):
    description = serializers.CharField(required=False, allow_blank=True)
    tags = TagsField(
        required=False,
        help_text="Tags to set, each mapped to its value; null removes the tag. Other tags are unchanged.",
    )
    name = serializers.CharField(
        required=False, help_text="A new name for the model; only owners may set it."
    )
    protected = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="The complete list of aliases that only owners may change; only owners may set it.",
    )


class NewModelSerializer(serializers.Serializer[object]):
    name = serializers.CharField()
    description = serializers.CharField(required=False, allow_blank=True, default="")
    tags = serializers.DictField(child=serializers.CharField(allow_blank=True), required=False, default=dict)


class VersionChangeSerializer(serializers.Serializer[object]):
    description = serializers.CharField(required=False, allow_blank=True)
    tags = TagsField(
        required=False,
        help_text="Tags to set, each mapped to its value; null removes the tag. Other tags are unchanged.",
    )
    stage = serializers.CharField(required=False)


class AliasSerializer(serializers.Serializer[object]):
    version = serializers.IntegerField(min_value=1)


class KeySerializer(serializers.Serializer[object]):
    """A public key for birth certificates that this TrainHub signs or has signed."""

    fingerprint = serializers.CharField(
        help_text="The SHA-256 of the public key in DER form, in hexadecimal."
    )
    pem = serializers.CharField()
    since = serializers.DateTimeField()
    is_current = serializers.BooleanField()


def file_address(version: ModelVersion) -> str:
    return f"/api/v1/models/{quote(version.model.name)}/versions/{version.number}"
