"""Limits how fast passwords and join tokens can be guessed.

An attempt is counted in the database *before* anything is compared, in one locked transaction, so that many
attempts at the same moment (in several threads or processes) cannot pass the same limit. A success takes its
count back. Three limits hold for an attempt: one for the name at its address, one for the address, one for
the whole installation. Each ends by itself; nobody is locked out. A person who has signed in from an address
before is bound by the first limit only, so that somebody else's attack neither on that address nor on the
installation keeps them out."""

from __future__ import annotations

import hashlib
import ipaddress
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest

from workspaces.authentication.delays import TooManyAttempts
from workspaces.models import SignInAttempts

FREE_ATTEMPTS = 5
FREE_ATTEMPTS_PER_ADDRESS = 50
"""Several people may sit behind one address, so an address as a whole has to wait later than one name at
it."""
FIRST_WAIT_S = 5.0
LONGEST_WAIT_S = 60.0
FORGOTTEN_AFTER_S = 15 * 60
INSTALLATION_BURST = 50
INSTALLATION_PER_S = 5.0
"""Failed attempts of all addresses together that are still compared: more would only occupy the
processors."""
REMEMBERED_S = 30 * 86400
"""How long an address counts as one from which a person has signed in."""


@dataclass(frozen=True)
class Attempt:
    """One counted attempt. `keys` are the rows that count it; the first is the one of the name at its
    address."""

    keys: tuple[str, ...]


def count_attempt(name: str, address: str, now: float | None = None) -> Attempt:
    """Counts one attempt of `name` from `address` as failed, until `record_success` or `take_back`.

    Raises TooManyAttempts, and counts nothing, where the attempt has to wait.
    """
    at = time.time() if now is None else now
    keys = _keys(name, address)
    # Most attempts of an attack end here, without a lock and without a write.
    rows = _rows(SignInAttempts.objects.filter(pk__in=keys))
    _refuse_if_early(keys, rows, at)
    with transaction.atomic():
        missing = [SignInAttempts(pk=key) for key in sorted(keys) if key not in rows]
        SignInAttempts.objects.bulk_create(missing, ignore_conflicts=True)
        rows = _rows(SignInAttempts.objects.select_for_update().filter(pk__in=keys).order_by("pk"))
        # Many attempts wait here for each other. Written in another order than they came in, they would set
        # the clock of the installation back each time, and more of its failures would be forgiven than time
        # has passed.
        at = time.time() if now is None else now
        _refuse_if_early(keys, rows, at)
        counted = _binding(keys, rows, at)
        for row in (rows[key] for key in counted):
            row.count = _count(keys, row, at) + 1
            row.last_at = at
        SignInAttempts.objects.bulk_update([rows[key] for key in counted], ["count", "last_at"])
    return Attempt(counted)


def record_success(attempt: Attempt, now: float | None = None) -> None:
    """Forgets the failures of the name at its address. The address keeps its own: one known password frees no
    guesses."""
    at = time.time() if now is None else now
    SignInAttempts.objects.filter(pk=attempt.keys[0]).update(count=0, known_until=at + REMEMBERED_S)
    _uncount(attempt.keys[1:])


def take_back(attempt: Attempt) -> None:
    """For an attempt that was not decided after all: nothing was compared, so nothing was learned."""
    _uncount(attempt.keys)


def forget_old(now: float | None = None) -> int:
    """Deletes rows that no longer say anything; returns how many."""
    at = time.time() if now is None else now
    return SignInAttempts.objects.filter(last_at__lt=at - FORGOTTEN_AFTER_S, known_until__lt=at).delete()[0]


def _uncount(keys: Iterable[str]) -> None:
    SignInAttempts.objects.filter(pk__in=sorted(keys)).update(count=Greatest(F("count") - 1.0, 0.0))


def _refuse_if_early(keys: tuple[str, str, str], rows: dict[str, SignInAttempts], at: float) -> None:
    wait = _wait_s(keys, rows, at)
    if wait:
        raise TooManyAttempts(wait)


def _wait_s(keys: tuple[str, str, str], rows: dict[str, SignInAttempts], at: float) -> int:
    waits = [_wait_of(keys, rows[key], at) for key in _binding(keys, rows, at) if key in rows]
    return math.ceil(max(waits, default=0.0))


def _wait_of(keys: tuple[str, str, str], row: SignInAttempts, at: float) -> float:
    pair, _, installation = keys
    count = _count(keys, row, at)
    if row.pk == installation:
        return max(0.0, (count + 1 - INSTALLATION_BURST) / INSTALLATION_PER_S)
    free = FREE_ATTEMPTS if row.pk == pair else FREE_ATTEMPTS_PER_ADDRESS
    if count < free:
        return 0.0
    pause = min(FIRST_WAIT_S * 2 ** min(count - free, 10), LONGEST_WAIT_S)
    # A clock that was set back must not make anybody wait for hours.
    return min(max(0.0, row.last_at + pause - at), LONGEST_WAIT_S)


def _count(keys: tuple[str, str, str], row: SignInAttempts, at: float) -> float:
    """Failures that count now: those of the installation drain away, the others end together after a
    while."""
    passed = max(0.0, at - row.last_at)
    if row.pk == keys[2]:
        return max(0.0, row.count - passed * INSTALLATION_PER_S)
    return 0.0 if passed > FORGOTTEN_AFTER_S else row.count


def _binding(keys: tuple[str, str, str], rows: dict[str, SignInAttempts], at: float) -> tuple[str, ...]:
    pair = rows.get(keys[0])
    is_known = pair is not None and pair.known_until > at
    return keys[:1] if is_known else keys


def _rows(rows: Iterable[SignInAttempts]) -> dict[str, SignInAttempts]:
    return {row.pk: row for row in rows}


def _keys(name: str, address: str) -> tuple[str, str, str]:
    network = _network(address)
    return _key(f"{name.lower()}\n{network}"), _key(f"\n{network}"), _key("installation")


def _network(address: str) -> str:
    """Whoever has one IPv6 address usually has all 2^64 of its network, so these count as one."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
