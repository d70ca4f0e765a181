"""Who may store what under which name, and who gets which value."""

from __future__ import annotations

import pytest

from tests.people import make_contributor, make_owner, make_person, make_viewer, make_workspace, principal_of
from workspaces import people
from workspaces.access import membership_principal
from workspaces.models import AuditEvent, Secret, SecretUse
from workspaces.secrets import keyring, masking, rotation, store, uses
from workspaces.secrets.errors import SecretError, SecretsUnavailable
from workspaces.states import Role

pytestmark = pytest.mark.django_db
VALUE = "hf_not-for-your-eyes"


def put(name: str = "hf-token", value: str = VALUE, scope: str = store.WORKSPACE) -> Secret:
    return store.put(principal_of(make_owner()), name, value, scope)


class TestPut:
    def test_stores_what_only_the_keys_can_read(self) -> None:
        secret = put()
        stored = Secret.objects.get()
        assert VALUE.encode() not in bytes(stored.sealed)
        assert store.value_of(stored) == VALUE
        assert (secret.version, stored.changed_by, stored.is_masked) == (1, "olivia", True)
        event = AuditEvent.objects.get(verb="secret.stored")
        assert (event.subject, event.detail) == ("hf-token", {"scope": "workspace", "version": 1})

    def test_again_replaces_the_value_and_counts(self) -> None:
        put()
        secret = put(value="another-value-2")
        assert (Secret.objects.count(), secret.version) == (1, 2)
        assert store.value_of(Secret.objects.get()) == "another-value-2"

    def test_a_person_and_the_workspace_may_use_one_name(self) -> None:
        put(value="of-the-workspace")
        put(value="of-the-person-1", scope=store.PERSON)
        assert Secret.objects.count() == 2
        names = {"hf-token"}
        hers = store.resolve(make_workspace(), make_owner(), names)["hf-token"]
        others = store.resolve(make_workspace(), make_contributor(), names)["hf-token"]
        assert (store.value_of(hers), store.value_of(others)) == ("of-the-person-1", "of-the-workspace")

    @pytest.mark.parametrize(
        ("name", "value", "field", "words"),
        [
            ("", VALUE, "name", "use up to 64"),
            ("-x", VALUE, "name", "use up to 64"),
            ("a b", VALUE, "name", "use up to 64"),
            ("a|b", VALUE, "name", "use up to 64"),
            ("a\n", VALUE, "name", "use up to 64"),
            ("x" * 65, VALUE, "name", "use up to 64"),
            ("x", "", "value", "must not be empty"),
            ("x", "a\0b", "value", "NUL"),
            ("x", "y" * 1_000_000, "value", "has 1,000,000 bytes, and at most 32,768"),
            ("x", "\ud800" * 20, "value", "half a surrogate"),
        ],
    )
    def test_what_cannot_be_stored_names_its_field_and_stores_nothing(
        self, name: str, value: str, field: str, words: str
    ) -> None:
        with pytest.raises(SecretError, match=words) as error:
            put(name, value)
        assert error.value.field == field
        assert not Secret.objects.exists()

    def test_a_workspace_has_room_for_so_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(store, "MAX_SECRETS", 1)
        put("a")
        put("a", "a-new-value-9")
        with pytest.raises(SecretError, match="there are 1 secrets already"):
            put("b")
        put("b", scope=store.PERSON)

    def test_needs_the_role_for_its_scope(self) -> None:
        carl, vera = principal_of(make_contributor()), principal_of(make_viewer())
        store.put(carl, "mine", VALUE, store.PERSON)
        for who, scope in ((carl, store.WORKSPACE), (vera, store.PERSON), (vera, store.WORKSPACE)):
            with pytest.raises(store.NotAllowed, match="This needs the role"):
                store.put(who, "x", VALUE, scope)

    def test_a_name_like_that_of_a_known_variable_is_a_name(self) -> None:
        assert put("PATH").name == "PATH"


class TestDelete:
    def test_takes_its_uses_along_and_is_an_event(self) -> None:
        secret = put()
        uses.take(make_workspace(), make_owner(), {"hf-token"}, uses.RUN, "a" * 32, "alpha")
        store.delete(principal_of(make_owner()), secret)
        assert (Secret.objects.count(), SecretUse.objects.count()) == (0, 0)
        assert AuditEvent.objects.filter(verb="secret.deleted", subject="hf-token").exists()

    def test_those_of_a_person_go_with_the_membership(self) -> None:
        carl = make_contributor()
        store.put(principal_of(carl), "mine", VALUE, store.PERSON)
        people.remove(principal_of(make_owner()), carl.memberships.get())
        assert not Secret.objects.exists()


