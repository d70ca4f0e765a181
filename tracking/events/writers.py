"""Who wrote an event file, as its name tells, and which name its numbers get in the run.

TensorBoard shows each folder as a run of its own; here all of them are one run, whose metrics are named alike
every time the same script runs. So the folder of the first file of an attempt is where names begin, whatever
it is called (`version_0`, a time of day). A file below it, or elsewhere, has its folder put before its tags.
Folders named after a part of the data or after a process are put before them in any case."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_FILE = re.compile(r"tfevents\.(?P<second>\d+)\.(?P<host>.*?)(?:\.(?P<pid>\d+)\.(?P<number>\d+))?(?:\.v2)?\Z")
_NODE = re.compile(r"node_(\d+)/(.+)", re.DOTALL)
_OF_DATA = re.compile(
    r"(train|training|val|valid|validation|test|testing|eval|evaluation|dev)\Z", re.IGNORECASE
)
_OF_PROCESS = re.compile(
    r"(?:local_)?(?:rank|worker|process|proc|replica|node|gpu)[-_]?(\d+)\Z", re.IGNORECASE
)
_MOMENT = re.compile(r"\d{9,}\.\d+\Z")
"""What SummaryWriter.add_hparams calls its folder."""
_PASSING = re.compile(r"workertemp_\d+\Z")
"""Where Keras lets those workers write whose files it deletes in the end."""

Ranks = Mapping[tuple[int, int], int]
"""(node rank, process number) -> rank, of the processes that TrainHub started."""


@dataclass(frozen=True)
class Writer:
    """One event file of an attempt. `name` is the log's; `pid` None where the file does not tell, as with old
    writers."""

    name: str
    node_rank: int
    folder: tuple[str, ...]
    second: int
    host: str
    pid: int | None
    number: int

    @property
    def process(self) -> tuple[int, str, int | None]:
        return self.node_rank, self.host, self.pid

    @property
    def age(self) -> tuple[int, int, int, str]:
        """In this order they were begun."""
        return self.second, self.node_rank, self.number, self.name

    @property
    def is_passing(self) -> bool:
        return any(_PASSING.match(part) for part in self.folder)


def writer(name: str) -> Writer:
    """Of the log `logs/…`, `outputs/…` or, of another node than the head, `node_<k>/logs/…`."""
    elsewhere = _NODE.match(name)
    node_rank, path = (int(elsewhere[1]), elsewhere[2]) if elsewhere else (0, name)
    *folder, file = path.split("/")
    found = _FILE.search(file)
    if found is None:
        return Writer(name, node_rank, tuple(folder), 0, "", None, 0)
    pid = int(found["pid"]) if found["pid"] else None
    return Writer(
        name, node_rank, tuple(folder), int(found["second"]), found["host"], pid, int(found["number"] or 0)
    )


def prefix(of: Writer, known: Sequence[Writer], ranks: Ranks) -> str:
    """What stands before the tags of `of`: "", or words that each end with a slash.

    `known`: every file of the attempt, in the order in which they were first read.
    """
    begin = _begin(known[0].folder)
    shared = 0
    while shared < min(len(begin), len(of.folder)) and begin[shared] == of.folder[shared]:
        shared += 1
    below = [part for part in of.folder[shared:] if not _MOMENT.match(part)]
    return "".join(f"{word}/" for word in (*_who(of, known, ranks), *below))


def _begin(folder: tuple[str, ...]) -> tuple[str, ...]:
    while folder and any(pattern.match(folder[-1]) for pattern in (_OF_DATA, _OF_PROCESS, _MOMENT)):
        folder = folder[:-1]
    return folder


def _who(of: Writer, known: Sequence[Writer], ranks: Ranks) -> list[str]:
    """Which of several processes, where the folder does not tell. Rank 0 needs no name."""
    rank = None if of.pid is None else ranks.get((of.node_rank, of.pid))
    if rank is not None:
        told = {int(match[1]) for part in of.folder if (match := _OF_PROCESS.match(part))}
        return [] if rank == 0 or rank in told else [f"rank_{rank}"]
    words = [f"node_{of.node_rank}"] if of.node_rank else []
    beside = [item.process for item in known if (item.node_rank, item.folder) == (of.node_rank, of.folder)]
    place = list(dict.fromkeys(beside)).index(of.process)
    return [*words, f"process_{place + 1}"] if place else words
