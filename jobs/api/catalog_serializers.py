"""The JSON shapes of snapshots, environments and examples."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class SnapshotSerializer(serializers.Serializer[object]):
    id = serializers.CharField(
        source="sha256",
        help_text=('The snapshot\'s id, for the field `source` of a spec: {"type": "snapshot", "id": ID}.'),
    )
    sha256 = serializers.CharField()
    files = serializers.SerializerMethodField(help_text="The number of files in the snapshot.")
    size_bytes = serializers.IntegerField()
    warnings = serializers.ListField(
        child=serializers.CharField(),
        help_text="The files that were left out of the snapshot, each with the reason.",
    )

    def get_files(self, snapshot: Any) -> int:
        return len(snapshot.manifest)


class SnapshotUploadSerializer(serializers.Serializer[object]):
    file = serializers.FileField(help_text="The source folder as a zip file.")


class GitSourceSerializer(serializers.Serializer[object]):
    url = serializers.CharField(
        help_text=(
            "The repository's address, as in https://host/owner/name. For a private one store a token as a "
            "secret NAME, and write https://${NAME}@host/owner/name, or a deploy key, and write "
            "ssh://${NAME}@host/owner/name."
        )
    )
    ref = serializers.CharField(
        required=False, help_text="A tag, a branch or a whole commit; by default the repository's branch."
    )
    path = serializers.CharField(required=False, help_text="A folder of it; by default all of it.")


class FetchedCommitSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="snapshot.sha256", help_text="The snapshot's id.")
    commit = serializers.CharField()
    branch = serializers.CharField(help_text="Empty if ref is a tag or a commit.")
    files = serializers.SerializerMethodField(help_text="The number of files in the snapshot.")
    size_bytes = serializers.IntegerField(source="snapshot.size_bytes")
    warnings = serializers.SerializerMethodField(help_text="What of the commit is not in the snapshot.")
    source = serializers.SerializerMethodField(  # type: ignore[assignment]  # no keyword of the class
        help_text="The field `source` of a spec with these files."
    )

    def get_files(self, row: Any) -> int:
        return len(row.snapshot.manifest)

    def get_warnings(self, row: Any) -> list[str]:
        return [*row.warnings, *row.snapshot.warnings]

    def get_source(self, row: Any) -> dict[str, str]:
        names = ("url", "ref", "path", "commit")
        return {"type": "git", "id": row.snapshot.sha256} | {name: getattr(row, name) for name in names}


class EnvironmentSerializer(serializers.Serializer[object]):
    name = serializers.CharField()
    version = serializers.CharField()
    kind = serializers.CharField(
        help_text=(
            "pip: the workspace's own, built on the node from the lock of `requirements`. venv: curated, "
            "built on the node from `requirements`. system: an interpreter that is installed on the "
            "node."
        )
    )
    requirements = serializers.ListField(child=serializers.CharField())
    nodes = serializers.ListField(
        child=serializers.CharField(),
        help_text=(
            "For system, the nodes that have this interpreter. For others, empty: they are built where they "
            "are used."
        ),
    )
    state = serializers.CharField(
        required=False,
        help_text=(
            "Only of the workspace's own: resolving, locked or failed. A run that names no version gets the "
            "newest locked one."
        ),
    )
    notice = serializers.CharField(
        help_text="That it is outdated, deprecated or has a successor, with what to do; empty if it is none."
    )
    package_count = serializers.IntegerField(
        required=False, allow_null=True, help_text="The packages that are installed; null if not known."
    )
    download_bytes = serializers.IntegerField(
        required=False,
        allow_null=True,
        help_text="What a node without any of them downloads; null if not known.",
    )
    last_used_at = serializers.DateTimeField(
        required=False,
        allow_null=True,
        help_text="Only of the workspace's own: when a node last prepared it for a run; null if none has.",
    )


class ExampleSerializer(serializers.Serializer[object]):
    name = serializers.CharField()
    title = serializers.CharField()
    sentence = serializers.CharField()
    framework = serializers.CharField()
    spec = serializers.DictField(help_text="A RunSpec that can be submitted unchanged or modified.")