class TestVisible:
    def test_others_and_other_workspaces_have_theirs(self) -> None:
        put()
        put("hers", scope=store.PERSON)
        other = make_workspace("other")
        mallory = make_person("mallory", Role.OWNER, other)
        assert [secret.name for secret in store.visible(principal_of(make_owner()))] == ["hers", "hf-token"]
        assert [secret.name for secret in store.visible(principal_of(make_contributor()))] == ["hf-token"]
        there = membership_principal(mallory, other)
        assert there is not None
        assert not store.visible(there)
        assert store.resolve(other, mallory, {"hf-token"}) == {}


class TestTake:
    def test_counts_the_use_and_records_the_first(self) -> None:
        put()
        for _ in range(3):
            got = uses.take(make_workspace(), make_owner(), {"hf-token"}, uses.RUN, "a" * 32, "alpha")
            assert got == {"hf-token": VALUE}
        use = SecretUse.objects.get()
        assert (use.kind, use.subject, use.node, use.count) == ("run", "a" * 32, "alpha", 3)
        event = AuditEvent.objects.get(verb="secret.used")
        assert (event.actor, event.detail) == ("olivia", {"run": "a" * 32, "node": "alpha"})

    def test_of_one_that_is_missing_gives_none_and_records_nothing(self) -> None:
        put()
        with pytest.raises(uses.MissingSecret, match="no secret gone any more in Default"):
            uses.take(make_workspace(), make_owner(), {"hf-token", "gone"}, uses.RUN, "a" * 32)
        assert not SecretUse.objects.exists()

    def test_a_row_that_was_copied_to_another_workspace_opens_nothing(self) -> None:
        secret = put()
        other = make_workspace("other")
        mallory = make_person("mallory", Role.OWNER, other)
        Secret.objects.create(workspace=other, name="hf-token", sealed=secret.sealed, changed_by="mallory")
        with pytest.raises(SecretsUnavailable, match="copied from another place"):
            uses.take(other, mallory, {"hf-token"}, uses.RUN, "a" * 32)


class TestRotation:
    def test_leaves_one_new_key_and_every_value(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rotation, "SETTLE_S", 0)
        put("a", "value-number-1")
        put("b", "value-number-2", store.PERSON)
        before = keyring.load().keys[0]
        assert rotation.rotate("test") == 2
        (key,) = keyring.load().keys
        assert key != before
        assert {keyring.key_id(bytes(secret.sealed)) for secret in Secret.objects.all()} == {key.id}
        assert sorted(map(store.value_of, Secret.objects.all())) == ["value-number-1", "value-number-2"]

    def test_keeps_every_key_where_one_value_cannot_be_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rotation, "SETTLE_S", 0)
        put()
        Secret.objects.create(workspace=make_workspace(), name="odd", sealed=b"\x01" * 40, changed_by="x")
        before = keyring.load()
        with pytest.raises(SecretsUnavailable, match=r"1 of the secrets cannot be decrypted \(odd\)"):
            rotation.rotate("test")
        assert keyring.load() == before


class TestMaskable:
    @pytest.mark.parametrize(
        ("value", "is_maskable"),
        [
            ("short1", False),
            ("password", False),
            ("Training", False),
            ("WARNING!", True),
            ("aaaaaaaaaaaa", False),
            ("12345678", False),
            ("1234567890123456", True),
            ("xKbQzTpRw", True),
            ("correcthorsebattery", True),
            ("hf_abc123", True),
        ],
    )
    def test_are_values_that_ordinary_lines_do_not_contain(self, value: str, is_maskable: bool) -> None:
        assert masking.is_maskable(value) is is_maskable
        assert bool(masking.masked_texts(value)) is is_maskable

    def test_a_key_of_several_lines_is_masked_as_a_whole_and_by_line(self) -> None:
        value = "-----BEGIN KEY-----\nMIIEvgIBADANBg+/=\nshort\n-----END KEY-----\n"
        texts = masking.masked_texts(value)
        assert value in texts
        assert "MIIEvgIBADANBg+/=" in texts
        assert "short" not in texts
        assert r"-----BEGIN KEY-----\nMIIEvgIBADANBg+/=\nshort\n-----END KEY-----\n" in texts
        assert any("MIIEvgIBADANBg%2B%2F%3D" in text for text in texts)
