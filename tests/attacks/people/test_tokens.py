"""S22: API tokens that can do more, or live longer, than their person wants; and the row "Secrets at rest"
for tokens."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from tests.people import PASSWORD, api_client, client_of, make_owner, make_person, make_workspace
from workspaces import tokens
from workspaces.authentication.token_text import digest
from workspaces.models import ApiToken, AuditEvent, Channel, Invitation, User
from workspaces.states import Role, TokenScope

pytestmark = pytest.mark.django_db
CHANNEL = {"name": "mine", "target": "https://hooks.example.org/x"}


def with_token(user: User, **options: object) -> Client:
    text = tokens.issue(user, make_workspace(), "test", **options)[1]  # type: ignore[arg-type]
    return Client(headers={"authorization": f"Bearer {text}"})


class TestReadOnly:
    @pytest.fixture
    def reader(self) -> Client:
        return with_token(make_owner(), scope=TokenScope.READ)

    def test_reads_as_its_person(self, reader: Client) -> None:
        assert reader.get("/api/v1/me/").json() == {
            "user": "olivia",
            "display_name": "",
            "email": "",
            "workspace": "default",
            "role": "owner",
            "scope": "read",
            "max_source_files": 20_000,
            "max_source_bytes": 2**29,
        }
        assert reader.get("/api/v1/runs/").status_code == 200

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("post", "/api/v1/runs/"),
            ("post", "/api/v1/runs/bulk/"),
            ("post", "/api/v1/notification-channels/"),
            ("delete", "/api/v1/notification-channels/1/"),
            ("patch", "/api/v1/notification-channels/1/"),
            ("post", "/api/v1/snapshots/"),
            ("post", "/api/v1/nodes/invitations/"),
            ("post", "/api/v1/models/"),
            ("put", "/api/v1/runs/preview/"),
            ("post", "/api/v1/invitations/1/accept/"),
        ],
    )
    def test_changes_nothing(self, reader: Client, method: str, path: str) -> None:
        answer = getattr(reader, method)(path, CHANNEL, content_type="application/json")
        assert answer.status_code == 403, answer.content
        assert (
            answer.json()["detail"] == "This token may only read; make one with more access under Settings."
        )
        assert not Channel.objects.exists()

    def test_asks_by_post_what_changes_nothing(self, reader: Client) -> None:
        for path in ("runs/preview", "specs/export", "specs/import"):
            answer = reader.post(f"/api/v1/{path}/", {}, content_type="application/json")
            assert answer.status_code == 400

    @pytest.mark.parametrize(
        "path", ["/api/v1/runs/preview/../", "/x/api/v1/runs/preview/", "/api/2.0/mlflow/runs/search/x"]
    )
    def test_no_address_that_only_resembles_a_question_is_one(self, path: str) -> None:
        with pytest.raises(tokens.TokenIsLimited):
            tokens.require_scope(TokenScope.READ, "POST", path)

    @pytest.mark.parametrize("root", ["/api/2.0/mlflow", "/ajax-api/2.0/mlflow"])
    @pytest.mark.parametrize("call", ["runs/search", "experiments/search", "logged-models/search"])
    def test_searches_of_mlflow_are_reads(self, root: str, call: str) -> None:
        tokens.require_scope(TokenScope.READ, "POST", f"{root}/{call}")

    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"])
    def test_every_other_method_is_a_change(self, method: str) -> None:
        with pytest.raises(tokens.TokenIsLimited):
            tokens.require_scope(TokenScope.READ, method, "/api/2.0/mlflow/runs/create")


class TestEnd:
    def test_an_expired_token_is_refused_in_a_sentence(self) -> None:
        client = with_token(make_owner(), lifetime=timedelta(days=30))
        ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        answer = client.get("/api/v1/me/")
        assert answer.status_code == 401
        assert "This token expired on" in answer.json()["detail"]
        assert "make a new one under Settings" in answer.json()["detail"]
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")

    def test_one_of_the_version_before_goes_on_and_may_write(self) -> None:
        before = {"name": "old", "digest": digest("th_old"), "hint": "th_old"}
        ApiToken.objects.create(user=make_owner(), workspace=make_workspace(), **before)
        client = Client(headers={"authorization": "Bearer th_old"})
        assert client.get("/api/v1/me/").json()["scope"] == "write"
        assert (
            client.post(
                "/api/v1/notification-channels/", CHANNEL, content_type="application/json"
            ).status_code
            == 201
        )

    @pytest.mark.parametrize(
        ("chosen", "days"), [("30", 30), ("90", 90), ("365", 365), ("", 90), ("none", None)]
    )
    def test_the_page_lets_choose_it_and_takes_90_days_by_itself(self, chosen: str, days: int | None) -> None:
        client_of(make_owner()).post(
            "/settings/tokens/", {"name": "laptop", "scope": "read", "expires": chosen}
        )
        token = ApiToken.objects.get()
        assert token.scope == TokenScope.READ
        lifetime = (
            None
            if token.expires_at is None
            else round((token.expires_at - timezone.now()) / timedelta(days=1))
        )
        assert lifetime == days

    @pytest.mark.parametrize("form", [{"expires": "36500"}, {"expires": "-1"}, {"scope": "admin"}])
    def test_no_other_choice_is_taken(self, form: dict[str, str]) -> None:
        assert (
            client_of(make_owner()).post("/settings/tokens/", {"name": "laptop", **form}).status_code == 400
        )
        assert not ApiToken.objects.exists()


class TestPasswordChange:
    @pytest.fixture
    def person(self) -> User:
        user = make_person("carl", Role.CONTRIBUTOR)
        user.set_password(PASSWORD)
        user.save()
        return user

    def change(self, client: Client, **form: str) -> str:
        new = "another battery of horses"
        sent = {"old_password": PASSWORD, "new_password1": new, "new_password2": new, **form}
        answer = client.post("/settings/password/", sent, follow=True)
        return answer.content.decode()

    def test_ends_every_other_session(self, person: User) -> None:
        mine, other = client_of(person), client_of(person)
        assert other.get("/settings/").status_code == 200
        assert "all your other sessions have ended" in self.change(mine)
        assert mine.get("/settings/").status_code == 200
        assert other.get("/settings/").status_code == 302
        assert Session.objects.count() >= 1

    def test_revokes_tokens_of_all_workspaces_where_asked(self, person: User) -> None:
        make_person("carl", Role.VIEWER, make_workspace("other"))
        texts = [tokens.issue(person, make_workspace(slug), "x")[1] for slug in ("default", "other")]
        assert "2 API tokens of yours are revoked." in self.change(client_of(person), revoke_tokens="on")
        assert [tokens.authenticate(text) for text in texts] == [None, None]
        assert AuditEvent.objects.get(verb="token.all_revoked").detail == {"count": 2}

    def test_says_so_where_they_go_on(self, person: User) -> None:
        client = api_client(person)
        assert "Your API tokens remain valid." in self.change(client_of(person))
        assert client.get("/api/v1/me/").status_code == 200

    def test_is_asked_with_revoking_as_the_usual_answer(self, person: User) -> None:
        page = client_of(person).get("/settings/password/").content.decode()
        assert 'name="revoke_tokens"' in page
        assert "checked" in page

    def test_guessing_the_old_password_there_is_slowed_down_like_signing_in(self, person: User) -> None:
        client = client_of(person)
        for _ in range(5):
            self.change(client, old_password="wrong")
        page = self.change(client)
        assert "Too many failed attempts" in page
        person.refresh_from_db()
        assert person.check_password(PASSWORD)
        assert Client().post("/sign-in/", {"username": "carl", "password": PASSWORD}).status_code == 429


class TestOtherPeoples:
    """The row "Objects by id", for what belongs to people: nothing of another's is there."""

    def test_tokens_members_channels_and_invitations_of_others_are_not_found(self) -> None:
        other = make_workspace("other")
        victim = make_person("otto", Role.OWNER, other)
        token = tokens.issue(victim, other, "x")[0]
        channel = Channel.objects.create(
            workspace=other, user=victim, kind="webhook", name="x", target="https://x.example/s3cret"
        )
        invitation = Invitation.objects.create(workspace=other, user=make_person("stan"), role=Role.OWNER)
        page, program = client_of(make_owner()), api_client(make_owner())
        member = victim.memberships.get()
        for path in (
            f"/settings/tokens/{token.pk}/revoke/",
            f"/settings/members/{member.pk}/role/",
            f"/settings/members/{member.pk}/remove/",
            f"/settings/notifications/{channel.pk}/",
            f"/settings/notifications/{channel.pk}/test/",
            f"/settings/notifications/{channel.pk}/delete/",
            f"/invitations/{invitation.pk}/accept/",
            f"/invitations/{invitation.pk}/decline/",
            f"/settings/members/invitations/{invitation.pk}/withdraw/",
            f"/workspaces/{other.pk}/choose/",
        ):
            assert page.post(path, {"role": "owner"}).status_code == 404, path
        for path in (
            f"/api/v1/notification-channels/{channel.pk}/",
            f"/api/v1/invitations/{invitation.pk}/accept/",
        ):
            for method in ("get", "post", "patch", "delete"):
                assert getattr(program, method)(path).status_code in (404, 405), (method, path)
        assert "s3cret" not in page.get("/settings/notifications/").content.decode()

    def test_the_own_secrets_of_a_channel_are_shown_to_nobody_again(self) -> None:
        owner = make_owner()
        client = client_of(owner)
        sent = {**CHANNEL, "kind": "webhook", "events": ["run.failed"]}
        sent |= {"target": "https://x.example/s3cret", "secret": "t0psecret"}
        assert client.post("/settings/notifications/add/own/", sent).status_code == 302
        pk = Channel.objects.get().pk
        shown = [
            client.get(path).content.decode()
            for path in ("/settings/notifications/", f"/settings/notifications/{pk}/")
        ]
        shown.append(api_client(owner).get(f"/api/v1/notification-channels/{pk}/").content.decode())
        assert not [page for page in shown if "s3cret" in page or "t0psecret" in page]


class TestAtRest:
    def test_tokens_and_passwords_are_stored_as_hashes_alone(self) -> None:
        owner = make_owner()
        text = tokens.issue(owner, make_workspace(), "x")[1]
        client = client_of(owner)
        page = client.post("/settings/members/", {"username": "nora", "role": "viewer"}).content.decode()
        password = page.split("data-new-password")[1].split('data-text="')[1].split('"')[0]
        stored = [
            *ApiToken.objects.values_list(),
            *User.objects.values_list(),
            *AuditEvent.objects.values_list(),
        ]
        assert text not in str(stored)
        assert password not in str(stored)
        assert text not in client.get("/settings/").content.decode()
        assert password not in client.get("/settings/").content.decode()
