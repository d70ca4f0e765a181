"""Hashes passwords with argon2id, few at a time.

Argon2 with these parameters (OWASP's recommendation) costs 22 ms of CPU time, PBKDF2 with Django's number of
iterations 300 ms. However many people sign in at once, a process computes at most two hashes at the same
time. The others wait for a moment, and further ones are refused with a request to try again, so that neither
all processors nor all threads are occupied."""

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

# A hash takes 19 MiB and 20 ms of a processor on purpose; more at once would let sign-ins take the hub's
# memory and time.
HASHES_AT_ONCE = 2
MAX_WAITING = 16
PATIENCE_S = 3.0
RETRY_AFTER_S = 2


class HashingSlots:
    """Permits at most `size` hashes at the same time. At most `most_waiting` threads wait, each at most
    `patience_s` seconds."""

    def __init__(self, size: int, most_waiting: int, patience_s: float) -> None:
        self._slots = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._most_waiting, self._patience_s = most_waiting, patience_s
        self._waiting = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Takes a slot for one hash. Raises HashingBusy if none becomes free in time."""
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


slots = HashingSlots(HASHES_AT_ONCE, MAX_WAITING, PATIENCE_S)


class BoundedArgon2PasswordHasher(Argon2PasswordHasher):
    # The least that OWASP recommends for Argon2id.
    time_cost, memory_cost, parallelism = 2, 19456, 1

    def encode(self, password: str, salt: str) -> str:
        with slots.one():
            return str(super().encode(password, salt))

    def verify(self, password: str, encoded: str) -> bool:
        with slots.one():
            return bool(super().verify(password, encoded))


class BoundedPBKDF2PasswordHasher(PBKDF2PasswordHasher):
    """Checks passwords that were stored before argon2. Each is hashed anew when its person signs in."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        # `verify` calls this too, so a slot is taken here alone.
        with slots.one():
            return str(super().encode(password, salt, iterations))


def equalize_failure(name: str, password: str) -> None:
    """Computes the hash that a failed sign-in did not need, so that every failure takes the same time.

    While some passwords are still stored with an older algorithm, a failure costs one hash of each kind.
    Otherwise the duration would reveal whether a name exists."""
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
    """Returns the stored password of any active person that has another than the preferred algorithm, or
    None."""
    # Django writes "!" before the random text that it stores for a person without a usable password.
    active = User.objects.filter(is_active=True)
    usable = active.exclude(password="").exclude(password__startswith="!")  # noqa: S106
    return (
        usable.exclude(password__startswith=f"{preferred.algorithm}$")
        .values_list("password", flat=True)
        .first()
    )


def _is_of(hasher: BasePasswordHasher, encoded: str) -> bool:
    return encoded.startswith(f"{hasher.algorithm}$")


def _give_connections_back() -> None:
    """Closes this thread's idle database connections, so that others can use their places in the pool while
    it waits."""
    connection: Any
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
