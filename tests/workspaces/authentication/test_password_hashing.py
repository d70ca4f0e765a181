from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher, check_password, make_password
from django.test import Client
from pytest_django import Settings

from tests.people import PASSWORD, client_of, make_owner, make_person
from trainhub import settings as hub_settings
from workspaces.authentication import password_hashing
from workspaces.authentication.delays import HashingBusy
from workspaces.authentication.password_hashing import (
    BoundedArgon2PasswordHasher,
    BoundedPBKDF2PasswordHasher,
    HashingSlots,
)
from workspaces.models import SignInAttempts, User
from workspaces.states import Role

SHORT = PBKDF2PasswordHasher().encode(PASSWORD, "salt", 1000)

NEW_PASSWORD = "another Password 1"

COMPUTED: list[str] = []


class CountedArgon2(BoundedArgon2PasswordHasher):
    def encode(self, password: str, salt: str) -> str:
        COMPUTED.append("argon2")
        return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        COMPUTED.append("argon2")
        return super().verify(password, encoded)


class CountedPBKDF2(BoundedPBKDF2PasswordHasher):
    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        COMPUTED.append("pbkdf2_sha256")
        return super().encode(password, salt, iterations)


class OneHash(HashingSlots):
    """Has a slot for one hash; then everybody else is at it."""

    @contextmanager
    def one(self) -> Iterator[None]:
        with super().one():
            yield
        self._slots.acquire()
        self._slots.acquire()


@pytest.fixture
def hub_hashers(settings: Settings) -> None:
    """The hashers of the hub itself; the other tests use a cheap one."""
    settings.PASSWORD_HASHERS = hub_settings.PASSWORD_HASHERS


