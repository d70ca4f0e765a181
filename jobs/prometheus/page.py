"""`GET /metrics`, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from clusters.models import Alert, Gpu, Node
from clusters.node_reports.heartbeat import status
from clusters.node_reports.hub_uptime import listening_window
from clusters.states import NodeStatus
from clusters.visibility import visible_nodes
from jobs.models import Run
from jobs.prometheus import fleet, gpus
from jobs.prometheus.holders import holders
from jobs.prometheus.launch_delays import delay_metrics
from workspaces.access import Principal, may_operate
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.hub_metrics.processes import living_process_families
from workspaces.object_store.waiting_uploads import waiting_upload_metrics
from workspaces.servers.server_list import server_metrics
from workspaces.states import Role


class TextNegotiation(BaseContentNegotiation):
    """Always answers in Prometheus' text format, whatever formats the header Accept lists."""

    def select_parser(self, request: Request, parsers: Any) -> Any:  # noqa: ARG002 - DRF's signature
        return parsers[0]

    def select_renderer(
        self,
        request: Request,  # noqa: ARG002 - DRF's signature
        renderers: Any,
        format_suffix: str | None = None,  # noqa: ARG002 - DRF's signature
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], CONTENT_TYPE_LATEST


class MetricsPage(APIView):
    """An operator's token reads every node and run; another token those of its workspace, and "busy" for the
    others."""

    permission_classes = [AtLeast(Role.VIEWER)]
    content_negotiation_class = TextNegotiation

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        registry = CollectorRegistry()
        registry.register(FleetCollector(cast("PrincipalRequest", request).principal))
        return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class FleetCollector(Collector):
    """Collects everything that `who` may see, at each scrape."""

    def __init__(self, who: Principal) -> None:
        self._viewer = None if may_operate(who.user) else who.workspace

    def describe(self) -> list[Metric]:
        return []  # else the registry collects once just to learn the names

    def collect(self) -> Iterator[Metric]:
        now = timezone.now()
        span = listening_window(now)
        visible = (
            Node.objects.select_related("cluster") if self._viewer is None else visible_nodes(self._viewer)
        )
        nodes = list(visible.filter(revoked_at=None).order_by("name"))
        statuses = [(node, status(node, now, span)) for node in nodes]
        silent = {node.pk for node, how in statuses if how is not NodeStatus.READY}
        devices: dict[int, list[Gpu]] = {node.pk: [] for node in nodes}
        for gpu in Gpu.objects.filter(node__in=nodes, present=True).order_by("index"):
            devices[gpu.node_id].append(gpu)
        yield from gpus.families(
            [(node, devices[node.pk]) for node in nodes], silent, holders(nodes, self._viewer)
        )
        yield from fleet.nodes(statuses, now)
        yield from fleet.run_metrics(
            Run.objects.not_deleted() if self._viewer is None else Run.objects.for_workspace(self._viewer),
            now,
        )
        if self._viewer is None:
            yield from living_process_families(now)
            yield from delay_metrics(now)
            yield from server_metrics()
            yield from waiting_upload_metrics()
        yield from fleet.alert_metrics(
            list(Alert.objects.filter(state="firing", node__in=nodes).select_related("node"))
        )
