"""Slows down guessing of passwords: waits that grow with failures and end by themselves, never a lock-out."""

from __future__ import annotations

import hashlib
import math
import time
from typing import NamedTuple

from django.core.cache import cache

FREE_FAILURES = 5
FREE_FAILURES_PER_ADDRESS = 50
"""Several people may sit behind one address, so an address as a whole is braked later than one name on it."""
FIRST_WAIT_S = 5.0
LONGEST_WAIT_S = 60.0
FORGOTTEN_AFTER_S = 15 * 60


class Failures(NamedTuple):
    tries: int
    last_at: float


def wait_s(name: str, address: str, now: float | None = None) -> int:
    """Whole seconds until the next try of `name` from `address` is looked at; 0 = now."""
    at = time.time() if now is None else now
    return max(_wait_s(key, free, at) for key, free in _keys(name, address))


def failed(name: str, address: str, now: float | None = None) -> None:
    at = time.time() if now is None else now
    for key, _ in _keys(name, address):
        cache.set(key, (_failures(key).tries + 1, at), FORGOTTEN_AFTER_S)


def succeeded(name: str, address: str) -> None:
    """Forgets the name's failures there; the address keeps its own, or one known password would free all guesses."""
    cache.delete(_keys(name, address)[0][0])


def _wait_s(key: str, free: int, at: float) -> int:
    failures = _failures(key)
    if failures.tries < free:
        return 0
    pause = min(FIRST_WAIT_S * 2 ** min(failures.tries - free, 10), LONGEST_WAIT_S)
    return max(0, math.ceil(failures.last_at + pause - at))


def _failures(key: str) -> Failures:
    return Failures(*cache.get(key, (0, 0.0)))


def _keys(name: str, address: str) -> tuple[tuple[str, int], tuple[str, int]]:
    return (_key(f"{name.lower()}\n{address}"), FREE_FAILURES), (_key(f"\n{address}"), FREE_FAILURES_PER_ADDRESS)


def _key(text: str) -> str:
    return f"sign-in-failures:{hashlib.sha256(text.encode()).hexdigest()}"
