"""Who may have which channel, on the page and in the API; and that a secret is never shown again."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from tests.people import (
    api_client,
    client_of,
    make_contributor,
    make_owner,
    make_person,
    make_stranger,
    make_viewer,
    make_workspace,
)
from workspaces.models import AuditEvent, Channel, Delivery
from workspaces.notifications import channels
from workspaces.states import Role

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.org/services/T000/very-secret"
PAGE = "/settings/notifications/"
API = "/api/v1/notification-channels/"
FORM = {
    "kind": "webhook",
    "name": "ops",
    "target": URL,
    "secret": "s3cret",
    "events": ["alert.critical", "run.failed"],
}


def add(client: Client, scope: str = "own", **changed: Any) -> Any:
    return client.post(f"{PAGE}add/{scope}/", {**FORM, **changed})


def text(client: Client, address: str = PAGE) -> str:
    return client.get(address).content.decode()


class TestPage:
    def test_a_contributor_adds_one_of_their_own(self) -> None:
        client = client_of(make_contributor())
        assert add(client).status_code == 302
        channel = Channel.objects.get()
        assert (channel.user, channel.kind, channel.target, channel.secret) == (
            make_contributor(),
            "webhook",
            URL,
            "s3cret",
        )
        assert channel.events == ["alert.critical", "run.failed"]
        assert AuditEvent.objects.get(verb="channel.created").detail == {"scope": "own", "kind": "webhook"}

    def test_neither_the_address_nor_the_secret_is_shown_again(self) -> None:
        client = client_of(make_contributor())
        add(client)
        for address in (PAGE, f"{PAGE}{Channel.objects.get().pk}/", "/settings/"):
            assert "very-secret" not in text(client, address)
            assert "s3cret" not in text(client, address)
        assert "https://hooks.example.org/…" in text(client)

    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"target": "ftp://example.org/"}, "must be an http:// or https:// address"),
            ({"target": "https://user:pass@example.org/"}, "must not hold a user and a password"),
            ({"target": ""}, "This field is required"),
            ({"events": []}, "This field is required"),
            ({"kind": "mail", "target": "ann@example.org"}, "Select a valid choice"),
        ],
    )
    def test_what_is_wrong_is_told_at_its_field(self, changed: dict[str, Any], words: str) -> None:
        answer = add(client_of(make_contributor()), **changed)
        assert answer.status_code == 400
        assert words in answer.content.decode()
        assert not Channel.objects.exists()

    def test_mail_needs_a_server(self, settings: Settings) -> None:
        settings.EMAIL_URL = "smtp://localhost"
        assert add(client_of(make_contributor()), kind="mail", target="ann@example.org").status_code == 302
        answer = add(client_of(make_contributor()), kind="mail", target="nobody")
        assert "must be an email address" in answer.content.decode()
        assert "ann@example.org" in text(client_of(make_contributor()))

    def test_changing_one_keeps_what_is_left_empty(self) -> None:
        client = client_of(make_contributor())
        add(client)
        pk = Channel.objects.get().pk
        form = {"name": "night", "target": "", "secret": "", "events": ["run.failed"]}
        assert client.post(f"{PAGE}{pk}/", form).status_code == 302
        channel = Channel.objects.get()
        assert (channel.name, channel.target, channel.secret, channel.events) == (
            "night",
            URL,
            "s3cret",
            ["run.failed"],
        )

    def test_a_new_address_is_tried_at_once_and_a_wrong_one_is_told_at_its_field(self) -> None:
        client = client_of(make_contributor())
        add(client)
        Channel.objects.update(paused_at=timezone.now(), failing_since=timezone.now(), failures=9)
        form = {"name": "ops", "target": "ftp://example.org/", "events": ["run.failed"]}
        address = f"{PAGE}{Channel.objects.get().pk}/"
        response = client.post(address, form)
        assert response.status_code == 400
        assert "must be an http:// or https:// address" in response.content.decode()
        client.post(address, {**form, "target": "https://hooks.example.org/new"})
        channel = Channel.objects.get()
        assert (channel.target, channel.paused_at, channel.failures) == (
            "https://hooks.example.org/new",
            None,
            0,
        )

    def test_there_are_personal_ones_and_those_of_the_workspace_and_no_others(self) -> None:
        assert add(client_of(make_owner()), "everybody").status_code == 404

    def test_a_test_goes_out_and_takes_a_paused_one_up_again(self) -> None:
        client = client_of(make_contributor())
        add(client)
        Channel.objects.update(
            paused_at=timezone.now(), failing_since=timezone.now(), failures=9, last_error="Answered 500."
        )
        assert "Sending is paused" in text(client)
        client.post(f"{PAGE}{Channel.objects.get().pk}/test/")
        assert (Delivery.objects.get().event, Channel.objects.get().paused_at) == ("test", None)
        assert "1 waiting" in text(client)

    def test_what_was_sent_last_is_listed_with_how_it_went(self) -> None:
        client = client_of(make_contributor())
        add(client)
        pk = Channel.objects.get().pk
        client.post(f"{PAGE}{pk}/test/")
        Delivery.objects.update(state="failed", tries=30, last_error="Answered 500 Internal Server Error.")
        page = text(client, f"{PAGE}{pk}/")
        for words in ("given up", "carl tries the channel ops", "Answered 500 Internal Server Error."):
            assert words in page, words

    def test_deleting_one_drops_what_waits(self) -> None:
        client = client_of(make_contributor())
        add(client)
        client.post(f"{PAGE}{Channel.objects.get().pk}/test/")
        client.post(f"{PAGE}{Channel.objects.get().pk}/delete/")
        assert not Channel.objects.exists()
        assert not Delivery.objects.exists()


class TestAccess:
    def test_a_viewer_has_none(self) -> None:
        client = client_of(make_viewer())
        assert add(client).status_code == 403
        assert client.get(PAGE).status_code == 200

    def test_only_owners_add_and_see_the_workspaces(self) -> None:
        assert add(client_of(make_contributor()), "workspace").status_code == 403
        assert add(client_of(make_owner()), "workspace", name="team hook").status_code == 302
        assert "team hook" not in text(client_of(make_contributor()))
        assert "team hook" in text(client_of(make_owner()))

    def test_nobody_reaches_anothers(self) -> None:
        add(client_of(make_contributor()))
        pk = Channel.objects.get().pk
        stranger = make_person("otto", Role.OWNER, make_workspace("other"))
        for client in (client_of(make_owner()), client_of(stranger)):
            assert client.get(f"{PAGE}{pk}/").status_code == 404
            assert client.post(f"{PAGE}{pk}/delete/").status_code == 404
            assert client.post(f"{PAGE}{pk}/test/").status_code == 404
        assert api_client(make_owner()).get(f"{API}{pk}/").status_code == 404
        assert client_of(make_stranger()).get(PAGE).status_code == 404
        assert Client().get(API).status_code == 401


class TestApi:
    def test_a_channel_is_made_changed_tested_and_deleted(self) -> None:
        program = api_client(make_contributor())
        made = program.post(API, {"name": "ops", "target": URL, "secret": "s3cret"}, "application/json")
        assert made.status_code == 201
        told = made.json()
        assert (told["scope"], told["kind"], told["target"]) == (
            "own",
            "webhook",
            "https://hooks.example.org/…",
        )
        assert (told["is_signed"], told["state"]) == (True, "unused")
        assert "secret" not in told
        one = f"{API}{told['id']}/"
        assert program.patch(one, {"events": ["run.completed"]}, "application/json").json()["events"] == [
            "run.completed"
        ]
        assert Channel.objects.get().target == URL
        assert program.post(f"{one}test/").json()["waiting"] == 1
        assert [item["id"] for item in program.get(API).json()] == [told["id"]]
        assert program.delete(one).status_code == 204

    def test_a_wrong_field_is_named(self) -> None:
        answer = api_client(make_contributor()).post(
            API, {"name": "ops", "target": "ssh://x"}, "application/json"
        )
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "target")

    @pytest.mark.parametrize(
        ("changed", "field", "words"),
        [
            ({"kind": "mail", "target": "ann@example.org"}, "kind", "has no mail server"),
            ({"events": []}, "events", "choose at least one of"),
            ({"scope": "everybody"}, "scope", "is not a valid choice"),
            ({"kind": "pigeon"}, "kind", "is not a valid choice"),
            ({"name": "  "}, "name", "may not be blank"),
            ({"name": "x" * 101}, "name", "no more than 100"),
            ({"secret": "x" * 201}, "secret", "no more than 200"),
        ],
    )
    def test_what_cannot_be_is_refused_at_its_field(
        self, changed: dict[str, Any], field: str, words: str
    ) -> None:
        channel = {"name": "ops", "target": URL, **changed}
        response = api_client(make_contributor()).post(API, channel, "application/json")
        assert (response.status_code, response.json()["errors"][0]["field"]) == (400, field)
        assert words in response.json()["detail"]
        assert not Channel.objects.exists()

    def test_there_is_an_end_to_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(channels, "MOST", 1)
        program, channel = api_client(make_contributor()), {"name": "ops", "target": URL}
        assert program.post(API, channel, "application/json").status_code == 201
        response = program.post(API, channel, "application/json")
        assert (response.status_code, Channel.objects.count()) == (400, 1)
        assert "there are 1 channels already; delete one first" in response.json()["detail"]

    def test_the_workspaces_are_for_owners(self) -> None:
        asked = {"name": "ops", "target": URL, "scope": "workspace"}
        assert api_client(make_contributor()).post(API, asked, "application/json").status_code == 403
        assert (
            api_client(make_viewer()).post(API, {**asked, "scope": "own"}, "application/json").status_code
            == 403
        )
        assert api_client(make_owner()).post(API, asked, "application/json").status_code == 201
