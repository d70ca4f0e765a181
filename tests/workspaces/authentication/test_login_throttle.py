from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count

import pytest
from django.db import close_old_connections, transaction

from workspaces import tasks
from workspaces.authentication import login_throttle
from workspaces.authentication.delays import TooManyAttempts
from workspaces.authentication.login_throttle import count_attempt, record_success, take_back
from workspaces.models import SignInAttempts

pytestmark = pytest.mark.django_db
HERE = "10.0.0.1"


def fail(name: str = "vera", address: str = HERE, times: int = 1, now: float = 1000) -> int:
    """Counts failures as if nothing had to wait; returns how many were counted."""
    counted = 0
    for _ in range(times):
        try:
            count_attempt(name, address, now)
        except TooManyAttempts:
            return counted
        counted += 1
    return counted


def wait_s(name: str, address: str, now: float) -> int:
    """Whole seconds that an attempt of `name` from `address` would have to wait; it is not counted."""
    with transaction.atomic():
        try:
            count_attempt(name, address, now)
        except TooManyAttempts as error:
            return error.retry_after_s
        finally:
            transaction.set_rollback(True)
    return 0


def fill(count: float, *keys: tuple[str, str], now: float = 1000) -> None:
    """Sets the failures that stand at an address or a name."""
    for name, address in keys:
        key = login_throttle._keys(name, address)[0] if name else login_throttle._keys("x", address)[1]
        SignInAttempts.objects.update_or_create(pk=key, defaults={"count": count, "last_at": now})


class TestOneName:
    def test_has_five_free_attempts_at_an_address(self) -> None:
        assert fail(times=9) == 5

    def test_leaves_other_people_and_other_addresses_alone(self) -> None:
        fail(times=9)
        assert wait_s("vera", HERE, 1000) == 5
        assert wait_s("carl", HERE, 1000) == 0
        assert wait_s("vera", "10.0.0.2", 1000) == 0

    def test_waits_longer_after_each_further_failure_and_at_most_a_minute(self) -> None:
        waits, now = [], 1000.0
        for _ in range(10):
            wait = wait_s("vera", HERE, now)
            waits.append(wait)
            now += wait
            assert fail(now=now) == 1
        assert waits == [0, 0, 0, 0, 0, 5, 10, 20, 40, 60]

    def test_is_forgotten_after_a_quarter_of_an_hour(self) -> None:
        fail(times=5)
        assert fail(times=9, now=1000 + 901) == 5

    def test_is_told_from_others_without_regard_to_case(self) -> None:
        fail("Vera", times=5)
        assert wait_s("vera", HERE, 1000) == 5

    def test_does_not_wait_for_hours_when_the_clock_was_set_back(self) -> None:
        fail(times=5, now=1_000_000)
        assert wait_s("vera", HERE, 1000) <= 60


class TestSuccess:
    def test_forgets_the_failures_of_the_name(self) -> None:
        fail(times=4)
        record_success(count_attempt("vera", HERE, 1000), 1000)
        assert fail(times=9) == 5

    def test_does_not_free_an_address_that_tries_many_names(self) -> None:
        fill(50, ("", HERE))
        record_success(count_attempt("mallory", HERE, 1005), 1005)
        assert wait_s("olivia", HERE, 1005) > 0

    def test_costs_the_address_nothing(self) -> None:
        for number in range(200):
            record_success(count_attempt(f"person{number}", HERE, 1000), 1000)
        assert wait_s("somebody", HERE, 1000) == 0

    def test_lets_the_person_in_again_though_their_address_and_the_installation_are_under_attack(
        self,
    ) -> None:
        record_success(count_attempt("vera", HERE, 900), 900)
        fill(60, ("", HERE))
        SignInAttempts.objects.filter(pk=login_throttle._key("installation")).update(count=500, last_at=1000)
        assert wait_s("vera", HERE, 1000) == 0
        assert wait_s("carl", HERE, 1000) > 0
        assert wait_s("vera", "10.0.0.2", 1000) > 0

    def test_an_attempt_that_was_not_decided_counts_nowhere(self) -> None:
        for _ in range(100):
            take_back(count_attempt("vera", HERE, 1000))
        assert wait_s("vera", HERE, 1000) == 0


class TestAddress:
    def test_has_fifty_free_attempts_for_all_names(self) -> None:
        assert sum(fail(f"person{number}", now=1000 + number) for number in range(80)) < 60

    def test_all_of_one_ipv6_network_is_one_address(self) -> None:
        fail(times=5, address="2001:db8::1")
        assert wait_s("vera", "2001:db8::ffff:2", 1000) == 5
        assert wait_s("vera", "2001:db8:0:1::1", 1000) == 0

    def test_an_ipv4_address_is_the_same_in_ipv6(self) -> None:
        fail(times=5)
        assert wait_s("vera", f"::ffff:{HERE}", 1000) == 5

    @pytest.mark.parametrize("address", ["", "unix:"])
    def test_all_that_come_through_a_unix_socket_are_one_address(self, address: str) -> None:
        fail(times=5, address=address)
        assert wait_s("vera", address, 1000) == 5
        assert wait_s("vera", HERE, 1000) == 0


class TestInstallation:
    def test_compares_no_more_than_a_few_passwords_a_second_however_many_addresses_try(self) -> None:
        counted = sum(
            fail(f"person{n}", f"10.1.{n // 250}.{n % 250}", now=1000 + n / 100) for n in range(1000)
        )
        assert counted == pytest.approx(
            login_throttle.INSTALLATION_BURST + 10 * login_throttle.INSTALLATION_PER_S, abs=3
        )

    def test_attempts_counted_in_another_order_than_they_came_free_no_more(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Under load attempts wait for the database's lock. Half of these came 0.9 s before they are
        counted."""
        looks = (1000.0 + (0.0 if number % 4 == 0 else 0.9) for number in count())
        monkeypatch.setattr(time, "time", lambda: next(looks))
        counted = 0
        for number in range(200):
            with suppress(TooManyAttempts):
                count_attempt(f"person{number}", f"10.2.0.{number}")
                counted += 1
        assert counted == login_throttle.INSTALLATION_BURST

    def test_recovers_within_seconds(self) -> None:
        for number in range(60):
            fail(f"person{number}", f"10.1.0.{number}")
        assert 0 < wait_s("vera", HERE, 1000) <= 5
        assert wait_s("vera", HERE, 1005) == 0


def test_rows_that_say_nothing_any_more_are_deleted() -> None:
    fail(times=3)
    record_success(count_attempt("carl", HERE, 1000), 1000)
    assert login_throttle.forget_old(2000) == 3
    assert SignInAttempts.objects.count() == 1


def test_the_worker_deletes_them_after_their_time() -> None:
    now = time.time()
    fail("vera", now=now - 3600)
    fail("carl", now=now)
    tasks.forget_sign_in_attempts()
    assert {row.pk for row in SignInAttempts.objects.all()} == set(login_throttle._keys("carl", HERE))


@pytest.mark.django_db(transaction=True)
def test_forty_threads_at_once_get_no_more_than_the_free_attempts() -> None:
    """S9 a, without a web server: repeated, because a race must be lost each time."""

    def attempt(name: str, start: threading.Barrier) -> int:
        close_old_connections()
        start.wait(30)
        try:
            return fail(name)
        finally:
            close_old_connections()

    for number in range(5):
        start = threading.Barrier(40)
        with ThreadPoolExecutor(40) as threads:
            counted = sum(threads.map(attempt, [f"person{number}"] * 40, [start] * 40))
        assert counted == 5
