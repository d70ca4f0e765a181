"""What a minute of 50 wrong passwords a second costs others: the time of nodes' reports, and of a person who
signs in.

The attempts come from many addresses and for many names, so that no limit but the installation's holds them
back. Quiet and attacked minutes take turns. A person who has signed in from their address before must get in
within 5 seconds, no more passwords may be compared than the limit allows, and reports may become 1.2 times
slower (95th percentile)."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import sys
import time
from functools import partial
from multiprocessing.connection import Connection
from urllib.parse import urlsplit

import httpx

from bench.scale import enrolled
from bench.support.limits import Limits, median
from bench.support.reporting_fleet import Road, Teller, Told
from bench.support.stack import Stack, stack, summary

NODES, GPUS, ROADS = 50, 8, 10
ROUNDS, ROUND_S = 2, 60.0
PER_S = 50
ADDRESSES = 100
PERSON_ADDRESS = "127.0.9.1"
ALLOWED_SIGN_IN_S = 5.0
MAX_RATIO = 1.5
MAX_P95_RATIO = 1.2
LIMITS = """
from workspaces.authentication import login_throttle
print("LIMITS", login_throttle.INSTALLATION_BURST, login_throttle.INSTALLATION_PER_S)
"""
NO_ANSWER = 0
PASSWORD = "correct horse battery"
CSRF = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
SET_PASSWORD = """
from workspaces.models import User
person = User.objects.get(username="admin")
person.set_password(%r)
person.save()
"""


class Browser:
    """Somebody at `address` who has opened the sign-in page."""

    def __init__(self, hub_url: str, address: str) -> None:
        transport = httpx.AsyncHTTPTransport(local_address=address)
        self._client = httpx.AsyncClient(
            base_url=hub_url, transport=transport, timeout=60, headers={"Referer": hub_url}
        )
        self._csrf = ""

    async def open(self) -> None:
        match = CSRF.search((await self._client.get("/sign-in/")).text)
        assert match is not None
        self._csrf = match[1]

    async def sign_in(self, name: str, password: str) -> int:
        """The status of the answer: 302 for whoever is in."""
        form = {"username": name, "password": password, "csrfmiddlewaretoken": self._csrf}
        return (await self._client.post("/sign-in/", data=form)).status_code

    async def close(self) -> None:
        await self._client.aclose()


class Flood:
    """A process of its own that tries PER_S wrong passwords a second from ADDRESSES addresses, whether the
    earlier ones have been answered or not. In the process that measures reports it would delay what that
    measures."""

    def __init__(self, hub_url: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._switch, self._far_switch = context.Pipe()
        self._process = context.Process(target=_flood_process, args=(hub_url, self._far_switch), daemon=True)
        self._process.start()
        self._switch.recv()

    def begin(self) -> None:
        self._switch.send(True)

    def end(self) -> list[int]:
        """Returns the status of each answer since the beginning."""
        self._switch.send(False)
        statuses: list[int] = self._switch.recv()
        return statuses

    def close(self) -> None:
        self._process.terminate()
        self._process.join()


def _flood_process(hub_url: str, switch: Connection) -> None:
    # A real attacker has processors of their own.
    os.nice(10)
    asyncio.run(_flood_rounds(hub_url, switch))


async def _flood_rounds(hub_url: str, switch: Connection) -> None:
    attackers = [Browser(hub_url, f"127.0.1.{number + 1}") for number in range(ADDRESSES)]
    for attacker in attackers:
        await attacker.open()
    switch.send(True)
    while True:
        await asyncio.to_thread(switch.recv)
        answers: list[int] = []
        flooding = asyncio.create_task(_attempts(attackers, answers))
        await asyncio.to_thread(switch.recv)
        flooding.cancel()
        await asyncio.gather(flooding, return_exceptions=True)
        switch.send(answers)


async def _attempts(attackers: list[Browser], answers: list[int]) -> None:
    tasks: set[asyncio.Task[None]] = set()

    async def attempt(number: int) -> None:
        attacker = attackers[number % len(attackers)]
        try:
            answers.append(await attacker.sign_in(f"somebody-{number % 1000}", "wrong"))
        except httpx.TransportError:
            answers.append(NO_ANSWER)

    started_at, number = time.monotonic(), 0
    try:
        while True:
            task = asyncio.create_task(attempt(number))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            number += 1
            await asyncio.sleep(max(0.0, started_at + number / PER_S - time.monotonic()))
    finally:
        for task in tasks:
            task.cancel()


async def person_signs_in(hub: Stack) -> float:
    """Seconds from opening the page until the person is in, trying again every half second as long as they
    are refused."""
    person, started_at = Browser(hub.url, PERSON_ADDRESS), time.monotonic()
    await person.open()
    while (status := await person.sign_in("admin", PASSWORD)) != 302:
        if time.monotonic() - started_at > 60:
            raise RuntimeError(f"the person could not sign in within a minute; the last answer was {status}")
        await asyncio.sleep(0.5)
    await person.close()
    return time.monotonic() - started_at


async def measure(hub: Stack) -> int:
    tokens = enrolled(hub, NODES).items()
    # Before the connections of the nodes: the hub closes what is silent while the attackers open their pages.
    flood = Flood(hub.url)
    told, now = Told(), time.monotonic()
    nodes = [
        Teller(name, token, GPUS, now + index * 5.0 / NODES) for index, (name, token) in enumerate(tokens)
    ]
    place, loop = urlsplit(hub.url), asyncio.get_running_loop()
    for first in range(ROADS):
        await loop.create_connection(
            partial(Road, nodes[first::ROADS], told), place.hostname or "", place.port or 0
        )
    print(f"a person signs in, nobody attacks: {await person_signs_in(hub):.2f} s")
    quiet: list[float] = []
    attacked: list[float] = []
    signed_in: list[float] = []
    answers: list[int] = []
    for _ in range(ROUNDS):
        marks = told.marks()
        await asyncio.sleep(ROUND_S)
        quiet += told.since(marks).answer_s
        marks = told.marks()
        flood.begin()
        await asyncio.sleep(ROUND_S / 2)
        signed_in.append(await person_signs_in(hub))
        await asyncio.sleep(ROUND_S / 2)
        attacked += told.since(marks).answer_s
        answers += await asyncio.to_thread(flood.end)
    flood.close()
    return judge_sign_ins(hub, answers, signed_in) | judge_reports(told, quiet, attacked)


def judge_sign_ins(hub: Stack, answers: list[int], signed_in: list[float]) -> int:
    """Prints how attackers and the person fared; returns 1 past a limit. `signed_in`: seconds."""
    compared = sum(status == 200 for status in answers)
    burst, per_s = map(float, hub.shell(LIMITS).partition("LIMITS")[2].split()[:2])
    allowed = ROUNDS * (burst + per_s * (ROUND_S + ALLOWED_SIGN_IN_S))
    failed = sorted({status for status in answers if status not in (200, 429)})
    print(
        f"{len(answers)} wrong passwords, {compared} of them compared, allowed {allowed:.0f}; errors: "
        f"{failed or 'none'}"
    )
    print(f"a person signs in meanwhile: at most {max(signed_in):.2f} s, allowed {ALLOWED_SIGN_IN_S:.0f} s")
    return int(max(signed_in) > ALLOWED_SIGN_IN_S or compared > allowed or bool(failed))


def judge_reports(told: Told, quiet: list[float], attacked: list[float]) -> int:
    """Prints how many seconds nodes waited for answers, in peace and attacked; returns 1 past a limit."""
    print(summary("report -> answer, nobody attacks", quiet))
    print(summary("report -> answer, 50 wrong passwords a second", attacked))
    print(
        f"95th percentiles {_p95(quiet) * 1e3:.1f} and {_p95(attacked) * 1e3:.1f} ms; reports refused: "
        f"{told.refused or 'none'}"
    )
    limits = Limits()
    limits.at_most("the medians of reports", median(attacked) / median(quiet), MAX_RATIO)
    limits.at_most("the 95th percentiles of reports", _p95(attacked) / _p95(quiet), MAX_P95_RATIO)
    return limits.exit_code() | bool(told.refused)


def _p95(seconds: list[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.95)]


def main() -> int:
    with stack() as hub:
        hub.shell(SET_PASSWORD % PASSWORD)
        return asyncio.run(measure(hub))


if __name__ == "__main__":
    sys.exit(main())
