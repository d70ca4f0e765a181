"""How many connections the gateway keeps, and whose: bounded before and after a client has signed in.

Before, each address and all together have a limit, so that nobody can use up the gateway without a password.
After, each user has one: the oldest connection gives way, which is most often one that its node has lost
already."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

MAX_GUESTS = 4096
MAX_STRANGERS = 1024
MAX_STRANGERS_OF_ADDRESS = 128
"""More than one machine may stand behind an address. Those that are refused come again, and each sign-in
takes milliseconds."""
MAX_GUESTS_OF_USER = 8


class Admission:
    """Counts connections. `room`: how many there may be, of clients that have signed in and of others
    together."""

    def __init__(self, room: int = MAX_GUESTS + MAX_STRANGERS) -> None:
        self._max_strangers = max(1, min(MAX_STRANGERS, room // 5))
        self._max_guests = max(1, min(MAX_GUESTS, room - self._max_strangers))
        self._strangers: Counter[str] = Counter()
        self._guests: defaultdict[str, dict[object, Callable[[], None]]] = defaultdict(dict)
        self._guest_count = 0

    @property
    def strangers(self) -> int:
        return self._strangers.total()

    def accept(self, address: str) -> bool:
        """Count a connection from this address that has not signed in yet. False where there is no room."""
        if self.strangers >= self._max_strangers or self._strangers[address] >= MAX_STRANGERS_OF_ADDRESS:
            return False
        self._strangers[address] += 1
        return True

    def release(self, address: str) -> None:
        """A connection that was accepted is no stranger's any more: it has signed in, or has ended."""
        self._strangers[address] -= 1
        if not self._strangers[address]:
            del self._strangers[address]

    def admit(self, user: str, connection: object, end: Callable[[], None]) -> bool:
        """Count a connection of this user. `end` is called when it has to give way. False where there is no
        room."""
        own = self._guests[user]
        if len(own) < MAX_GUESTS_OF_USER and self._guest_count >= self._max_guests:
            return False
        if len(own) >= MAX_GUESTS_OF_USER:
            oldest = next(iter(own))
            own.pop(oldest)()
            self._guest_count -= 1
        own[connection] = end
        self._guest_count += 1
        return True

    def leave(self, user: str, connection: object) -> None:
        """The connection has ended."""
        own = self._guests.get(user, {})
        if own.pop(connection, None) is not None:
            self._guest_count -= 1
        if not own:
            self._guests.pop(user, None)
