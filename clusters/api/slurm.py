"""The API of clusters that are partitions of a Slurm: their test, and the Unix accounts of their people."""

from __future__ import annotations

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from clusters.allocations import slurm_tokens
from clusters.allocations.login_keys import KeyUnavailable
from clusters.api.provisioning import ClusterAdminView
from clusters.api.slurm_serializers import (
    LoginNodeSerializer,
    NewSlurmTokenSerializer,
    NewUnixAccountSerializer,
    SlurmTestSerializer,
    SlurmTokenSerializer,
    UnixAccountSerializer,
)
from clusters.backends.slurm.examination import CheckResult
from clusters.kinds import SLURM
from clusters.models import Cluster, SlurmToken
from clusters.slurm_partitions import account_table, login_node
from clusters.slurm_partitions.cluster_examination import examine_cluster
from workspaces.api.permissions import AtLeast
from workspaces.api.problems import ApiProblem
from workspaces.states import Role


class _PartitionView(ClusterAdminView):
    def partition(self, request: Request, name: str) -> Cluster:
        """Returns the cluster; a cluster of another kind is refused with a sentence."""
        cluster = self.cluster(request, name)
        if cluster.kind != SLURM:
            raise ApiProblem(
                409, f"{cluster.name} is no partition of a Slurm: its nodes run TrainHub's agent."
            )
        return cluster


class ClusterTest(_PartitionView):
    @extend_schema(request=None, responses=SlurmTestSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Test the settings of a Slurm partition: what works, and what is missing. For operators."""
        self.operator(request)
        checks = examine_cluster(self.partition(request, name))
        is_usable = all(check.result is not CheckResult.ERROR for check in checks)
        return Response(SlurmTestSerializer({"is_usable": is_usable, "checks": checks}).data)


class _LoginNodeView(_PartitionView):
    def answer(self, cluster: Cluster) -> Response:
        login = login_node.login_node_of(cluster)
        if login is None:
            raise ApiProblem(404, login_node.no_login_node_sentence(cluster))
        return Response(LoginNodeSerializer(login).data)


class ClusterLoginNode(_LoginNodeView):
    @extend_schema(responses=LoginNodeSerializer)
    def get(self, request: Request, name: str) -> Response:
        """What the login node needs for the hub to log in: the line of its key, and the wrapper with which
        that key runs a few of Slurm's commands and nothing else. For operators."""
        self.operator(request)
        return self.answer(self.partition(request, name))


class ClusterLoginKey(_LoginNodeView):
    @extend_schema(request=None, responses=LoginNodeSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Replace the hub's key for the login node. Slurm does not answer until the new line is there; jobs
        go on meanwhile. For operators."""
        who, cluster = self.operator(request), self.partition(request, name)
        try:
            login_node.rotate_key(cluster, who)
        except KeyUnavailable as error:
            raise ApiProblem(409, str(error)) from error
        return self.answer(cluster)


class _TokenView(_PartitionView):
    def respond_with(self, token: SlurmToken | None) -> Response:
        if token is None:
            raise Http404
        return Response(SlurmTokenSerializer(token).data)

    def new_token(self, request: Request) -> str:
        serializer = NewSlurmTokenSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return str(serializer.validated_data["token"])


class ClusterSlurmToken(_TokenView):
    permission_classes = [AtLeast(Role.CONTRIBUTOR)]

    @extend_schema(responses=SlurmTokenSerializer)
    def get(self, request: Request, name: str) -> Response:
        """The caller's own token for the slurmrestd of a cluster: whose it is and when it expires. If there
        is none, the status is 404."""
        cluster = self.partition(request, name)
        return self.respond_with(slurm_tokens.token_of(cluster, self.principal(request).user))

    @extend_schema(request=NewSlurmTokenSerializer, responses=SlurmTokenSerializer)
    def put(self, request: Request, name: str) -> Response:
        """Enter or renew the caller's own token: that of their Unix account in this cluster."""
        cluster, person = self.partition(request, name), self.principal(request).user
        return self.respond_with(slurm_tokens.store_person_token(cluster, person, self.new_token(request)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Remove the caller's own token. Their runs wait for another one then; jobs go on."""
        cluster, person = self.partition(request, name), self.principal(request).user
        if not slurm_tokens.remove_token(cluster, person, person):
            raise Http404
        return Response(status=204)


class ClusterObserverToken(_TokenView):
    @extend_schema(responses=SlurmTokenSerializer)
    def get(self, request: Request, name: str) -> Response:
        """The token with which the hub looks at a slurmrestd: whose it is and when it expires. For
        operators."""
        self.operator(request)
        return self.respond_with(slurm_tokens.token_of(self.partition(request, name), None))

    @extend_schema(request=NewSlurmTokenSerializer, responses=SlurmTokenSerializer)
    def put(self, request: Request, name: str) -> Response:
        """Enter or renew the token with which the hub looks: that of a plain account. For operators."""
        who, cluster = self.operator(request), self.partition(request, name)
        return self.respond_with(slurm_tokens.store_observer_token(cluster, self.new_token(request), who))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Remove the token with which the hub looks. Jobs go on, and nothing is taken for ended. For
        operators."""
        who, cluster = self.operator(request), self.partition(request, name)
        if not slurm_tokens.remove_token(cluster, None, who):
            raise Http404
        return Response(status=204)


class ClusterUnixAccounts(_PartitionView):
    @extend_schema(operation_id="cluster_unix_accounts_list", responses=UnixAccountSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """The Unix accounts under which people's runs are. For operators."""
        self.operator(request)
        rows = account_table.account_rows(self.partition(request, name))
        return Response(UnixAccountSerializer(rows, many=True).data)

    @extend_schema(request=NewUnixAccountSerializer, responses=UnixAccountSerializer)
    def put(self, request: Request, name: str) -> Response:
        """Enter or change the Unix account of a person; the others are kept. For operators."""
        who, cluster = self.operator(request), self.partition(request, name)
        serializer = NewUnixAccountSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
        row = account_table.set_unix_account(cluster, values["person"], values["account"], who)
        return Response(UnixAccountSerializer(row).data)

    @extend_schema(
        parameters=[OpenApiParameter("person", str, required=True, description="The name of the person.")],
        responses={204: None},
    )
    def delete(self, request: Request, name: str) -> Response:
        """Remove the Unix account of a person, whose next runs are refused then. For operators."""
        who, cluster = self.operator(request), self.partition(request, name)
        if not account_table.remove_unix_account(cluster, request.query_params.get("person", ""), who):
            raise Http404
        return Response(status=204)
