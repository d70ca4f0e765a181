"""What a node knows of the folder of checkpoints of one attempt."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from trainhub_launch.data.outputs import StoreFolder
from trainhub_launch.states import CheckpointSign
from trainhub_node.checkpoints.entries import Entry, list_entries
from trainhub_node.checkpoints.renames import RenameWatch
from trainhub_node.rundir import RunDir

# Size and SHA-256 of files in a store -> the key of each.
Contents = dict[tuple[int, str], str]
# Of so many files it is remembered.
MAX_CONTENTS = 20_000
# The number of what the hub does not keep, though it was announced.
REFUSED = 0


@dataclass
class WatchedFolder:
    """An attempt with a folder of checkpoints. `announced`: name -> version that the hub has or takes, or
    that was there before the ranks started. `is_alone`: it is the run's only node; `store`: where checkpoints
    are written, None = to the hub. `delivering`: numbers that wait for a thread or have one; `delivered`:
    those that this agent has delivered; `surplus`: those that it is to remove from the store, each with the
    keys of files that stay; `contents`: of files in the store; `failures`: how often delivering each has
    failed for a reason that nobody has thought of."""

    folder: RunDir
    place: str
    renames: RenameWatch
    announced: dict[str, str]
    is_alone: bool
    store: StoreFolder | None
    delivering: set[int] = field(default_factory=set)
    delivered: set[int] = field(default_factory=set)
    surplus: dict[int, list[str]] = field(default_factory=dict)
    contents: Contents = field(default_factory=dict)
    failures: Counter[int] = field(default_factory=Counter)
    # One scan at a time: the thread of the collector, and the one that finishes the attempt.
    lock: threading.Lock = field(default_factory=threading.Lock)

    def entries(self) -> list[Entry]:
        self.renames.look()
        return list_entries(self.folder.work, self.place, self.renames.renames)

    def news(self, entries: Iterable[Entry]) -> list[Entry]:
        return [entry for entry in entries if self.announced.get(entry.name) != entry.version]

    def note_delivery(self, number: int, name: str, version: str, contents: Contents) -> None:
        """`version`: of what was delivered, "" if nothing was; `contents`: as it is then."""
        with self.lock:
            self.contents = contents if len(contents) <= MAX_CONTENTS else {}
            self.delivered.add(number)
            if version:
                # Also what another node has announced: it is no news to the hub any more.
                self.announced[name] = version

    def take_surplus(self) -> dict[int, list[str]]:
        """Returns what the caller removes from the store; nothing of what is still written."""
        with self.lock:
            surplus = {number: keys for number, keys in self.surplus.items() if number not in self.delivering}
            self.surplus.clear()
        return surplus

    def take(self, number: int) -> bool:
        """Returns whether the caller is the one who delivers that checkpoint."""
        with self.lock:
            if number == REFUSED or number in self.delivering or number in self.delivered:
                return False
            self.delivering.add(number)
            return True


def worth_announcing(entries: Iterable[Entry]) -> list[Entry]:
    """Returns the newest entry, and of the others the newest that are complete by a sign: what a script has
    written before it learned to mark its checkpoints is not worth the upload of all of it."""
    ordered = list(entries)
    signed = [entry for entry in ordered if entry.sign is not CheckpointSign.NONE][-3:]
    return signed if not ordered or ordered[-1] in signed else [*signed, ordered[-1]]
