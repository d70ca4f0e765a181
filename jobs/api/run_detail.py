"""The API for one run: detail, cancel, clone, resume, delete, events, members, logs, outputs, checkpoints.
jobs.transfer serves the bytes of files."""

from __future__ import annotations

from urllib.parse import quote

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import outputs
from jobs.api.base import JobsView
from jobs.api.log_serializers import LogListSerializer, OutputListSerializer
from jobs.api.serializers import (
    CheckpointSerializer,
    EventSerializer,
    MemberSerializer,
    ResumeSerializer,
    RunDetailSerializer,
)
from jobs.errors import Conflict
from jobs.logs import log_store
from jobs.models import Checkpoint, Member, StoredOutput
from jobs.retention.removals import removal_sentence
from jobs.scheduling import run_actions
from jobs.states import DataKind, RunState
from trainhub_launch.errors import SpecError
from workspaces.api.permissions import AtLeast
from workspaces.states import Role

ATTEMPT = OpenApiParameter(
    "attempt", int, description="The number of the attempt; by default the latest one."
)


class RunDetail(JobsView):
    @extend_schema(responses=RunDetailSerializer)
    def get(self, request: Request, run: str) -> Response:
        """One run by its id or its number."""
        return Response(RunDetailSerializer(self.run(request, run)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, run: str) -> Response:
        """Delete an ended run. It is hidden, and can be restored until it is purged some days later."""
        run_actions.delete(self.run(request, run), self.principal(request).user)
        return Response(status=204)


class RunCancel(JobsView):
    @extend_schema(request=None, responses={202: RunDetailSerializer})
    def post(self, request: Request, run: str) -> Response:
        """Request that the run be canceled. Repeating the request has no effect."""
        instance = self.run(request, run)
        is_requested = run_actions.cancel(instance, self.principal(request).user)
        instance.refresh_from_db()
        # A repeated request succeeds as long as the cancel is pending or complete.
        if not is_requested and instance.state not in (RunState.CANCEL_REQUESTED, RunState.CANCELED):
            raise Conflict(f"Run {instance.number} is {instance.state} already; there is nothing to cancel.")
        return Response(RunDetailSerializer(instance).data, status=202)


class RunClone(JobsView):
    permission_classes = [AtLeast(Role.VIEWER)]

    @extend_schema(request=None, responses={200: OpenApiTypes.OBJECT})
    def post(self, request: Request, run: str) -> Response:
        """The run's spec, for submitting a similar run. Nothing is submitted. Submit it with
        `POST /api/v1/runs/?cloned_from=RUN`, so that the new run names this one as its origin."""
        return Response(run_actions.clone_spec(self.run(request, run)).to_json())


class RunEvents(JobsView):
    @extend_schema(responses=EventSerializer(many=True))
    def get(self, request: Request, run: str) -> Response:
        """The events of the run, oldest first."""
        return Response(EventSerializer(self.run(request, run).events.all(), many=True).data)


class RunMembers(JobsView):
    @extend_schema(parameters=[ATTEMPT], responses=MemberSerializer(many=True))
    def get(self, request: Request, run: str) -> Response:
        """The processes of an attempt, by rank."""
        instance = self.run(request, run)
        members = Member.objects.filter(
            attempt__run=instance, attempt__number=self.attempt(request, instance)
        )
        return Response(MemberSerializer(members.select_related("node"), many=True).data)


class RunLogs(JobsView):
    @extend_schema(parameters=[ATTEMPT], responses=LogListSerializer)
    def get(self, request: Request, run: str) -> Response:
        """The logs of an attempt, including planned ones that are still empty."""
        instance = self.run(request, run)
        attempt = self.attempt(request, instance)
        members = Member.objects.filter(attempt__run=instance, attempt__number=attempt)
        ranks = {member.log_name: member.rank for member in members}
        # Logs without bytes have no file yet.
        sizes = dict.fromkeys(ranks, 0) | log_store.log_sizes(instance.pk, attempt)
        logs = [
            {
                "name": name,
                "rank": ranks.get(name),
                "size": size,
                "complete": log_store.is_complete(instance.pk, attempt, name),
                "url": f"/api/v1/runs/{instance.pk}/logs/{quote(name)}?attempt={attempt}",
            }
            # Logs without a rank, such as that of the environment build, come first.
            for name, size in sorted(sizes.items(), key=lambda item: (ranks.get(item[0], -1), item[0]))
        ]
        removed = removal_sentence(instance, DataKind.LOGS)
        return Response({"attempt": attempt, "logs": logs, "removed": removed})


class RunOutputs(JobsView):
    @extend_schema(parameters=[ATTEMPT], responses=OutputListSerializer)
    def get(self, request: Request, run: str) -> Response:
        """The files that an attempt left in outputs/ and logs/, or logged, wherever they lie. For the latest
        attempt, files that only earlier attempts left are included."""
        instance = self.run(request, run)
        attempt = self.attempt(request, instance)
        listed = [
            {
                "path": row.path,
                "size_bytes": row.size_bytes,
                "sha256": row.sha256,
                "place": row.place if isinstance(row, StoredOutput) else "",
                "url": f"/api/v1/runs/{instance.pk}/outputs/{quote(row.path)}?attempt={attempt}",
            }
            for row in outputs.all_of(instance, attempt)
        ]
        removed = removal_sentence(instance, DataKind.OUTPUTS)
        return Response({"attempt": attempt, "outputs": listed, "removed": removed})


class RunCheckpoints(JobsView):
    @extend_schema(responses=CheckpointSerializer(many=True))
    def get(self, request: Request, run: str) -> Response:
        """The checkpoints of the run that are kept or collected, oldest first."""
        rows = Checkpoint.objects.shown(self.run(request, run))
        return Response(CheckpointSerializer(rows, many=True).data)


class RunResume(JobsView):
    @extend_schema(request=ResumeSerializer, responses={201: RunDetailSerializer})
    def post(self, request: Request, run: str) -> Response:
        """Submit the run's spec again, as a new run that begins with a checkpoint of this one."""
        body = ResumeSerializer(data=request.data)
        if not body.is_valid():
            raise SpecError("checkpoint", "must be the number of a checkpoint")
        origin = self.run(request, run)
        spec = run_actions.resumed_spec(origin, body.validated_data.get("checkpoint"))
        resumed = run_actions.submit(spec, self.principal(request), cloned_from=origin)
        return Response(RunDetailSerializer(resumed).data, status=201)
