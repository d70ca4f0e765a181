from __future__ import annotations

from typing import Any
from urllib.parse import quote

from rest_framework import serializers

from registry.models import ModelFile, ModelVersion, RegisteredModel
from registry.scanning.verdicts import entry, verdict

SCAN = (
    "clean, contains_code, not_scanned or dangerous; pending while the scanner has not come to it, or "
    "scans it again."
)


class FileSerializer(serializers.Serializer[ModelFile]):
    path = serializers.CharField()
    size_bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    scan = serializers.SerializerMethodField(
        help_text="What loading the file would run, as far as a scanner can tell."
    )
    url = serializers.SerializerMethodField(help_text="Where its bytes are; understands Range.")

    def get_scan(self, file: ModelFile) -> dict[str, Any]:
        return entry(file.version, file.path)

    def get_url(self, file: ModelFile) -> str:
        return f"{address(file.version)}/files/{quote(file.path)}"


class VersionSerializer(serializers.Serializer[Any]):
    model = serializers.CharField(source="model.name")
    version = serializers.IntegerField(source="number")
    aliases = serializers.SerializerMethodField()
    stage = serializers.CharField(help_text="MLflow's: None, Staging, Production or Archived.")
    tags = serializers.DictField(child=serializers.CharField())
    kind = serializers.CharField(
        help_text="Where it comes from: run, logged_model, upload, export or version (a copy)."
    )
    source = serializers.CharField(help_text="The address that was registered.")  # type: ignore[assignment]
    run = serializers.CharField(source="run_id", allow_null=True, help_text="Null once the run was deleted.")
    run_number = serializers.IntegerField(source="run.number", allow_null=True, default=None)
    logged_model = serializers.CharField(source="logged_model_id", allow_null=True)
    parent = serializers.SerializerMethodField(  # type: ignore[assignment]
        help_text="The version that it was made from, as models:/NAME/NUMBER."
    )
    path = serializers.CharField(source="source_path", help_text="What was registered of the run's outputs.")
    description = serializers.CharField()
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()
    scan = serializers.SerializerMethodField(help_text=f"The worst of its files' verdicts: {SCAN}")
    zip_url = serializers.SerializerMethodField(
        help_text="All of it and its certificate as one zip; understands Range."
    )
    certificate_url = serializers.SerializerMethodField()
    signature_url = serializers.SerializerMethodField()
    files = FileSerializer(many=True)

    def get_aliases(self, version: ModelVersion) -> list[str]:
        return sorted(alias.name for alias in version.aliases.all())

    def get_parent(self, version: ModelVersion) -> str | None:
        return f"models:/{version.parent.model.name}/{version.parent.number}" if version.parent else None

    def get_scan(self, version: ModelVersion) -> str:
        return verdict(version)

    def get_zip_url(self, version: ModelVersion) -> str:
        return f"{address(version)}/zip"

    def get_certificate_url(self, version: ModelVersion) -> str:
        return f"{address(version)}/certificate"

    def get_signature_url(self, version: ModelVersion) -> str:
        return f"{address(version)}/signature"


class ModelSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    description = serializers.CharField()
    tags = serializers.DictField(child=serializers.CharField())
    protected = serializers.ListField(
        child=serializers.CharField(), help_text="Aliases that only owners move."
    )
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    latest_version = serializers.IntegerField(source="last_version")
    aliases = serializers.SerializerMethodField(help_text="Alias -> version.")

    def get_aliases(self, model: RegisteredModel) -> dict[str, int]:
        return {alias.name: alias.version.number for alias in model.aliases.all()}


class RegisterSerializer(serializers.Serializer[Any]):
    """What to register: a file or folder among what a run has left and logged, or the address of a logged
    model or version."""

    run = serializers.CharField(required=False, help_text="The run's id; with `path`.")
    path = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        help_text="Such as model.pt, or checkpoints/last/ for a folder.",
    )
    source = serializers.CharField(  # type: ignore[assignment]
        required=False,
        help_text="Instead of both: runs:/ID/PATH, models:/m-ID, models:/NAME/VERSION or mlflow-artifacts:/…",
    )
    description = serializers.CharField(required=False, allow_blank=True, default="")
    tags = serializers.DictField(child=serializers.CharField(allow_blank=True), required=False, default=dict)


class TagsField(serializers.DictField):
    child = serializers.CharField(allow_blank=True, allow_null=True)


class ModelChangeSerializer(serializers.Serializer[Any]):
    description = serializers.CharField(required=False, allow_blank=True)
    tags = TagsField(required=False, help_text="Tag -> value; null takes it away. Others stay.")
    name = serializers.CharField(required=False, help_text="Renames the model; for owners.")
    protected = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="All aliases that only owners move; for owners.",
    )


class NewModelSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    description = serializers.CharField(required=False, allow_blank=True, default="")
    tags = serializers.DictField(child=serializers.CharField(allow_blank=True), required=False, default=dict)


class VersionChangeSerializer(serializers.Serializer[Any]):
    description = serializers.CharField(required=False, allow_blank=True)
    tags = TagsField(required=False, help_text="Tag -> value; null takes it away. Others stay.")
    stage = serializers.CharField(required=False)


class AliasSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField(min_value=1)


class KeySerializer(serializers.Serializer[Any]):
    """A key that this TrainHub signs, or has signed, birth certificates with."""

    fingerprint = serializers.CharField(help_text="SHA-256 of the public key as DER, in hex.")
    pem = serializers.CharField()
    since = serializers.DateTimeField()
    is_current = serializers.BooleanField()


def address(version: ModelVersion) -> str:
    return f"/api/v1/models/{quote(version.model.name)}/versions/{version.number}"
