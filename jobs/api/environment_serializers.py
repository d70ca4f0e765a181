"""The JSON shapes of a workspace's own environments."""

from __future__ import annotations

from rest_framework import serializers

from environments.images.source import split_source
from environments.kinds.registry_secrets import registry_secret_of
from environments.models import Environment, EnvironmentVersion
from environments.projects.source_text import is_project
from environments.states import EnvironmentKind
from jobs.builds.node_environments import NodeEnvironment
from jobs.hub_files.stored_parts import HubFiles
from jobs.models import EnvironmentBuild


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
    pyproject = serializers.CharField(
        required=False,
        help_text=(
            "For kind `pip`, instead of `requirements`: the text of a pyproject.toml. Extras and groups that "
            "it names in `[tool.trainhub]` are installed, too."
        ),
    )
    uv_lock = serializers.CharField(
        required=False,
        help_text="With `pyproject`: its uv.lock, which is taken as it is, not resolved again.",
    )
    pylock = serializers.CharField(
        required=False,
        help_text="For kind `pip`, instead of `requirements`: the text of a pylock.toml (PEP 751).",
    )
    image = serializers.CharField(
        required=False,
        help_text=(
            "For kind `image`: its reference, such as `ghcr.io/team/train:1`. What it means when the version "
            "is made is kept."
        ),
    )
    registry_secret = serializers.CharField(
        required=False,
        help_text=(
            "For kinds `image` and `dockerfile`: the name of a secret of the workspace whose value is "
            "`user:password` for the registry of the image, or of the images that the Dockerfile names."
        ),
    )
    dockerfile = serializers.CharField(
        required=False,
        help_text="For kind `dockerfile`: its text. A node builds the image, and the hub keeps it.",
    )
    base_image = serializers.CharField(
        required=False,
        help_text=(
            "For kind `dockerfile`, instead of `dockerfile`: the image to build on. The Dockerfile is "
            "written from it, `pip_packages` and `debian_packages`."
        ),
    )
    pip_packages = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="With `base_image`: requirements such as `numpy==2.1.0`.",
    )
    debian_packages = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="With `base_image`: names such as `git`."
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


class OutdatedSerializer(serializers.Serializer[object]):
    reason = serializers.CharField(max_length=300, help_text="Why it should no longer be used: a sentence.")
    successor = serializers.CharField(
        required=False,
        help_text="What to use instead: the name of an environment, or NAME:NUMBER for a version.",
    )


class NodeBuildSerializer(serializers.Serializer[NodeEnvironment]):
    node = serializers.CharField(source="node.name")
    cluster = serializers.CharField(source="node.cluster.name")
    state = serializers.CharField(
        help_text="ready; or that of the newest build ordered there: queued, building, failed, canceled."
    )
    reason = serializers.CharField(help_text="Why the newest build failed or was canceled, or empty.")
    build = serializers.CharField(
        source="build.id", allow_null=True, default=None, help_text="The newest build ordered there."
    )
    prepared_at = serializers.DateTimeField(
        allow_null=True, help_text="When a run or a build used it there last; null if none has."
    )
    built_at = serializers.DateTimeField(
        allow_null=True, help_text="When its last build there ended; null if it is not known."
    )
    build_s = serializers.FloatField(
        allow_null=True, help_text="How many seconds its last build there took; null if it is not known."
    )


class BuildSerializer(serializers.ModelSerializer[EnvironmentBuild]):
    node = serializers.CharField(source="node.name")
    cluster = serializers.CharField(source="node.cluster.name")
    purpose = serializers.CharField(
        help_text="install, or make: the node makes what the version consists of, and uploads it."
    )
    state = serializers.CharField(help_text="queued, building, built, failed or canceled.")
    reason = serializers.CharField(help_text="Why it failed, or who canceled it; else empty.")
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    log = serializers.SerializerMethodField(help_text="The address of its log, which grows while it builds.")

    class Meta:
        model = EnvironmentBuild
        fields = (
            "id",
            "name",
            "version",
            "node",
            "cluster",
            "purpose",
            "state",
            "reason",
            "created_by",
            "created_at",
            "started_at",
            "ended_at",
            "log",
        )

    def get_log(self, build: EnvironmentBuild) -> str:
        return f"/api/v1/builds/{build.pk}/log"


