"""How passwords are hashed: argon2id, a few at a time.

Argon2 with these parameters (OWASP's recommendation) costs 22 ms of CPU time where PBKDF2 with Django's
number of iterations costs 300 ms. However many people sign in at once, a process computes two hashes at the
same time: the others wait for a moment, and beyond that are asked to come back, so that neither all
processors nor all threads are occupied."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.hashers import (
    Argon2PasswordHasher,
    BasePasswordHasher,
    PBKDF2PasswordHasher,
    get_hasher,
    identify_hasher,
    make_password,
)
from django.db import connections

from workspaces.authentication.delays import HashingBusy
from workspaces.models import User

HASHES_AT_ONCE = 2
MOST_WAITING = 16
PATIENCE_S = 3.0
RETRY_AFTER_S = 2


class HashingSlots:
    """At most `size` hashes at the same time; at most `most_waiting` threads wait, each at most `patience_s`
    seconds."""

    def __init__(self, size: int, most_waiting: int, patience_s: float) -> None:
        self._slots = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._most_waiting, self._patience_s = most_waiting, patience_s
        self._waiting = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Raises HashingBusy."""
        if not self._slots.acquire(blocking=False):
            self._wait()
        try:
            yield
        finally:
            self._slots.release()

    def _wait(self) -> None:
        with self._lock:
            if self._waiting >= self._most_waiting:
                raise HashingBusy(RETRY_AFTER_S)
            self._waiting += 1
        try:
            _give_connections_back()
            if not self._slots.acquire(timeout=self._patience_s):
                raise HashingBusy(RETRY_AFTER_S)
        finally:
            with self._lock:
                self._waiting -= 1


slots = HashingSlots(HASHES_AT_ONCE, MOST_WAITING, PATIENCE_S)


class BoundedArgon2PasswordHasher(Argon2PasswordHasher):
    time_cost, memory_cost, parallelism = 2, 19456, 1

    def encode(self, password: str, salt: str) -> str:
        with slots.one():
            return str(super().encode(password, salt))

    def verify(self, password: str, encoded: str) -> bool:
        with slots.one():
            return bool(super().verify(password, encoded))


class BoundedPBKDF2PasswordHasher(PBKDF2PasswordHasher):
    """For passwords that were stored before argon2: each is stored anew at its person's next sign-in."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        # `verify` calls this too, so a slot is taken here alone.
        with slots.one():
            return str(super().encode(password, salt, iterations))


def equalize_failure(name: str, password: str) -> None:
    """After a failed sign-in: do what Django has not, so that each failure costs the same.

    While some passwords are still stored in an older way, a failure costs one hash of either kind. Otherwise
    the time of the answer would tell whether a name exists."""
    preferred = get_hasher()
    older = _older_password(preferred)
    if older is None:
        return
    stored = User.objects.filter(username=name).values_list("password", flat=True).first()
    if stored is not None and _is_of(identify_hasher(older), stored):
        make_password(password)
    else:
        identify_hasher(older).verify(password, older)


def _older_password(preferred: BasePasswordHasher) -> str | None:
    """The stored password of some active person that is not of the preferred kind."""
    usable = User.objects.filter(is_active=True).exclude(password="").exclude(password__startswith="!")  # noqa: S106
    return (
        usable.exclude(password__startswith=f"{preferred.algorithm}$")
        .values_list("password", flat=True)
        .first()
    )


def _is_of(hasher: BasePasswordHasher, encoded: str) -> bool:
    return encoded.startswith(f"{hasher.algorithm}$")


def _give_connections_back() -> None:
    """While a thread waits, others may use its place in the pool of database connections."""
    connection: Any
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
