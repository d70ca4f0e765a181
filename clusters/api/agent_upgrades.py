"""The API by which operators see versions of agents, and order other ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from clusters.agent_upgrades.agent_versions import AgentVersion
from clusters.agent_upgrades.rollout_reports import ClusterAgents, cluster_agents
from clusters.agent_upgrades.rollouts import (
    MAX_AT_ONCE,
    UpgradeRefused,
    cancel_rollout,
    order_for_cluster,
    order_for_node,
)
from clusters.api.provisioning import ClusterAdminView
from clusters.models import AgentRollout, Cluster, Node, NodeUpgrade
from workspaces.api.problems import ApiProblem


class AgentVersionSerializer(serializers.Serializer[AgentVersion | Sequence[AgentVersion]]):
    """The version of one node's agent."""

    node = serializers.CharField(source="node.name")
    version = serializers.CharField()
    is_behind = serializers.BooleanField(help_text="True if the hub's version is newer.")
    can_upgrade_itself = serializers.BooleanField()
    remedy = serializers.CharField(
        help_text="How the node gets the hub's version if it cannot be ordered to; else empty."
    )


class NodeUpgradeSerializer(serializers.Serializer[NodeUpgrade | Sequence[NodeUpgrade]]):
    """One node in a rollout."""

    node = serializers.CharField(source="node.name")
    state = serializers.CharField(help_text="waiting, ordered, done, failed or left out.")
    step = serializers.CharField(help_text="What an ordered node does: fetching, installing or restarting.")
    why = serializers.CharField(help_text="Why it failed or was left out; else empty.")
    from_version = serializers.CharField()
    ended_at = serializers.DateTimeField(allow_null=True)


class RolloutSerializer(serializers.Serializer[AgentRollout]):
    """An order to nodes to run another version."""

    id = serializers.IntegerField()
    version = serializers.CharField()
    state = serializers.CharField(help_text="running, done, failed or canceled.")
    at_once = serializers.IntegerField()
    may_go_back = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    nodes = NodeUpgradeSerializer(source="parts.all", many=True)


class ClusterAgentsSerializer(serializers.Serializer[ClusterAgents]):
    hub_version = serializers.CharField(help_text="The version that an order brings.")
    agents = AgentVersionSerializer(many=True)
    rollout = RolloutSerializer(allow_null=True, help_text="The last order; null if there was none.")


class NodeUpgradeRequestSerializer(serializers.Serializer[Mapping[str, object]]):
    may_go_back = serializers.BooleanField(
        default=False, help_text="True to order the hub's version although the node's is newer."
    )


class RolloutRequestSerializer(NodeUpgradeRequestSerializer):
    at_once = serializers.IntegerField(
        default=1, min_value=1, max_value=MAX_AT_ONCE, help_text="How many nodes at a time."
    )


class AgentUpgradeView(ClusterAdminView):
    def handle_exception(self, exc: Exception) -> HttpResponseBase:  # type: ignore[override]
        if isinstance(exc, UpgradeRefused):
            exc = ApiProblem(409, str(exc))
        return super().handle_exception(exc)

    def _respond_agents(self, cluster: Cluster, status: int = 200) -> Response:
        return Response(ClusterAgentsSerializer(cluster_agents(cluster)).data, status=status)


class ClusterUpgrade(AgentUpgradeView):
    @extend_schema(responses=ClusterAgentsSerializer)
    def get(self, request: Request, name: str) -> Response:
        """The versions of the agents of a cluster, and the last order. For operators."""
        self.operator(request)
        return self._respond_agents(self.cluster(request, name))

    @extend_schema(request=RolloutRequestSerializer, responses={202: ClusterAgentsSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Order all agents of a cluster that can to run the hub's version. The first node that fails ends
        the order. Runs continue. For operators."""
        operator = self.operator(request)
        cluster = self.cluster(request, name)
        serializer = RolloutRequestSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        order_for_cluster(cluster, operator, **serializer.validated_data)
        return self._respond_agents(cluster, 202)

    @extend_schema(responses={200: ClusterAgentsSerializer})
    def delete(self, request: Request, name: str) -> Response:
        """Cancel the order: nodes that have not begun stay as they are. For operators."""
        operator = self.operator(request)
        cluster = self.cluster(request, name)
        rollout = AgentRollout.objects.filter(cluster=cluster).order_by("-pk").first()
        if rollout is not None:
            cancel_rollout(rollout, operator)
        return self._respond_agents(cluster)


class NodeAgentUpgrade(AgentUpgradeView):
    @extend_schema(request=NodeUpgradeRequestSerializer, responses={202: RolloutSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Order one agent to run the hub's version. Its runs continue. For operators."""
        operator = self.operator(request)
        serializer = NodeUpgradeRequestSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        node = Node.objects.filter(name=name, removed_at=None).first()
        if node is None:
            raise Http404
        rollout = order_for_node(node, operator, **serializer.validated_data)
        return Response(RolloutSerializer(rollout).data, status=202)
