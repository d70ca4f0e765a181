from __future__ import annotations

from typing import Any
from urllib.parse import quote

from rest_framework import serializers

from registry.models import ModelFile, ModelVersion, RegisteredModel


class FileSerializer(serializers.Serializer[ModelFile]):
    path = serializers.CharField()
    size_bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    url = serializers.SerializerMethodField(help_text="Where its bytes are; understands Range.")

    def get_url(self, file: ModelFile) -> str:
        version = file.version
        return f"/api/v1/models/{quote(version.model.name)}/versions/{version.number}/files/{quote(file.path)}"


class VersionSerializer(serializers.Serializer[Any]):
    model = serializers.CharField(source="model.name")
    version = serializers.IntegerField(source="number")
    aliases = serializers.SerializerMethodField()
    run = serializers.CharField(source="run_id", allow_null=True, help_text="Null once the run was deleted.")
    run_number = serializers.IntegerField(source="run.number", allow_null=True, default=None)
    path = serializers.CharField(source="source_path", help_text="What was registered of the run's outputs.")
    description = serializers.CharField()
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()
    files = FileSerializer(many=True)

    def get_aliases(self, version: ModelVersion) -> list[str]:
        return [alias.name for alias in version.aliases.all()]


class ModelSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    description = serializers.CharField()
    created_at = serializers.DateTimeField()
    latest_version = serializers.IntegerField(source="last_version")
    aliases = serializers.SerializerMethodField(help_text="Alias -> version.")

    def get_aliases(self, model: RegisteredModel) -> dict[str, int]:
        return {alias.name: alias.version.number for alias in model.aliases.all()}


class RegisterSerializer(serializers.Serializer[Any]):
    """What to register: a file or folder among the outputs of a run's latest attempt."""

    run = serializers.CharField(help_text="The run's id.")
    path = serializers.CharField(allow_blank=True, help_text="Such as model.pt, or checkpoints/last/ for a folder.")
    description = serializers.CharField(required=False, allow_blank=True, default="")


class AliasSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField(min_value=1)
