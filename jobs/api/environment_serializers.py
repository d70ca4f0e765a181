"""The JSON shapes of a workspace's own environments."""

from __future__ import annotations

from rest_framework import serializers

from environments.models import Environment, EnvironmentVersion
from environments.states import EnvironmentKind
from jobs.models import PreparedEnvironment


class NewVersionSerializer(serializers.Serializer[object]):
    name = serializers.CharField(
        help_text=(
            "A new name makes an environment, an existing one its next version. Letters, digits, `.`, `_` "
            "and `-`; names that begin with TrainHub or AzureML are reserved."
        )
    )
    kind = serializers.ChoiceField(
        [kind.value for kind in EnvironmentKind], default=EnvironmentKind.PIP.value
    )
    python = serializers.CharField(
        required=False,
        help_text=(
            "The minor version of Python, such as `3.11`. By default that of the newest version, or for a "
            "new environment that of most nodes."
        ),
    )
    requirements = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="For kind `pip`: the lines of a requirements file.",
    )
    conda = serializers.JSONField(
        required=False,
        help_text=(
            "For kind `conda`: an object like the YAML of conda, with `channels` and `dependencies`, or the "
            "text of the YAML."
        ),
    )


class CloneSerializer(serializers.Serializer[object]):
    new_name = serializers.CharField()
    version = serializers.CharField(required=False, help_text="By default the newest one.")


class BuildSerializer(serializers.ModelSerializer[PreparedEnvironment]):
    node = serializers.CharField(source="node.name")
    cluster = serializers.CharField(source="node.cluster.name")

    class Meta:
        model = PreparedEnvironment
        fields = ("node", "cluster", "prepared_at", "built_at", "build_s")
        extra_kwargs = {
            "built_at": {"help_text": "When its last build there ended; null if it is not known."},
            "build_s": {"help_text": "How many seconds its last build there took; null if it is not known."},
        }


class VersionSummarySerializer(serializers.ModelSerializer[EnvironmentVersion]):
    name = serializers.CharField(source="environment.name")
    version = serializers.CharField(
        source="number", help_text="For the field `environment.version` of a spec."
    )
    kind = serializers.CharField()
    state = serializers.CharField(
        help_text="resolving, which becomes locked or failed. Only a locked version can be used by a run."
    )
    failure = serializers.CharField(help_text="Why it could not be resolved, or empty.")
    requirements = serializers.SerializerMethodField(
        help_text="The lines of kind `pip` as they were given; empty for others."
    )
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)

    class Meta:
        model = EnvironmentVersion
        fields = (
            "name",
            "version",
            "kind",
            "python",
            "state",
            "failure",
            "requirements",
            "source",
            "created_by",
            "created_at",
            "resolved_at",
        )
        extra_kwargs = {"source": {"help_text": "The text as it was given."}}

    def get_requirements(self, version: EnvironmentVersion) -> list[str]:
        return version.source.splitlines() if version.kind == EnvironmentKind.PIP else []


class EnvironmentVersionSerializer(VersionSummarySerializer):
    lock = serializers.CharField(
        help_text=(
            "Every package with its version and hashes: for kind `pip` as pip reads them, for kind `conda` "
            "as JSON; empty until it is locked."
        )
    )
    builds = BuildSerializer(many=True, help_text="The nodes that have prepared it.")

    class Meta(VersionSummarySerializer.Meta):
        fields = (*VersionSummarySerializer.Meta.fields, "lock", "builds")  # type: ignore[assignment]


class EnvironmentDetailSerializer(serializers.ModelSerializer[Environment]):
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    versions = VersionSummarySerializer(many=True, help_text="The newest first.")

    class Meta:
        model = Environment
        fields = ("name", "created_by", "created_at", "versions")
