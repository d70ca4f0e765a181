"""The room that the caches of nodes have for the data of runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

# The lists of files that a run downloads to each of its nodes: the key of each (see
# trainhub_launch.data.downloads.DataDownload.list_key) and the bytes of its files.
DataLists = frozenset[tuple[str, int]]


def total_bytes(lists: Iterable[tuple[str, int]]) -> int:
    return sum(size for _, size in lists)


@dataclass(frozen=True)
class DataRoom:
    """The cache of data of a node. `bytes`: its size, None = unknown, as of a node that does not exist yet;
    `keys`: of the lists whose files it has; `in_use`: the lists that runs on the node read now, whose files
    stay."""

    bytes: int | None = None
    keys: frozenset[str] = frozenset()
    in_use: DataLists = frozenset()

    def can_ever(self, needed: DataLists) -> bool:
        """Returns whether the files of all lists fit, whatever is in the cache at present."""
        return self.bytes is None or total_bytes(needed) <= self.bytes

    def can_now(self, needed: DataLists) -> bool:
        """Returns whether the files of all lists fit beside what runs use. Files that stand in several
        lists count several times: the hub does not know which."""
        return self.bytes is None or not needed or total_bytes(needed | self.in_use) <= self.bytes

    def missing_bytes(self, needed: DataLists) -> int:
        """Returns how much a run that needs the lists would download."""
        return total_bytes(item for item in needed if item[0] not in self.keys)

    def with_use(self, lists: DataLists) -> DataRoom:
        return replace(self, in_use=self.in_use | lists)


UNKNOWN_ROOM = DataRoom()
