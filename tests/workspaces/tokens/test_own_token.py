"""A program revokes the token with which it asks, and learns what the hub takes."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from tests.api.contract import ApiClient
from tests.people import client_of, make_viewer, make_workspace, principal_of
from workspaces import tokens
from workspaces.models import AuditEvent
from workspaces.states import TokenScope

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("scope", TokenScope)
def test_every_token_may_revoke_itself_and_no_other(scope: TokenScope) -> None:
    person = make_viewer()
    token, text = tokens.issue(person, make_workspace(), "laptop", scope=scope)
    other, _ = tokens.issue(person, make_workspace(), "desk")
    client = ApiClient(headers={"authorization": f"Bearer {text}"})
    assert client.delete("/api/v1/me/token/").status_code == 204
    assert client.delete("/api/v1/me/token/").status_code == 401
    assert list(tokens.own(principal_of(person))) == [other]
    event = AuditEvent.objects.get(verb="token.revoked")
    assert (event.actor, event.subject) == (person.get_username(), token.name)


def test_a_session_has_no_token() -> None:
    answer = client_of(make_viewer()).delete("/api/v1/me/token/")
    assert (answer.status_code, "without an API token" in answer.json()["detail"]) == (400, True)


def test_the_limits_are_those_of_the_operator(settings: Settings) -> None:
    settings.MAX_SNAPSHOT_FILES, settings.MAX_SNAPSHOT_BYTES = 30_000, 2**30
    me = client_of(make_viewer()).get("/api/v1/me/").json()
    assert (me["max_source_files"], me["max_source_bytes"]) == (30_000, 2**30)
