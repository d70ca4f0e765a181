"""The API for operators to create, change, drain and remove clusters and nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from django.db.models import QuerySet
from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from clusters.api.provisioning_serializers import (
    ClusterDetailSerializer,
    NewClusterSerializer,
    RemovalSerializer,
    SettingsSerializer,
    SwitchSerializer,
)
from clusters.api.serializers import NodeSerializer
from clusters.api.views import ClusterList
from clusters.models import Cluster, Node
from clusters.overview import cluster_card, node_cards
from clusters.provisioning import cluster_admin, node_admin
from clusters.provisioning.cluster_admin import ClusterExists, ClusterInUse
from clusters.provisioning.node_admin import NodeBusy
from clusters.slurm_partitions.partition_settings import PartitionRefused
from clusters.visibility import clusters_of
from workspaces.access import Principal, may_operate, must_operate
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.api.problems import ApiProblem
from workspaces.models import User
from workspaces.states import Role


class ClusterAdminView(APIView):
    asks_for_password = True
    permission_classes = [AtLeast(Role.VIEWER)]

    def handle_exception(self, exc: Exception) -> HttpResponseBase:  # type: ignore[override]
        if isinstance(exc, ClusterExists | ClusterInUse | NodeBusy):
            exc = ApiProblem(409, str(exc))
        if isinstance(exc, PartitionRefused):
            errors = [(item.field, item.message) for item in exc.problems]
            exc = ApiProblem(400, "; ".join(f"{field}: {message}" for field, message in errors), errors)
        return super().handle_exception(exc)

    def principal(self, request: Request) -> Principal:
        return cast("PrincipalRequest", request).principal

    def operator(self, request: Request) -> User:
        who = self.principal(request).user
        must_operate(who)
        return who

    def cluster(self, request: Request, name: str) -> Cluster:
        """Returns the cluster if the user is an operator or their workspace may use it; raises Http404."""
        who = self.principal(request)
        clusters: QuerySet[Cluster] = clusters_of(who.workspace)
        if may_operate(who.user):
            clusters = Cluster.objects.filter(deleted_at=None)
        cluster = clusters.filter(name=name).first()
        if cluster is None:
            raise Http404
        return cluster

    def respond(self, request: Request, cluster: Cluster, status: int = 200) -> Response:
        card = cluster_card(cluster, self.principal(request).workspace)
        return Response(ClusterDetailSerializer(card).data, status=status)


class Clusters(ClusterAdminView, ClusterList):
    @extend_schema(request=NewClusterSerializer, responses={201: ClusterDetailSerializer})
    def post(self, request: Request) -> Response:
        """Create a cluster. If one with this name exists, the status is 409 and nothing is changed. For
        operators."""
        who = self.operator(request)
        serializer = NewClusterSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = dict(serializer.validated_data)
        return self.respond(request, cluster_admin.create(values.pop("name"), values, who), 201)


class ClusterDetail(ClusterAdminView):
    @extend_schema(responses=ClusterDetailSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One cluster by its name, with its settings, machines and events."""
        return self.respond(request, self.cluster(request, name))

    @extend_schema(request=SettingsSerializer, responses=ClusterDetailSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change the given settings of a cluster; the others are kept. For operators."""
        who, cluster = self.operator(request), self.cluster(request, name)
        serializer = SettingsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        cluster_admin.change(cluster, serializer.validated_data, who)
        return self.respond(request, cluster)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete a cluster without nodes. If it has nodes, the status is 409 and the message names them. For
        operators."""
        who = self.operator(request)
        cluster_admin.delete(self.cluster(request, name), who)
        return Response(status=204)


class ClusterDrain(ClusterAdminView):
    @extend_schema(request=None, responses=ClusterDetailSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Drain the cluster: it takes no new runs, and current runs continue. Idempotent. For operators."""
        who, cluster = self.operator(request), self.cluster(request, name)
        cluster_admin.drain(cluster, who)
        return self.respond(request, cluster)


class ClusterResume(ClusterAdminView):
    @extend_schema(request=None, responses=ClusterDetailSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Let it take runs again. For operators."""
        who, cluster = self.operator(request), self.cluster(request, name)
        cluster_admin.resume(cluster, who)
        return self.respond(request, cluster)


class _NodeView(ClusterAdminView):
    def do(self, request: Request, name: str, verb: Callable[[Node, User], None]) -> Response:
        who = self.operator(request)
        node = Node.objects.select_related("cluster").filter(name=name).first()
        if node is None:
            raise Http404
        verb(node, who)
        node.refresh_from_db()
        workspace = self.principal(request).workspace
        return Response(
            NodeSerializer(node_cards([node], workspace)[0], context={"workspace": workspace}).data
        )


class NodeDrain(_NodeView):
    @extend_schema(request=None, responses=NodeSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Drain the node: it takes no new runs, and current runs continue. Idempotent. For operators."""
        return self.do(request, name, node_admin.drain)


class NodeResume(_NodeView):
    @extend_schema(request=None, responses=NodeSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Let it take runs again. For operators."""
        return self.do(request, name, node_admin.resume)


class NodeMonitorOnly(_NodeView):
    @extend_schema(request=SwitchSerializer, responses=NodeSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Set whether the node is only monitored and takes no runs. For operators."""
        self.operator(request)  # checked before the body, so that others get 403
        on = _switch(request)
        return self.do(request, name, lambda node, who: node_admin.set_monitor_only(node, on, who))


class NodeLowPriority(_NodeView):
    @extend_schema(request=SwitchSerializer, responses=NodeSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Set whether the node has low priority, so that it may disappear at any time. Its runs then restart
        without using up a retry. For operators."""
        self.operator(request)  # checked before the body, so that others get 403
        on = _switch(request)
        return self.do(request, name, lambda node, who: node_admin.set_low_priority(node, on, who))


class NodeRemove(_NodeView):
    @extend_schema(request=RemovalSerializer, responses=NodeSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Remove the node from all lists. If runs are on it, the status is 409 unless `force` is set. The
        history of its runs is kept. For operators."""
        self.operator(request)
        serializer = RemovalSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return self.do(
            request,
            name,
            lambda node, who: node_admin.remove(node, who, force=serializer.validated_data["force"]),
        )


def _switch(request: Request) -> bool:
    serializer = SwitchSerializer(data=request.data)
    serializer.is_valid(raise_exception=True)
    return bool(serializer.validated_data["on"])
