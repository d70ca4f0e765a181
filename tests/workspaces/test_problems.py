from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.http import Http404
from django.test import Client
from django.urls import include, path
from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import IntegerField, ListSerializer, Serializer
from rest_framework.views import APIView

from tests.people import api_client, client_of, make_person, token_of
from trainhub_launch.errors import SpecError
from workspaces.api.permissions import AtLeast
from workspaces.api.problems import ApiProblem
from workspaces.models import User
from workspaces.states import Role


class Counts(Serializer[object]):
    count = IntegerField(max_value=8)


class Probe(APIView):
    permission_classes = [AtLeast(Role.VIEWER, writing=Role.CONTRIBUTOR)]

    def get(self, request: Request, what: str) -> Response:
        return Response({"as": str(request.principal.role), "what": what})  # type: ignore[attr-defined]

    def post(self, request: Request, what: str) -> Response:
        errors: dict[str, Exception] = {
            "spec": SpecError("distribution.process_count", "must be between 1 and 8, not 9"),
            "problem": ApiProblem(409, "Another run has this key.", [("Idempotency-Key", "is taken")]),
            "missing": Http404(),
            "throttled": Throttled(7),
            "crash": ZeroDivisionError("secret detail"),
        }
        if what == "nested":
            ListSerializer(data=request.data, child=Counts()).is_valid(raise_exception=True)
        raise errors[what]


urlpatterns = [path("api/v1/probe/<what>/", Probe.as_view()), path("", include("trainhub.urls"))]
pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.workspaces.test_problems")]


@pytest.fixture
def carl(contributor: User) -> Client:
    return api_client(contributor)


def problem(answer: Any) -> dict[str, Any]:
    assert answer.headers["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["status"] == answer.status_code
    return body


class TestWhoAsks:
    def test_nobody_gets_401_and_never_a_sign_in_page(self) -> None:
        answer = Client().get("/api/v1/probe/x/")
        assert problem(answer)["detail"].startswith("Sign in, or send a token")
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="TrainHub"'

    @pytest.mark.parametrize("header", ["Bearer th_wrong", "Bearer", "bearer \x00"])
    def test_a_wrong_token_gets_401_even_beside_a_good_session(self, viewer: User, header: str) -> None:
        answer = client_of(viewer).get("/api/v1/probe/x/", headers={"authorization": header})
        assert (answer.status_code, problem(answer)["title"]) == (401, "Unauthorized")

    def test_a_stranger_gets_404(self, stranger: User) -> None:
        assert client_of(stranger).get("/api/v1/probe/x/").status_code == 404
        assert client_of(stranger).post("/api/v1/probe/spec/").status_code == 404

    def test_a_lesser_role_learns_which_one_is_needed(self, viewer: User) -> None:
        answer = api_client(viewer).post("/api/v1/probe/spec/")
        assert answer.status_code == 403
        assert problem(answer)["detail"].startswith(
            "This needs the role contributor; you are viewer of Default."
        )

    def test_a_session_may_write_with_the_csrf_token_only(self, contributor: User) -> None:
        client = client_of(contributor, csrf=True)
        answer = client.post("/api/v1/probe/spec/")
        assert (answer.status_code, "CSRF" in problem(answer)["detail"]) == (403, True)
        client.cookies[settings.CSRF_COOKIE_NAME] = "a" * 32
        assert client.post("/api/v1/probe/spec/", headers={"X-CSRFToken": "a" * 32}).status_code == 400

    def test_a_one_time_password_opens_nothing(self, viewer: User) -> None:
        User.objects.update(password_is_one_time=True)
        assert problem(client_of(viewer).get("/api/v1/probe/x/"))["status"] == 403

    def test_the_token_decides_the_workspace_and_the_role(self, viewer: User) -> None:
        make_person("vera", Role.OWNER)
        answer = Client().get("/api/v1/probe/x/", headers={"authorization": f"Bearer {token_of(viewer)}"})
        assert answer.json() == {"as": "owner", "what": "x"}


class TestProblems:
    def test_a_wrong_spec_names_field_and_remedy(self, carl: Client) -> None:
        body = problem(carl.post("/api/v1/probe/spec/"))
        assert body["errors"] == [
            {"field": "distribution.process_count", "message": "must be between 1 and 8, not 9"}
        ]
        assert (body["status"], body["title"]) == (400, "Bad Request")

    def test_our_own_carry_their_status_and_errors(self, carl: Client) -> None:
        body = problem(carl.post("/api/v1/probe/problem/"))
        assert (body["status"], body["detail"]) == (409, "Another run has this key.")
        assert body["errors"] == [{"field": "Idempotency-Key", "message": "is taken"}]

    def test_nested_mistakes_are_paths(self, carl: Client) -> None:
        body = problem(carl.post("/api/v1/probe/nested/", [{"count": 1}, {"count": 9}], "application/json"))
        assert body["errors"] == [
            {"field": "[1].count", "message": "Ensure this value is less than or equal to 8."}
        ]

    def test_what_is_wrong_with_an_item_as_a_whole_is_said_of_its_place(self, carl: Client) -> None:
        body = problem(carl.post("/api/v1/probe/nested/", [{"count": 1}, 3], "application/json"))
        (error,) = body["errors"]
        assert (error["field"], "Expected a dictionary" in error["message"]) == ("[1]", True)

    @pytest.mark.parametrize(("what", "status"), [("missing", 404), ("throttled", 429)])
    def test_the_usual_refusals(self, carl: Client, what: str, status: int) -> None:
        answer = carl.post(f"/api/v1/probe/{what}/")
        assert problem(answer)["status"] == status
        assert answer.headers.get("Retry-After") == ("8" if what == "throttled" else None)

    def test_a_wrong_method(self, carl: Client) -> None:
        assert problem(carl.delete("/api/v1/probe/x/"))["status"] == 405

    def test_a_body_that_is_not_json(self, carl: Client) -> None:
        assert problem(carl.post("/api/v1/probe/nested/", "{", "application/json"))["status"] == 400

    def test_a_body_of_another_kind(self, carl: Client) -> None:
        assert problem(carl.post("/api/v1/probe/nested/", "x", "text/csv"))["status"] == 415

    def test_an_unknown_address(self, carl: Client) -> None:
        assert problem(carl.get("/api/v1/nothing/"))["status"] == 404

    def test_a_missing_slash_never_turns_a_post_into_a_look(self, carl: Client) -> None:
        answer = carl.post("/api/v1/probe/spec")
        assert problem(answer)["detail"] == "Addresses of this API end with a slash: /api/v1/probe/spec/"
        assert carl.get("/api/v1/probe/x").headers["Location"] == "/api/v1/probe/x/"

    def test_our_own_fault_is_logged_and_not_told(
        self, carl: Client, caplog: pytest.LogCaptureFixture
    ) -> None:
        body = problem(carl.post("/api/v1/probe/crash/"))
        assert (body["status"], "secret" in str(body)) == (500, False)
        assert "ZeroDivisionError" in caplog.text

    def test_a_page_stays_a_page(self, viewer: User) -> None:
        assert client_of(viewer).get("/nothing/").headers["Content-Type"].startswith("text/html")
