"""Clusters and nodes are made, changed, drained and removed. All of it is for operators."""

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
from clusters.visibility import clusters_of, must_operate
from workspaces.access import Principal
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.api.problems import ApiProblem
from workspaces.models import User
from workspaces.states import Role


class _LifeView(APIView):
    asks_for_password = True
    permission_classes = [AtLeast(Role.VIEWER)]

    def handle_exception(self, exc: Exception) -> HttpResponseBase:  # type: ignore[override]
        if isinstance(exc, ClusterExists | ClusterInUse | NodeBusy):
            exc = ApiProblem(409, str(exc))
        return super().handle_exception(exc)

    def principal(self, request: Request) -> Principal:
        return cast("PrincipalRequest", request).principal

    def operator(self, request: Request) -> User:
        who = self.principal(request).user
        must_operate(who)
        return who

    def cluster(self, request: Request, name: str) -> Cluster:
        """Operators see all of them, others those that their workspace may use."""
        who = self.principal(request)
        found: QuerySet[Cluster] = clusters_of(who.workspace)
        if who.user.is_operator:
            found = Cluster.objects.filter(deleted_at=None)
        cluster = found.filter(name=name).first()
        if cluster is None:
            raise Http404
        return cluster

    def told(self, request: Request, cluster: Cluster, status: int = 200) -> Response:
        card = cluster_card(cluster, self.principal(request).workspace)
        return Response(ClusterDetailSerializer(card).data, status=status)


class Clusters(_LifeView, ClusterList):
    @extend_schema(request=NewClusterSerializer, responses={201: ClusterDetailSerializer})
    def post(self, request: Request) -> Response:
        """Make a cluster. 409 where there is one of that name: nothing is changed then. For operators."""
        who = self.operator(request)
        asked = NewClusterSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        values = dict(asked.validated_data)
        return self.told(request, cluster_admin.create(values.pop("name"), values, who), 201)


class ClusterDetail(_LifeView):
    @extend_schema(responses=ClusterDetailSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One cluster by its name, with its settings, machines and journal."""
        return self.told(request, self.cluster(request, name))

    @extend_schema(request=SettingsSerializer, responses=ClusterDetailSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change the settings that are given. For operators."""
        who, cluster = self.operator(request), self.cluster(request, name)
        asked = SettingsSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        cluster_admin.change(cluster, asked.validated_data, who)
        return self.told(request, cluster)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete a cluster that has no nodes; 409 names those that it has. For operators."""
        who = self.operator(request)
        cluster_admin.delete(self.cluster(request, name), who)
        return Response(status=204)


class ClusterDrain(_LifeView):
    @extend_schema(request=None, responses=ClusterDetailSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Give it no new runs; those that run go on. For operators. Asked again, it changes nothing."""
        who, cluster = self.operator(request), self.cluster(request, name)
        cluster_admin.drain(cluster, who)
        return self.told(request, cluster)


class ClusterResume(_LifeView):
    @extend_schema(request=None, responses=ClusterDetailSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Let it take runs again. For operators."""
        who, cluster = self.operator(request), self.cluster(request, name)
        cluster_admin.resume(cluster, who)
        return self.told(request, cluster)


class _NodeView(_LifeView):
    def do(self, request: Request, name: str, verb: Callable[[Node, User], None]) -> Response:
        who = self.operator(request)
        found = Node.objects.select_related("cluster").filter(name=name).first()
        if found is None:
            raise Http404
        verb(found, who)
        found.refresh_from_db()
        workspace = self.principal(request).workspace
        return Response(
            NodeSerializer(node_cards([found], workspace)[0], context={"workspace": workspace}).data
        )


class NodeDrain(_NodeView):
    @extend_schema(request=None, responses=NodeSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Give it no new runs; those that run go on. For operators. Asked again, it changes nothing."""
        return self.do(request, name, node_admin.drain)


class NodeResume(_NodeView):
    @extend_schema(request=None, responses=NodeSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Let it take runs again. For operators."""
        return self.do(request, name, node_admin.resume)


class NodeMonitorOnly(_NodeView):
    @extend_schema(request=SwitchSerializer, responses=NodeSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Only watch it, or end that. For operators."""
        self.operator(request)  # who may not change it is told so, whatever the body says
        on = _switch(request)
        return self.do(request, name, lambda node, who: node_admin.set_monitor_only(node, on, who))


class NodeLowPriority(_NodeView):
    @extend_schema(request=SwitchSerializer, responses=NodeSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Whether it may vanish at any time: its runs then begin anew without using up a retry. For
        operators."""
        self.operator(request)  # who may not change it is told so, whatever the body says
        on = _switch(request)
        return self.do(request, name, lambda node, who: node_admin.set_low_priority(node, on, who))


class NodeRemove(_NodeView):
    @extend_schema(request=RemovalSerializer, responses=NodeSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Off the lists for good; 409 while something runs there, unless by force. The history of its runs
        stays."""
        self.operator(request)
        asked = RemovalSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        return self.do(
            request, name, lambda node, who: node_admin.remove(node, who, force=asked.validated_data["force"])
        )


def _switch(request: Request) -> bool:
    asked = SwitchSerializer(data=request.data)
    asked.is_valid(raise_exception=True)
    return bool(asked.validated_data["on"])
