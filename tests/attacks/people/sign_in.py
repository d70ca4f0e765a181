"""Signing in at a real hub from any address of the loopback network, as a person or as an attacker does."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.hub import Hub

EVALUATED = "The user name or the password is wrong."
CSRF = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


class Attacker:
    """One browser at `address` (127.0.0.0/8) that has opened the sign-in page and may send its form again and
    again."""

    def __init__(self, hub: Hub, address: str = "127.0.0.1", **headers: str) -> None:
        transport = httpx.HTTPTransport(local_address=address, verify=hub.trusted())
        self.client = httpx.Client(
            base_url=hub.url, transport=transport, timeout=120, headers={"Referer": hub.url, **headers}
        )
        found = CSRF.search(self.client.get("/sign-in/").text)
        assert found is not None
        self.csrf = found[1]

    def try_password(self, name: str, password: str, **headers: str) -> httpx.Response:
        form = {"username": name, "password": password, "csrfmiddlewaretoken": self.csrf}
        return self.client.post("/sign-in/", data=form, headers=headers)

    def close(self) -> None:
        self.client.close()


def at_once(attackers: Sequence[Attacker], names: Sequence[str]) -> list[httpx.Response]:
    """Each attacker tries one wrong password for its name; all requests start at the same moment."""
    start = threading.Barrier(len(attackers))

    def attempt(attacker: Attacker, name: str) -> httpx.Response:
        start.wait(60)
        return attacker.try_password(name, "wrong")

    with ThreadPoolExecutor(len(attackers)) as threads:
        return list(threads.map(attempt, attackers, names))


def evaluated(answers: Sequence[httpx.Response]) -> int:
    """How many of these passwords the hub compared with a stored hash."""
    return sum(EVALUATED in answer.text for answer in answers)