@pytest.fixture
def occupied(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both slots are taken, and nobody waits for long."""
    slots = HashingSlots(2, most_waiting=4, patience_s=0.2)
    monkeypatch.setattr(password_hashing, "slots", slots)
    with slots.one(), slots.one():
        yield


class TestSlots:
    def test_two_work_at_a_time_and_the_others_wait(self) -> None:
        slots = HashingSlots(2, most_waiting=16, patience_s=30)
        lock, running, seen = threading.Lock(), [0], []

        def work() -> None:
            with slots.one():
                with lock:
                    running[0] += 1
                    seen.append(running[0])
                time.sleep(0.01)
                with lock:
                    running[0] -= 1

        with ThreadPoolExecutor(16) as threads:
            list(threads.map(lambda _: work(), range(16)))
        assert len(seen) == 16
        assert max(seen) <= 2

    def test_who_waits_too_long_is_asked_to_come_back(self) -> None:
        slots = HashingSlots(1, most_waiting=16, patience_s=0.05)
        with slots.one(), pytest.raises(HashingBusy), slots.one():
            pass

    def test_who_would_wait_behind_too_many_is_asked_at_once(self) -> None:
        slots = HashingSlots(1, most_waiting=0, patience_s=30)
        before = time.monotonic()
        with slots.one(), pytest.raises(HashingBusy), slots.one():
            pass
        assert time.monotonic() - before < 5

    def test_a_failure_gives_its_slot_back(self) -> None:
        slots = HashingSlots(1, most_waiting=0, patience_s=0)
        with pytest.raises(ZeroDivisionError), slots.one():
            raise ZeroDivisionError
        with slots.one():
            pass


@pytest.mark.usefixtures("hub_hashers")
class TestHashers:
    def test_new_passwords_are_argon2_and_hold_for_their_own_password_alone(self) -> None:
        encoded = make_password(PASSWORD)
        assert encoded.startswith("argon2$argon2id$")
        assert check_password(PASSWORD, encoded)
        assert not check_password("wrong", encoded)

    @pytest.mark.django_db
    def test_a_password_of_the_version_before_works_and_is_stored_anew(self) -> None:
        user = make_person("vera", Role.VIEWER)
        User.objects.filter(pk=user.pk).update(password=SHORT)
        assert Client().post("/sign-in/", {"username": "vera", "password": PASSWORD}).status_code == 302
        user.refresh_from_db()
        assert user.password.startswith("argon2$")
        assert Client().post("/sign-in/", {"username": "vera", "password": PASSWORD}).status_code == 302

    @pytest.mark.django_db
    @pytest.mark.usefixtures("occupied")
    def test_while_all_slots_are_taken_sign_in_says_so_and_counts_no_failure(self) -> None:
        user = make_person("vera", Role.VIEWER)
        User.objects.filter(pk=user.pk).update(password=SHORT)
        for _ in range(8):
            answer = Client().post("/sign-in/", {"username": "vera", "password": PASSWORD})
            assert (answer.status_code, answer.headers["Retry-After"]) == (429, "2")
            assert b"Many people are signing in" in answer.content
        assert {row.count for row in SignInAttempts.objects.all()} == {0.0}

    @pytest.mark.django_db
    @pytest.mark.usefixtures("occupied")
    def test_while_all_slots_are_taken_nobody_is_added_and_the_owner_is_asked_to_come_back(self) -> None:
        form = {"username": "nora", "role": "viewer"}
        response = client_of(make_owner()).post("/settings/members/", form)
        assert response.status_code == 400
        assert b"Many people are signing in" in response.content
        assert not User.objects.filter(username="nora").exists()

    @pytest.mark.django_db
    def test_a_new_password_that_cannot_be_hashed_now_leaves_the_old_one_as_it_was(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        user = make_person("vera", Role.VIEWER)
        user.set_password(PASSWORD)
        user.password_is_one_time = True
        user.save()
        client = client_of(user)
        monkeypatch.setattr(password_hashing, "slots", OneHash(2, most_waiting=0, patience_s=0))
        form = {"old_password": PASSWORD, "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
        response = client.post("/settings/password/", form)
        assert (response.status_code, response.headers["Retry-After"]) == (429, "2")
        assert b"Many people are signing in" in response.content
        # The page is still that of a one-time password, without the menu.
        assert response.context["is_one_time"] is True
        before = user.password
        user.refresh_from_db()
        assert (user.password, user.password_is_one_time) == (before, True)


@pytest.mark.django_db
class TestEqualCost:
    """The row "time of a wrong sign-in for known and unknown names": each failure computes the same
    hashes."""

    @pytest.fixture
    def computed(self, settings: Settings) -> list[str]:
        """Which hashes are computed, in order."""
        settings.PASSWORD_HASHERS = [f"{__name__}.CountedArgon2", f"{__name__}.CountedPBKDF2"]
        COMPUTED.clear()
        return COMPUTED

    def cost(self, name: str, computed: list[str]) -> list[str]:
        computed.clear()
        SignInAttempts.objects.all().delete()
        assert Client().post("/sign-in/", {"username": name, "password": "wrong"}).status_code == 200
        return sorted(computed)

    def test_while_all_are_argon2(self, computed: list[str]) -> None:
        user = make_person("vera", Role.VIEWER)
        user.set_password(PASSWORD)
        user.save()
        assert self.cost("vera", computed) == self.cost("nobody", computed) == ["argon2"]

    def test_while_some_are_of_the_version_before(self, computed: list[str]) -> None:
        new, old = make_person("nora", Role.VIEWER), make_person("olga", Role.VIEWER)
        new.set_password(PASSWORD)
        new.save()
        User.objects.filter(pk=old.pk).update(password=SHORT)
        costs = [self.cost(name, computed) for name in ("nora", "olga", "nobody")]
        assert costs == [["argon2", "pbkdf2_sha256"]] * 3

    def test_for_a_person_who_has_no_password(self, computed: list[str]) -> None:
        user = make_person("vera", Role.VIEWER)
        user.set_unusable_password()
        user.save()
        assert self.cost("vera", computed) == ["argon2"]
