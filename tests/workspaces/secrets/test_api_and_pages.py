"""The page, the API and the command: values go in, and come out nowhere."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from tests.people import (
    api_client,
    client_of,
    make_contributor,
    make_owner,
    make_person,
    make_viewer,
    make_workspace,
)
from workspaces import checks
from workspaces.models import Secret
from workspaces.secrets import keyring, rotation, store, uses
from workspaces.states import Role

pytestmark = pytest.mark.django_db
VALUE = "hf_not-for-your-eyes"
API = "/api/v1/secrets/"
PAGE = "/settings/secrets/"


def put(client: Client, name: str = "hf-token", **body: Any) -> Any:
    return client.put(f"{API}{name}/", {"value": VALUE, **body}, "application/json")


def text(client: Client, address: str = PAGE) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


class TestApi:
    def test_takes_a_value_and_lists_names_only(self) -> None:
        olivia = api_client(make_owner())
        answer = put(olivia)
        assert (answer.status_code, answer.content) == (204, b"")
        assert put(olivia, "own", scope="person").status_code == 204
        listed = olivia.get(API)
        assert [(row["name"], row["scope"], row["version"]) for row in listed.json()] == [
            ("hf-token", "workspace", 1),
            ("own", "person", 1),
        ]
        assert VALUE not in listed.content.decode()
        assert [row["name"] for row in api_client(make_viewer()).get(API).json()] == ["hf-token"]

    def test_tells_who_used_one(self) -> None:
        olivia = api_client(make_owner())
        put(olivia)
        uses.take(make_workspace(), make_owner(), {"hf-token"}, uses.RUN, "a" * 32, "alpha")
        detail = olivia.get(f"{API}hf-token/").json()
        assert [(use["kind"], use["subject"], use["node"], use["count"]) for use in detail["uses"]] == [
            ("run", "a" * 32, "alpha", 1)
        ]
        assert detail["last_used_at"] == detail["uses"][0]["last_at"]

    @pytest.mark.parametrize(
        ("name", "body", "field"),
        [
            ("hf-token", {"value": ""}, "value"),
            ("hf-token", {"value": "a\0b"}, "value"),
            ("hf-token", {"value": "x" * 40_000}, "value"),
            ("hf-token", {"value": None}, "value"),
            ("hf-token", {"scope": "everybody"}, "scope"),
            ("a b", {}, "name"),
        ],
    )
    def test_what_is_wrong_names_its_field(self, name: str, body: dict[str, Any], field: str) -> None:
        answer = put(api_client(make_owner()), name, **body)
        assert answer.status_code == 400
        assert [error["field"] for error in answer.json()["errors"]] == [field]
        assert not Secret.objects.exists()

    def test_spaces_and_line_ends_are_part_of_a_value(self) -> None:
        put(api_client(make_owner()), value="  two lines\nand a space \n")
        assert store.value_of(Secret.objects.get()) == "  two lines\nand a space \n"

    def test_roles(self) -> None:
        olivia, carl, vera = (api_client(make()) for make in (make_owner, make_contributor, make_viewer))
        put(olivia)
        assert put(carl).status_code == 403
        assert put(carl, "own", scope="person").status_code == 204
        assert put(vera, "own", scope="person").status_code == 403
        assert carl.delete(f"{API}hf-token/").status_code == 403
        assert vera.get(f"{API}own/?scope=person").status_code == 404
        assert carl.delete(f"{API}own/?scope=person").status_code == 204
        assert olivia.delete(f"{API}hf-token/").status_code == 204
        assert not Secret.objects.exists()

    def test_a_scope_that_is_none_is_named(self) -> None:
        answer = api_client(make_owner()).get(f"{API}hf-token/?scope=x")
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "scope")

    def test_without_the_keys_nothing_is_stored(self, settings: Settings, tmp_path: Path) -> None:
        olivia = api_client(make_owner())
        put(olivia)
        settings.SECRETS_KEYRING = tmp_path / "gone" / "keys"
        answer = put(olivia, value="another-value-2")
        assert answer.status_code == 503
        assert "was not stored: the keys of the secrets" in answer.json()["detail"]
        assert not keyring.exists(), "a new file would hide that the old one is missing"
        assert Secret.objects.get().version == 1


@pytest.fixture
def confirmed() -> Client:
    """An owner who has just signed in."""
    return client_of(make_owner())


class TestPages:
    def test_store_show_and_delete(self, confirmed: Client) -> None:
        form = {"name": "hf-token", "value": VALUE, "scope": "workspace"}
        assert confirmed.post(f"{PAGE}store/", form).status_code == 302
        secret = Secret.objects.get()
        assert store.value_of(secret) == VALUE
        for address in (PAGE, f"{PAGE}{secret.pk}/", "/settings/", "/audit/"):
            assert VALUE not in text(confirmed, address)
        assert "hf-token" in text(confirmed)
        assert "Nothing has used this secret yet" in text(confirmed, f"{PAGE}{secret.pk}/")
        assert confirmed.post(f"{PAGE}{secret.pk}/delete/").status_code == 302
        assert not Secret.objects.exists()

    def test_line_ends_of_a_browser_are_those_of_a_file(self, confirmed: Client) -> None:
        confirmed.post(f"{PAGE}store/", {"name": "key", "value": "line 1\r\nline 2\r\n", "scope": "person"})
        assert store.value_of(Secret.objects.get()) == "line 1\nline 2\n"

    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"name": "a b"}, "Use up to 64 letters"),
            ({"value": ""}, "This field is required"),
            ({"value": "x" * 40_000}, "Has 40,000 bytes"),
            ({"scope": "everybody"}, "Select a valid choice"),
        ],
    )
    def test_what_is_wrong_is_at_its_field(
        self, confirmed: Client, changed: dict[str, str], words: str
    ) -> None:
        form = {"name": "hf-token", "value": VALUE, "scope": "workspace", **changed}
        answer = confirmed.post(f"{PAGE}store/", form)
        assert answer.status_code == 400
        assert words in answer.content.decode()
        assert answer.headers["Cache-Control"].startswith("no-store")
        assert not Secret.objects.exists()

    def test_a_value_that_cannot_be_masked_is_said_to_be(self, confirmed: Client) -> None:
        answer = confirmed.post(
            f"{PAGE}store/", {"name": "pin", "value": "short", "scope": "person"}, follow=True
        )
        assert "too short or too much like a word" in answer.content.decode()
        assert "not masked in logs" in answer.content.decode()

    def test_a_viewer_sees_names_and_no_form(self) -> None:
        put(api_client(make_owner()))
        page = text(client_of(make_viewer()))
        assert "hf-token" in page
        assert "Store a secret" not in page
        pk = Secret.objects.get().pk
        assert client_of(make_contributor()).post(f"{PAGE}{pk}/delete/").status_code == 403
        assert Secret.objects.exists()

    def test_those_of_others_are_not_there(self) -> None:
        put(api_client(make_owner()), "own", scope="person")
        mallory = make_person("mallory", Role.OWNER, make_workspace("other"))
        pk = Secret.objects.get().pk
        for person in (make_contributor(), mallory):
            assert client_of(person).get(f"{PAGE}{pk}/").status_code == 404


class TestCommand:
    @staticmethod
    def run(monkeypatch: pytest.MonkeyPatch, *arguments: str, value: str = "") -> str:
        out = io.StringIO()
        monkeypatch.setattr("sys.stdin", io.StringIO(value))
        call_command("secrets", *arguments, stdout=out, stderr=out)
        return out.getvalue()

    def test_set_list_check_and_rotate(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rotation, "SETTLE_S", 0)
        make_owner()
        said = self.run(monkeypatch, "set", "hf-token", "--user", "olivia", value=f"{VALUE}\n")
        assert said == "hf-token is stored in default, version 1.\n"
        assert store.value_of(Secret.objects.get()) == VALUE
        assert "default\thf-token\tworkspace\tversion 1" in self.run(monkeypatch, "list")
        assert self.run(monkeypatch, "check") == "All 1 secrets can be decrypted.\n"
        assert self.run(monkeypatch, "rotate").startswith("1 secrets are encrypted with a new key.")
        assert store.value_of(Secret.objects.get()) == VALUE

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("set", "x", "--user", "nobody"), "user: there is no user nobody"),
            (
                ("set", "x", "--user", "olivia", "--workspace", "none"),
                "workspace: there is no workspace none",
            ),
            (("set", "x", "--user", "olivia"), "value: must not be empty"),
            (("set", "a b", "--user", "olivia"), "name: use up to 64"),
            (("set", "x", "--user", "carl"), "This needs the role owner"),
        ],
    )
    def test_refusals(self, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str) -> None:
        make_owner()
        make_contributor()
        with pytest.raises(CommandError, match=words) as error:
            self.run(monkeypatch, *arguments)
        assert error.value.returncode == 2

    def test_a_lost_keyring_is_told_and_replaced(
        self, monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
    ) -> None:
        put(api_client(make_owner()))
        settings.SECRETS_KEYRING = tmp_path / "new" / "keys"
        (warning,) = checks.unreadable_secrets(["default"])
        assert "hf-token (default)" in warning.msg
        with pytest.raises(SystemExit):
            self.run(monkeypatch, "check")
        assert "Type these again: default/hf-token." in self.run(monkeypatch, "new-keyring")
        assert put(api_client(make_owner())).status_code == 204
        assert checks.unreadable_secrets(["default"]) == []
        with pytest.raises(CommandError, match="exists; if it is damaged"):
            self.run(monkeypatch, "new-keyring")
