"""S9: guessing passwords faster than the throttle allows, by bursts, and under a flood."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.attacks.people.sign_in import Attacker, at_once, evaluated
from tests.hub import Hub

FREE = 5


@contextmanager
def attackers_at(hub: Hub, address: str, count: int) -> Iterator[list[Attacker]]:
    found = [Attacker(hub, address) for _ in range(count)]
    try:
        yield found
    finally:
        for attacker in found:
            attacker.close()


@pytest.mark.slow
class TestBursts:
    """S9 a: the wait was looked at before the hash was computed, and the failure counted after it."""

    def test_of_25_wrong_passwords_at_once_only_the_free_ones_are_evaluated(self, hub: Hub) -> None:
        with attackers_at(hub, "127.0.9.1", 25) as attackers:
            answers = at_once(attackers, ["burst"] * 25)
        assert evaluated(answers) == FREE
        refused = [answer for answer in answers if answer.status_code == 429]
        assert len(refused) == 20
        assert all(int(answer.headers["Retry-After"]) >= 1 for answer in refused)

    def test_of_30_wrong_passwords_for_3_names_only_the_free_ones_are_evaluated(self, hub: Hub) -> None:
        with attackers_at(hub, "127.0.9.2", 30) as attackers:
            answers = at_once(attackers, ["burst-a", "burst-b", "burst-c"] * 10)
        assert evaluated(answers) == 3 * FREE

    def test_sending_no_password_frees_no_further_attempts(self, hub: Hub) -> None:
        """An empty password was taken for a success, which forgot all failures of the name."""
        with attackers_at(hub, "127.0.9.3", 1) as (attacker,):
            answers = []
            for _ in range(8):
                answers.append(attacker.try_password("burst", "wrong"))
                attacker.try_password("burst", "")
        assert evaluated(answers) == FREE
