from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.people import make_person, make_workspace
from workspaces import tokens
from workspaces.authentication.token_text import digest, new_token
from workspaces.models import ApiToken, AuditEvent, Membership, User, Workspace
from workspaces.states import Role

pytestmark = pytest.mark.django_db


class TestIssue:
    def test_keeps_only_the_hash_and_what_helps_to_recognise_it(
        self, viewer: User, workspace: Workspace
    ) -> None:
        token, text = tokens.issue(viewer, workspace, "laptop")
        assert token.digest == digest(text)
        assert text.startswith(token.hint)
        assert text not in str(ApiToken.objects.values())

    def test_two_tokens_are_never_alike(self) -> None:
        assert len({new_token("th") for _ in range(100)}) == 100


class TestAuthenticate:
    def test_names_the_person_the_workspace_and_the_present_role(
        self, viewer: User, workspace: Workspace
    ) -> None:
        _, text = tokens.issue(viewer, workspace, "laptop")
        make_person("vera", Role.CONTRIBUTOR)
        who = tokens.authenticate(text)
        assert who is not None
        assert (who.user, who.workspace, who.role) == (viewer, workspace, Role.CONTRIBUTOR)

    def test_stays_in_its_own_workspace(self, viewer: User) -> None:
        other = make_workspace("other")
        make_person("vera", Role.OWNER, other)
        _, text = tokens.issue(viewer, other, "laptop")
        who = tokens.authenticate(text)
        assert who is not None
        assert who.workspace == other

    @pytest.mark.parametrize("text", ["", "th_", "th_nonsense", "\x00", "ä" * 5000])
    def test_knows_no_other_text(self, text: str) -> None:
        assert tokens.authenticate(text) is None

    def test_ends_when_revoked(self, viewer: User, workspace: Workspace) -> None:
        token, text = tokens.issue(viewer, workspace, "laptop")
        tokens.revoke(token)
        assert tokens.authenticate(text) is None

    def test_ends_with_the_membership(self, viewer: User, workspace: Workspace) -> None:
        _, text = tokens.issue(viewer, workspace, "laptop")
        Membership.objects.filter(user=viewer).delete()
        assert tokens.authenticate(text) is None

    def test_ends_when_the_person_is_switched_off(self, viewer: User, workspace: Workspace) -> None:
        _, text = tokens.issue(viewer, workspace, "laptop")
        User.objects.filter(pk=viewer.pk).update(is_active=False)
        assert tokens.authenticate(text) is None

    def test_notes_its_use_but_not_more_than_once_a_minute(self, viewer: User, workspace: Workspace) -> None:
        token, text = tokens.issue(viewer, workspace, "laptop")
        tokens.authenticate(text)
        token.refresh_from_db()
        recently = token.last_used_at
        assert recently is not None
        tokens.authenticate(text)
        token.refresh_from_db()
        assert token.last_used_at == recently
        ApiToken.objects.update(last_used_at=timezone.now() - timedelta(minutes=2))
        tokens.authenticate(text)
        token.refresh_from_db()
        assert token.last_used_at > recently


class TestCommand:
    def test_prints_a_token_that_works(self, owner: User) -> None:
        out = StringIO()
        call_command("token", "create", "olivia", name="nightly", stdout=out)
        who = tokens.authenticate(out.getvalue().strip())
        assert who is not None
        assert who.user == owner
        assert AuditEvent.objects.get().verb == "token.created"

    def test_says_who_is_unknown(self) -> None:
        with pytest.raises(CommandError, match="user: there is no user oliva"):
            call_command("token", "create", "oliva")

    @pytest.mark.parametrize("days", [-1, 3651])
    def test_refuses_a_lifetime_that_cannot_be(self, owner: User, days: int) -> None:
        with pytest.raises(CommandError, match="days: must be from 1 to 3650, or 0") as refused:
            call_command("token", "create", "olivia", days=days)
        assert refused.value.returncode == 2
        assert not ApiToken.objects.exists()

    def test_refuses_a_stranger(self, stranger: User) -> None:
        with pytest.raises(CommandError, match="user: stan is not a member of any workspace"):
            call_command("token", "create", "stan")
