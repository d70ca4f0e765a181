"""The base view of this API: the caller, the run, the body, and errors of the app as problem responses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from django.http import Http404
from django.http.response import HttpResponseBase
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.request import Request
from rest_framework.views import APIView

from jobs.api.spec_errors import read_whole_spec
from jobs.errors import Conflict
from jobs.models import Run
from jobs.querysets import RunQuerySet
from jobs.scheduling.submission import SubmitRefused
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import RunSpec
from workspaces.access import Principal
from workspaces.api.json_body import BoundedJSONParser
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.api.problems import ApiProblem
from workspaces.states import Role

# A run's id has 32 digits; anything decimal and this short is its number.
MAX_NUMBER_DIGITS = 9
HOW_TO_SEND = (
    "Send JSON with Content-Type: application/json. Source code goes to /api/v1/snapshots/ first, as a zip "
    "with Content-Type: application/zip (curl --data-binary @code.zip) or as the form field 'file' "
    "(curl -F file=@code.zip); its answer holds the id for the run's source."
)


class JobsView(APIView):
    """Viewers read, contributors also act."""

    permission_classes = [AtLeast(Role.VIEWER, writing=Role.CONTRIBUTOR)]
    parser_classes = [BoundedJSONParser]

    def handle_exception(self, exc: Exception) -> HttpResponseBase:  # type: ignore[override]
        return super().handle_exception(_as_problem(exc))

    def principal(self, request: Request) -> Principal:
        return cast("PrincipalRequest", request).principal

    def runs(self, request: Request) -> RunQuerySet:
        return Run.objects.for_workspace(self.principal(request).workspace)

    def run(self, request: Request, run: str) -> Run:
        """Returns a run of the workspace by its id or its number. Raises Http404."""
        if "\x00" in run:
            # PostgreSQL stores no such text, and refuses to compare with it.
            raise Http404
        key = {"number": int(run)} if run.isdecimal() and len(run) <= MAX_NUMBER_DIGITS else {"pk": run}
        instance = self.runs(request).select_related("experiment", "created_by").filter(**key).first()
        if instance is None:
            raise Http404
        return cast("Run", instance)

    def attempt(self, request: Request, run: Run) -> int:
        """Returns the number of the requested attempt, by default the latest one. Raises SpecError if it does
        not exist."""
        text = request.query_params.get("attempt")
        if text is None:
            return run.attempt
        if (
            not text.isdecimal()
            or not 1 <= len(text) <= MAX_NUMBER_DIGITS
            or not 1 <= int(text) <= run.attempt
        ):
            limits = (
                f"must be between 1 and {run.attempt}"
                if run.attempt
                else "there is none yet; the run waits for its first"
            )
            raise SpecError("attempt", limits)
        return int(text)

    def spec(self, request: Request) -> RunSpec:
        """Returns the body as a RunSpec. Raises SpecRefused with all wrong fields."""
        return read_whole_spec(self.body(request), self.principal(request))

    def body(self, request: Request) -> Any:
        """Returns the JSON of the request. Raises SpecError for text that cannot be stored."""
        return _storable(request.data)


def _storable(data: object) -> Any:
    """Returns the data. Raises SpecError for lone surrogates (`\\ud800`), which cannot be stored as text."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise SpecError(_wrong_field(data), "is not valid Unicode text") from error
    except RecursionError as error:
        raise SpecError("spec", "is nested too deeply") from error
    return data


def _wrong_field(data: object) -> str:
    for name, value in data.items() if isinstance(data, Mapping) else ():
        try:
            json.dumps([name, value], ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return str(name).encode("ascii", "replace").decode()
    return "spec"


def _as_problem(error: Exception) -> Exception:
    if isinstance(error, Conflict):
        return ApiProblem(409, str(error))
    if isinstance(error, SubmitRefused):
        wrong = [(item.field, item.message) for item in error.findings if item.level == "error"]
        return ApiProblem(400, f"{error.field}: {error.message}", wrong)
    if isinstance(error, UnsupportedMediaType):
        return ApiProblem(415, f"{error.detail} {HOW_TO_SEND}")
    return error
