"""Limits how fast passwords and join tokens can be guessed.

An attempt is counted in the database *before* anything is compared, in one locked transaction, so that many
attempts at the same moment (in several threads or processes) cannot pass the same limit. A success takes its
count back. Three limits apply to an attempt: one for the name at its address, one for the address, one for
the whole installation. Each ends by itself, so nobody is locked out. For a person who has signed in from an
address before, only the first limit applies, so that an attack on that address or on the installation does
not keep them out."""

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

# Who mistypes a few times does not notice the throttle.
FREE_ATTEMPTS = 5
# Several people may sit behind one address, so an address as a whole has to wait later than one name at it.
FREE_ATTEMPTS_PER_ADDRESS = 50
FIRST_WAIT_S = 5.0
LONGEST_WAIT_S = 60.0
FORGOTTEN_AFTER_S = 15 * 60
INSTALLATION_BURST = 50
# Failed attempts of all addresses together that are still compared: more would only occupy the processors.
INSTALLATION_PER_S = 5.0
# How long an address counts as one from which a person has signed in.
REMEMBERED_S = 30 * 86400


@dataclass(frozen=True)
class SignInAttempt:
    """One counted attempt. `keys` are the rows that count it; the first is that of the name at its
    address."""

    keys: tuple[str, ...]


def count_attempt(name: str, address: str, now: float | None = None, *, purpose: str = "") -> SignInAttempt:
    """Counts one attempt of `name` from `address` as failed, until `record_success` or `take_back`. Attempts
    for another `purpose` than signing in do not delay sign-ins of that name or from that address.

    Raises TooManyAttempts, and counts nothing, if the attempt has to wait."""
    at = time.time() if now is None else now
    keys = _keys(name, address, purpose)
    # Read without a lock and without a write: under an attack most attempts end here.
    rows = _rows(SignInAttempts.objects.filter(pk__in=keys))
    _refuse_if_early(keys, rows, at)
    with transaction.atomic():
        # In sorted order, as everywhere: two attempts that lock the same rows in different orders would wait
        # for each other.
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
    return SignInAttempt(counted)


def seconds_to_wait(name: str, address: str, now: float | None = None) -> int:
    """Returns how long an attempt of `name` from `address` to sign in would have to wait. Reads only, and
    counts nothing."""
    keys = _keys(name, address)
    rows = _rows(SignInAttempts.objects.filter(pk__in=keys))
    return _wait_s(keys, rows, time.time() if now is None else now)


def record_success(attempt: SignInAttempt, now: float | None = None) -> None:
    """Deletes the failures of the name at its address. The failures of the address remain: one known password
    must not permit further guesses."""
    at = time.time() if now is None else now
    SignInAttempts.objects.filter(pk=attempt.keys[0]).update(count=0, known_until=at + REMEMBERED_S)
    _uncount(attempt.keys[1:])


def take_back(attempt: SignInAttempt) -> None:
    """Takes back the count of an attempt in which no password was compared, so that nothing was learned."""
    _uncount(attempt.keys)


def forget_old(now: float | None = None) -> int:
    """Deletes rows that no longer matter; returns how many."""
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
    """Returns the failures that count now: those of the installation decrease with time, the others expire
    together."""
    passed = max(0.0, at - row.last_at)
    if row.pk == keys[2]:
        return max(0.0, row.count - passed * INSTALLATION_PER_S)
    return 0.0 if passed > FORGOTTEN_AFTER_S else row.count


def _binding(keys: tuple[str, str, str], rows: dict[str, SignInAttempts], at: float) -> tuple[str, ...]:
    # From an address where this person has signed in before, only the person's own failures count: an attack
    # on the installation must not lock people out.
    pair = rows.get(keys[0])
    is_familiar = pair is not None and pair.known_until > at
    return keys[:1] if is_familiar else keys


def _rows(rows: Iterable[SignInAttempts]) -> dict[str, SignInAttempts]:
    return {row.pk: row for row in rows}


def _keys(name: str, address: str, purpose: str = "") -> tuple[str, str, str]:
    network = f"{purpose}\n{_network(address)}" if purpose else _network(address)
    return _key(f"{name.lower()}\n{network}"), _key(f"\n{network}"), _key("installation")


def _network(address: str) -> str:
    """Returns the network whose attempts count together: an IPv4 address, or the /64 network of an IPv6
    address."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((ip, 64), strict=False))


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
