"""The API for the checkpoints of a run, and for another run that goes on from one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base import JobsView
from jobs.api.serializers import RunDetailSerializer
from jobs.checkpoints.states import CheckpointState
from jobs.models import Checkpoint, Run
from jobs.scheduling import run_actions
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import RunSpec


class CheckpointSerializer(serializers.ModelSerializer[Checkpoint]):
    files = serializers.IntegerField(source="file_count", help_text="How many files it has.")

    class Meta:
        model = Checkpoint
        fields = (
            "number",
            "name",
            "state",
            "sign",
            "attempt",
            "origin",
            "detail",
            "size_bytes",
            "files",
            "created_at",
            "finished_at",
        )
        extra_kwargs: Mapping[str, Mapping[str, str]] = {
            "number": {"help_text": "Counts the checkpoints of the run."},
            "name": {"help_text": "Of the file or folder below the folder of checkpoints."},
            "attempt": {"help_text": "Which attempt saved it; 0: it comes from another run, `origin`."},
            "sign": {"help_text": "What showed that it is complete; empty: nothing did."},
            "detail": {"help_text": "Why it is torn."},
        }


class ResumeSerializer(serializers.Serializer[object]):
    checkpoint = serializers.IntegerField(
        required=False,
        min_value=0,
        help_text="The number of one; by default the newest complete one.",
    )


class RunCheckpoints(JobsView):
    @extend_schema(responses=CheckpointSerializer(many=True))
    def get(self, request: Request, run: str) -> Response:
        """The checkpoints of the run that the hub keeps or collects, oldest first."""
        rows = Checkpoint.objects.filter(run=self.run(request, run))
        return Response(CheckpointSerializer(rows, many=True).data)


class RunResume(JobsView):
    @extend_schema(request=ResumeSerializer, responses={201: RunDetailSerializer})
    def post(self, request: Request, run: str) -> Response:
        """Submit the run's spec again, as a new run that begins with a checkpoint of this one."""
        body = ResumeSerializer(data=request.data)
        if not body.is_valid():
            raise SpecError("checkpoint", "must be the number of a checkpoint")
        origin = self.run(request, run)
        spec = resumed_spec(origin, body.validated_data.get("checkpoint"))
        resumed = run_actions.submit(spec, self.principal(request), cloned_from=origin)
        return Response(RunDetailSerializer(resumed).data, status=201)


def resumed_spec(run: Run, number: int | None = None) -> RunSpec:
    """Returns the run's spec for a run that begins with that checkpoint of it, by default with the newest
    complete one. Raises Conflict for an external run."""
    spec = run_actions.clone_spec(run)
    checkpoint = replace(spec.checkpoint, resume_from=run.pk, number=number)
    return replace(spec, checkpoint=checkpoint)


def usable(run: Run) -> list[Checkpoint]:
    """Returns those from which another run may go on, the newest first."""
    states = (CheckpointState.COMPLETE, CheckpointState.UNCONFIRMED)
    return list(Checkpoint.objects.filter(run=run, state__in=states).order_by("-number"))
