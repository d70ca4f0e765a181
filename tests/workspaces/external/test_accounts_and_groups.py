"""Who somebody is whom a provider or a proxy knows, and of which workspaces they are members."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytest_django import Settings

from tests.people import make_contributor, make_person, make_workspace, principal_of, token_of
from workspaces import people, tokens
from workspaces.authentication.external.accounts import (
    ExternalIdentity,
    SignInRefused,
    connect,
    make_identity,
    sign_in_person,
)
from workspaces.authentication.external.configuration import ExternalSignIn, read_mapping
from workspaces.models import AuditEvent, ExternalAccount, Membership, User
from workspaces.states import Role

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
ISSUER = "https://id.example.org"
ADA = ExternalIdentity(ISSUER, "1815", "OIDC", "ada", "Ada Lovelace", "ada@example.org")


@pytest.fixture(autouse=True)
def mapping(settings: Settings) -> None:
    settings.SIGN_IN = ExternalSignIn(
        groups=read_mapping("vision=default:contributor; leads=default:owner; speech=speech:viewer")
    )


def role_of(name: str, slug: str = "default") -> str | None:
    membership = Membership.objects.filter(user__username=name, workspace__slug=slug).first()
    return None if membership is None else membership.role


class TestAccount:
    def test_is_made_at_the_first_sign_in_and_found_by_the_subject_afterwards(self) -> None:
        user = sign_in_person(ADA)
        assert (user.username, user.email) == ("ada", "ada@example.org")
        assert user.display_name == "Ada Lovelace"
        assert not user.has_usable_password()
        assert sign_in_person(replace(ADA, username="countess", email="")) == user
        assert ExternalAccount.objects.count() == 1

    def test_of_somebody_with_the_verified_address_is_connected(self) -> None:
        carl = make_contributor()
        User.objects.filter(pk=carl.pk).update(email="Ada@Example.org")
        assert sign_in_person(ADA) == carl
        assert ExternalAccount.objects.get().user == carl
        assert AuditEvent.objects.filter(verb="person.connected").count() == 1

    def test_is_not_connected_by_a_name_or_by_an_address_that_is_not_verified(self) -> None:
        """Whoever may choose names at the provider would otherwise take over accounts here."""
        User.objects.filter(pk=make_person("ada").pk).update(email="ada@example.org")
        with pytest.raises(SignInRefused, match="Somebody here is called ADA already"):
            sign_in_person(replace(ADA, email="", username="ADA"))
        assert not ExternalAccount.objects.exists()

    def test_that_is_deactivated_is_refused(self) -> None:
        user = sign_in_person(ADA)
        User.objects.filter(pk=user.pk).update(is_active=False)
        with pytest.raises(SignInRefused, match="is deactivated"):
            sign_in_person(ADA)

    def test_that_is_deactivated_is_not_even_connected(self) -> None:
        User.objects.filter(pk=make_person("x").pk).update(email=ADA.email, is_active=False)
        with pytest.raises(SignInRefused, match="is deactivated"):
            sign_in_person(ADA)
        assert not ExternalAccount.objects.exists()

    def test_is_not_made_where_the_operators_do_not_want_that(self, settings: Settings) -> None:
        settings.SIGN_IN = ExternalSignIn(makes_accounts=False)
        with pytest.raises(SignInRefused, match="Ask an owner of a workspace for an invitation"):
            sign_in_person(ADA)
        assert not User.objects.exists()

    def test_of_somebody_else_cannot_be_connected(self) -> None:
        sign_in_person(ADA)
        with pytest.raises(SignInRefused, match="belongs to somebody else here"):
            connect(make_person("mallory"), ADA)

    def test_takes_no_address_that_somebody_else_has_got(self) -> None:
        user = sign_in_person(replace(ADA, email=""))
        User.objects.filter(pk=make_person("x").pk).update(email="ADA@example.org")
        sign_in_person(ADA)
        assert User.objects.get(pk=user.pk).email == ""


class TestClaims:
    @pytest.mark.parametrize("subject", ["", "x" * 256, "a\x00b"])
    def test_without_a_usable_subject_are_refused(self, subject: str) -> None:
        with pytest.raises(SignInRefused, match="does not say who you are"):
            make_identity(ISSUER, subject, "OIDC", username="a", display_name="", email="", group_names=None)

    @pytest.mark.parametrize(
        ("names", "groups"),
        [
            (["a", 1, None, "b"], {"a", "b"}),
            ("a", {"a"}),
            ({"a": 1}, set()),
            (None, set()),
            ([str(number) for number in range(2000)], {str(number) for number in range(1000)}),
        ],
    )
    def test_have_groups_in_any_form(self, names: object, groups: set[str]) -> None:
        identity = make_identity(
            ISSUER, "1", "OIDC", username="", display_name="a\u202eb", email="none", group_names=names
        )
        assert identity.groups == groups
        assert (identity.display_name, identity.email) == ("", "")

    @pytest.mark.parametrize(
        ("username", "name"), [("Ada L.", "Ada-L."), ("a\x00b", "a-b"), ("///", "ada@example.org")]
    )
    def test_become_a_user_name_that_is_allowed(self, username: str, name: str) -> None:
        assert sign_in_person(replace(ADA, username=username)).username == name


class TestGroups:
    def test_give_change_and_take_memberships_at_each_sign_in(self) -> None:
        make_workspace(), make_workspace("speech"), make_person("olivia", Role.OWNER)
        user = sign_in_person(replace(ADA, groups=frozenset({"vision", "other"})))
        assert (role_of("ada"), role_of("ada", "speech")) == ("contributor", None)
        sign_in_person(replace(ADA, groups=frozenset({"vision", "leads", "speech"})))
        assert (role_of("ada"), role_of("ada", "speech")) == ("owner", "viewer")
        text = token_of(user)
        sign_in_person(replace(ADA, groups=frozenset()))
        assert (role_of("ada"), role_of("ada", "speech")) == (None, None)
        assert tokens.authenticate(text) is None
        events = AuditEvent.objects.filter(actor="OIDC").order_by("pk")
        assert [event.verb for event in events] == [
            "member.added",
            "member.role_changed",
            "member.added",
            "member.removed",
            "member.removed",
        ]
        assert all(event.detail["by_groups"] for event in events)

    def test_leave_what_was_given_by_hand(self) -> None:
        user = sign_in_person(ADA)
        Membership.objects.create(user=user, workspace=make_workspace(), role=Role.VIEWER)
        sign_in_person(replace(ADA, groups=frozenset({"leads"})))
        sign_in_person(ADA)
        assert role_of("ada") == "viewer"

    def test_leave_what_was_changed_by_hand(self) -> None:
        olivia = make_person("olivia", Role.OWNER)
        user = sign_in_person(replace(ADA, groups=frozenset({"vision"})))
        people.change_role(principal_of(olivia), Membership.objects.get(user=user), Role.VIEWER)
        sign_in_person(ADA)
        assert role_of("ada") == "viewer"

    def test_never_take_the_last_owner_and_say_so(self) -> None:
        make_workspace()
        for groups in ({"leads"}, set(), {"vision"}):
            sign_in_person(replace(ADA, groups=frozenset(groups)))
        assert role_of("ada") == "owner"
        assert AuditEvent.objects.filter(verb="member.kept_owner").count() == 2

    def test_with_a_workspace_that_does_not_exist_do_no_harm(self) -> None:
        sign_in_person(replace(ADA, groups=frozenset({"speech"})))
        assert not Membership.objects.exists()

    def test_change_nothing_without_a_mapping(self, settings: Settings) -> None:
        make_workspace()
        sign_in_person(replace(ADA, groups=frozenset({"leads"})))
        settings.SIGN_IN = ExternalSignIn()
        sign_in_person(ADA)
        assert role_of("ada") == "owner"


class TestMapping:
    def test_reads_names_of_ldap_and_takes_the_highest_role(self) -> None:
        text = "cn=vision,ou=groups=default:viewer;\ncn=vision,ou=groups = default : owner"
        assert read_mapping(text) == {"cn=vision,ou=groups": {"default": Role.OWNER}}

    @pytest.mark.parametrize("text", ["vision", "vision=default", "vision=default:boss", "=default:owner"])
    def test_names_the_part_that_is_wrong(self, text: str) -> None:
        with pytest.raises(ValueError, match="must be like GROUP=WORKSPACE:ROLE"):
            read_mapping(f"a=b:viewer; {text}")
