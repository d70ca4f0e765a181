"""The API for the packages that the ranks of a run really had."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from environments.models import EnvironmentVersion
from jobs.api.base import JobsView
from jobs.api.run_detail import ATTEMPT
from jobs.sources import package_records
from jobs.sources.package_records import NodePackages


class InstalledPackageSerializer(serializers.Serializer[object]):
    name = serializers.CharField()
    version = serializers.CharField()
    build = serializers.CharField(help_text="Of a package of conda, else empty.")
    installer = serializers.ChoiceField(package_records.INSTALLERS)


class LockDifferenceSerializer(serializers.Serializer[object]):
    name = serializers.CharField()
    locked = serializers.CharField(help_text="Empty if the lock has no such package.")
    installed = serializers.CharField(help_text="Empty if the node lacks the package.")


class NodePackagesSerializer(serializers.Serializer[object]):
    node = serializers.CharField()
    python = serializers.CharField(help_text="The version of the interpreter, as far as its files tell it.")
    packages = InstalledPackageSerializer(
        many=True, allow_null=True, help_text="null if the node has not sent the list."
    )
    is_complete = serializers.BooleanField(
        help_text="False if the node has more packages than a list may have."
    )
    lock_differences = LockDifferenceSerializer(
        many=True,
        allow_null=True,
        help_text="What differs from the lock of the run's environment; null without a lock or a list.",
    )


class NodeDifferenceSerializer(serializers.Serializer[object]):
    name = serializers.CharField()
    versions = serializers.DictField(
        child=serializers.CharField(), help_text="By node; empty where the package is missing."
    )


class RunPackagesSerializer(serializers.Serializer[object]):
    attempt = serializers.IntegerField()
    nodes = NodePackagesSerializer(many=True)
    node_differences = NodeDifferenceSerializer(
        many=True, help_text="The packages that are not the same on all nodes."
    )


class RunPackages(JobsView):
    @extend_schema(parameters=[ATTEMPT], responses=RunPackagesSerializer)
    def get(self, request: Request, run: str) -> Response:
        """The packages that an attempt really had on each of its nodes, and what differs from the lock of its
        environment and between the nodes."""
        instance = self.run(request, run)
        attempt = self.attempt(request, instance)
        records = package_records.read_package_records(instance, attempt)
        version = package_records.locked_version(instance)
        answer = {
            "attempt": attempt,
            "nodes": [_node_json(record, version) for record in records],
            "node_differences": package_records.node_differences(records),
        }
        return Response(RunPackagesSerializer(answer).data)


def _node_json(record: NodePackages, version: EnvironmentVersion | None) -> dict[str, Any]:
    changes = None
    if version is not None and record.packages is not None:
        changes = [
            {"name": change.name, "locked": change.before, "installed": change.after}
            for change in package_records.lock_differences(version, record)
        ]
    return {
        "node": record.node,
        "python": record.python,
        "packages": record.packages,
        "is_complete": record.is_complete,
        "lock_differences": changes,
    }
