"""What owners see of the tokens of others."""

from __future__ import annotations

import pytest

from tests.people import client_of, make_contributor, make_owner, make_person, make_workspace
from workspaces import tokens
from workspaces.models import AuditEvent
from workspaces.states import Role, TokenScope

pytestmark = pytest.mark.django_db
PAGE = "/settings/tokens/all/"


def test_an_owner_sees_those_of_all_members_and_of_no_other_workspace() -> None:
    tokens.issue(make_contributor(), make_workspace(), "laptop", scope=TokenScope.LOG)
    revoked, _ = tokens.issue(make_contributor(), make_workspace(), "gone")
    tokens.revoke(revoked)
    other = make_workspace("other")
    tokens.issue(make_person("mallory", Role.OWNER, other), other, "of another")
    page = client_of(make_owner()).get(PAGE).content.decode()
    assert all(words in page for words in ("carl", "laptop", "log runs", "never"))
    assert "gone" not in page
    assert "of another" not in page
    assert client_of(make_contributor()).get(PAGE).status_code == 403


def test_an_owner_revokes_one_and_the_audit_trail_says_whose() -> None:
    token, text = tokens.issue(make_contributor(), make_workspace(), "laptop")
    assert client_of(make_owner()).post(f"{PAGE}{token.pk}/revoke/").status_code == 302
    assert tokens.authenticate(text) is None
    event = AuditEvent.objects.get(verb="token.revoked")
    assert (event.actor, event.subject, event.detail) == ("olivia", "laptop", {"user": "carl"})
    other = make_workspace("other")
    theirs, _ = tokens.issue(make_person("mallory", Role.OWNER, other), other, "x")
    assert client_of(make_owner()).post(f"{PAGE}{theirs.pk}/revoke/").status_code == 404
