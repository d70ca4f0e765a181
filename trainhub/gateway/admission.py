"""Limits the connections of the gateway, before and after a client has signed in.

Before, there is a limit per address and one for all together, so that nobody can use up the gateway without a
password. After, there is one per user: the oldest connection of the user is ended, which is usually one that
its node has lost already."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

MAX_GUESTS = 4096
MAX_STRANGERS = 1024
# More than one machine may stand behind an address. Those that are refused come again, and each sign-in takes
# milliseconds.
MAX_STRANGERS_OF_ADDRESS = 128
MAX_GUESTS_OF_USER = 8


class Admission:
    """Counts connections. `room`: the maximum number of connections, signed in or not."""

    def __init__(self, room: int = MAX_GUESTS + MAX_STRANGERS) -> None:
        # A part of the room is reserved for clients that have not signed in: if guests could fill all of it,
        # no node could connect anew.
        self._max_strangers = max(1, min(MAX_STRANGERS, room // 5))
        self._max_guests = max(1, min(MAX_GUESTS, room - self._max_strangers))
        self._strangers: Counter[str] = Counter()
        self._guests: defaultdict[str, dict[object, Callable[[], None]]] = defaultdict(dict)
        self._guest_count = 0

    @property
    def strangers(self) -> int:
        return self._strangers.total()

    def accept(self, address: str) -> bool:
        """Counts a connection from this address that has not signed in yet. Returns False if there is no room
        for it."""
        if self.strangers >= self._max_strangers or self._strangers[address] >= MAX_STRANGERS_OF_ADDRESS:
            return False
        self._strangers[address] += 1
        return True

    def release(self, address: str) -> None:
        """Ends the count of a connection that `accept` has counted: it has signed in, or has ended."""
        self._strangers[address] -= 1
        if not self._strangers[address]:
            del self._strangers[address]

    def admit(self, user: str, connection: object, end: Callable[[], None]) -> bool:
        """Counts a connection of this user. `end` is called if a newer connection replaces it. Returns False
        if there is no room for it."""
        own = self._guests.get(user, {})
        if len(own) < MAX_GUESTS_OF_USER and self._guest_count >= self._max_guests:
            return False
        # A user at the limit replaces a connection of its own, which needs no further room.
        if len(own) >= MAX_GUESTS_OF_USER:
            oldest = next(iter(own))
            own.pop(oldest)()
            self._guest_count -= 1
        self._guests[user][connection] = end
        self._guest_count += 1
        return True

    def leave(self, user: str, connection: object) -> None:
        """Ends the count of a connection that `admit` has counted. Does nothing for one that was replaced."""
        own = self._guests.get(user, {})
        if own.pop(connection, None) is not None:
            self._guest_count -= 1
        # The connection may have been counted out by `admit` already, when it had to give way.
        if not own:
            self._guests.pop(user, None)