class BuildRequestSerializer(serializers.Serializer[object]):
    nodes = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="Names of nodes; by default all of the workspace that can build it.",
    )


class VersionSummarySerializer(serializers.ModelSerializer[EnvironmentVersion]):
    name = serializers.CharField(source="environment.name")
    version = serializers.CharField(
        source="number", help_text="For the field `environment.version` of a spec."
    )
    kind = serializers.CharField()
    state = serializers.CharField(
        help_text=(
            "resolving, which becomes locked or failed; or building in between, where a node must make it. "
            "Only a locked version can be used by a run."
        )
    )
    failure = serializers.CharField(help_text="Why it could not be resolved, or empty.")
    requirements = serializers.SerializerMethodField(
        help_text="The lines of requirements as they were given; empty for other sources."
    )
    image = serializers.SerializerMethodField(
        help_text="The reference of kind `image` as it was given; empty for others."
    )
    registry_secret = serializers.SerializerMethodField(
        help_text="The name of the secret with the registry's login, or empty."
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
            "image",
            "registry_secret",
            "source",
            "package_count",
            "download_bytes",
            "outdated",
            "successor",
            "created_by",
            "created_at",
            "resolved_at",
        )
        extra_kwargs = {
            "source": {"help_text": "The text as it was given."},
            "package_count": {"help_text": "The packages of the lock; null if that is not known."},
            "download_bytes": {
                "help_text": "What a node without any of the packages downloads; null if that is not known."
            },
            "outdated": {"help_text": "Why it should no longer be used, or empty."},
            "successor": {"help_text": "What to use instead of an outdated version, or empty."},
        }

    def get_requirements(self, version: EnvironmentVersion) -> list[str]:
        is_list = version.kind == EnvironmentKind.PIP and not is_project(version.source)
        return version.source.splitlines() if is_list else []

    def get_image(self, version: EnvironmentVersion) -> str:
        return split_source(version.source).image if version.kind == EnvironmentKind.IMAGE else ""

    def get_registry_secret(self, version: EnvironmentVersion) -> str:
        return registry_secret_of(version.kind, version.source)


class HubFilesSerializer(serializers.Serializer[HubFiles]):
    files = serializers.IntegerField(help_text="The layers of the image, or the files of its packages.")
    stored = serializers.IntegerField(help_text="How many of these the hub has stored.")
    bytes = serializers.IntegerField()
    stored_bytes = serializers.IntegerField()
    state = serializers.CharField(
        help_text="Of the last order to fetch them: waiting, fetching, fetched or failed; empty without one."
    )
    failure = serializers.CharField(help_text="Why not all could be fetched, or empty.")


class EnvironmentVersionSerializer(VersionSummarySerializer):
    lock = serializers.CharField(
        help_text=(
            "Every package with its version and hashes: of kind `pip` as pip reads them, of kind `conda` as "
            "JSON, of kinds `image` and `dockerfile` as JSON with digest, layers and variables; empty until "
            "it is locked."
        )
    )
    waiting = serializers.CharField(
        help_text="Why no node makes a version that is building, with the remedy; empty if one does."
    )
    hub_files = HubFilesSerializer(
        allow_null=True,
        help_text="What the hub has stored for nodes; null if it is not locked, or they get nothing there.",
    )
    builds = NodeBuildSerializer(many=True, help_text="The nodes that have it, or were ordered to build it.")

    class Meta(VersionSummarySerializer.Meta):
        fields = (  # type: ignore[assignment]
            *VersionSummarySerializer.Meta.fields,
            *("lock", "waiting", "hub_files", "builds"),
        )


class EnvironmentDetailSerializer(serializers.ModelSerializer[Environment]):
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    versions = VersionSummarySerializer(many=True, help_text="The newest first.")

    class Meta:
        model = Environment
        fields = ("name", "created_by", "created_at", "deleted_at", "versions")
        extra_kwargs = {
            "deleted_at": {"help_text": "Since when it is readable only; null if it can be used."}
        }
