"""The API that takes runs: submission and preview."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base import JobsView
from jobs.api.schema import RUN_SPEC
from jobs.api.serializers import (
    PreviewSerializer,
    RunDetailSerializer,
    SubmittedRunSerializer,
    plan_json,
)
from jobs.models import Run
from jobs.scheduling import run_actions
from jobs.scheduling.submission import MAX_KEY
from trainhub_launch.errors import SpecError
from workspaces.api.permissions import AtLeast
from workspaces.api.problems import ApiProblem
from workspaces.states import Role

KEY = "Idempotency-Key"
CLONED_FROM = "cloned_from"


class RunSubmission(JobsView):
    """Takes submitted runs; `tracking.api.runs` lists runs at the same address."""

    @extend_schema(
        request=RUN_SPEC,
        parameters=[
            OpenApiParameter(
                KEY,
                str,
                OpenApiParameter.HEADER,
                description=(
                    "An arbitrary key. A repeated request with the same key does not create a second run."
                ),
            ),
            OpenApiParameter(
                CLONED_FROM,
                str,
                description="The id or number of the run whose spec this one was started from.",
            ),
        ],
        responses={201: SubmittedRunSerializer, 200: SubmittedRunSerializer},
    )
    def post(self, request: Request) -> Response:
        """Submit a run. The status is 201, or 200 if an earlier request with the same Idempotency-Key already
        created it. `findings` are the warnings and hints of the preview; all errors of a refused spec are in
        `errors`."""
        who, key = self.principal(request), _key(request)
        original = self._original(request)
        try:
            submission = run_actions.submit_with_findings(
                self.spec(request), who, idempotency_key=key, cloned_from=original
            )
        except SpecError as error:
            # The key was used with another spec, or its run is deleted.
            if error.field == KEY:
                raise ApiProblem(409, f"{KEY}: {error.message}", [(error.field, error.message)]) from error
            raise
        findings = [finding.to_json() for finding in submission.findings]
        return Response(
            {**RunDetailSerializer(submission.run).data, "findings": findings},
            status=200 if submission.is_repeat else 201,
            headers={"Location": f"/api/v1/runs/{submission.run.pk}/"},
        )

    def _original(self, request: Request) -> Run | None:
        """Returns the run that the request names as the new run's origin, or None if it names none. Raises
        SpecError for a run that this workspace does not have."""
        name = request.query_params.get(CLONED_FROM)
        if name is None:
            return None
        try:
            return self.run(request, name)
        except Http404 as error:
            raise SpecError(
                CLONED_FROM,
                f"there is no run {name[:40]!r} in this workspace; leave it out, or name another run",
            ) from error


class RunPreview(JobsView):
    permission_classes = [AtLeast(Role.VIEWER)]

    @extend_schema(request=RUN_SPEC, responses=PreviewSerializer)
    def post(self, request: Request) -> Response:
        """Preview a spec: the plan that it would get now, and all errors and warnings. Nothing is created or
        changed."""
        reviewed = run_actions.preview(self.spec(request), self.principal(request))
        laid_out: dict[str, Any] = (
            {"plan": None, "printed": ""} if reviewed.plan is None else plan_json(reviewed.plan.to_json())
        )
        findings = [finding.to_json() for finding in reviewed.findings]
        script = reviewed.job_script
        return Response({**laid_out, "ok": not reviewed.errors, "findings": findings, "job_script": script})


def _key(request: Request) -> str | None:
    key = request.headers.get(KEY)
    if key is not None and not 0 < len(key) <= MAX_KEY:
        raise SpecError(KEY, f"must have 1 to {MAX_KEY} characters")
    return key
