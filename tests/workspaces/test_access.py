from __future__ import annotations

import pytest
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.test import RequestFactory

from tests.people import client_of, make_person, make_workspace, principal_of
from workspaces.access import WorkspaceRequest, needs, principal
from workspaces.models import User
from workspaces.states import Role

pytestmark = pytest.mark.django_db


@needs(Role.CONTRIBUTOR)
def submit_page(request: WorkspaceRequest) -> HttpResponse:
    return HttpResponse(f"{request.principal.role}")


def asked_by(user: User) -> HttpRequest:
    request = RequestFactory().get("/")
    request.user = user
    return request


class TestNeeds:
    def test_lets_in_who_has_the_role_or_more(self, contributor: User, owner: User) -> None:
        assert submit_page(asked_by(contributor)).getvalue() == b"contributor"
        assert submit_page(asked_by(owner)).getvalue() == b"owner"

    def test_tells_a_lesser_member_which_role_is_needed(self, viewer: User) -> None:
        with pytest.raises(PermissionDenied, match="needs the role contributor; you are viewer of Default"):
            submit_page(asked_by(viewer))

    def test_is_not_there_for_a_stranger(self, stranger: User) -> None:
        with pytest.raises(Http404):
            submit_page(asked_by(stranger))

    def test_sends_a_one_time_password_to_be_replaced_first(self, contributor: User) -> None:
        contributor.password_is_one_time = True
        assert submit_page(asked_by(contributor)).headers["Location"] == "/settings/password/"


class TestPrincipal:
    def test_acts_in_the_first_workspace_of_several(self, owner: User) -> None:
        make_person("olivia", Role.VIEWER, make_workspace("second"))
        assert principal(asked_by(owner)).workspace.slug == "default"

    def test_a_role_covers_itself_and_what_is_below(self, contributor: User) -> None:
        who = principal_of(contributor)
        assert [who.may(role) for role in Role] == [True, True, False]


PAGES = ["/settings/", "/settings/password/"]


@pytest.mark.parametrize("page", PAGES)
class TestPages:
    def test_nobody_is_sent_to_the_sign_in_page(self, page: str) -> None:
        assert client_of(None).get(page).headers["Location"] == f"/sign-in/?next={page}"

    def test_a_stranger_finds_nothing(self, page: str, stranger: User) -> None:
        assert client_of(stranger).get(page).status_code == 404

    def test_a_viewer_may_look(self, page: str, viewer: User) -> None:
        assert client_of(viewer).get(page).status_code == 200
