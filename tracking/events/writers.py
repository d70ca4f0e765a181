"""Parses the names of event files, and derives the prefix that their metrics get in the run.

TensorBoard shows each folder as a run of its own; here all of them are one run, whose metrics have the same
names every time the same script runs. So the folder of an attempt's first file adds no prefix, whatever its
name is (`version_0`, a time of day). For files in other folders the folder is the prefix of the tags. Folders
named after a part of the data or after a process are always part of the prefix.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# events.out.tfevents.SECOND.HOST.PID.NUMBER, and .v2 from TensorFlow 2. Old writers leave PID and NUMBER out.
# A host may contain dots.
_FILE = re.compile(r"tfevents\.(?P<second>\d+)\.(?P<host>.*?)(?:\.(?P<pid>\d+)\.(?P<number>\d+))?(?:\.v2)?\Z")
_NODE = re.compile(r"node_(\d+)/(.+)", re.DOTALL)
# Keras and Lightning write training and validation to folders of these names; they are part of the tag.
_DATA_FOLDER = re.compile(
    r"(train|training|val|valid|validation|test|testing|eval|evaluation|dev)\Z", re.IGNORECASE
)
_PROCESS_FOLDER = re.compile(
    r"(?:local_)?(?:rank|worker|process|proc|replica|node|gpu)[-_]?(\d+)\Z", re.IGNORECASE
)
# The name of the folder that SummaryWriter.add_hparams creates.
_TIME_FOLDER = re.compile(r"\d{9,}\.\d+\Z")
# Folders of Keras workers, which Keras deletes at the end.
_TEMPORARY_FOLDER = re.compile(r"workertemp_\d+\Z")

# Ranks of the processes that TrainHub started, by (node rank, pid).
Ranks = Mapping[tuple[int, int], int]


@dataclass(frozen=True)
class EventFileName:
    """The parsed name of an event file; `pid` is None if the name does not contain it, as with old
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
        """The sort key that orders files by their time of creation."""
        return self.second, self.node_rank, self.number, self.name

    @property
    def is_temporary(self) -> bool:
        return any(_TEMPORARY_FOLDER.match(part) for part in self.folder)


def parse_name(name: str) -> EventFileName:
    """Parses `logs/…`, `outputs/…` or, for nodes other than the head, `node_<k>/logs/…`."""
    node_match = _NODE.match(name)
    node_rank, path = (int(node_match[1]), node_match[2]) if node_match else (0, name)
    *folder, file = path.split("/")
    match = _FILE.search(file)
    if match is None:
        return EventFileName(name, node_rank, tuple(folder), 0, "", None, 0)
    pid = int(match["pid"]) if match["pid"] else None
    return EventFileName(
        name, node_rank, tuple(folder), int(match["second"]), match["host"], pid, int(match["number"] or 0)
    )


def tag_prefix(file: EventFileName, files: Sequence[EventFileName], ranks: Ranks) -> str:
    """Returns the prefix of the file's tags: "", or words that each end with a slash.

    `files` are all files of the attempt, in the order of discovery.
    """
    # The first file counts as the main one: its folder gets no prefix.
    base = _base_folder(files[0].folder)
    shared = 0
    while shared < min(len(base), len(file.folder)) and base[shared] == file.folder[shared]:
        shared += 1
    below = [part for part in file.folder[shared:] if not _TIME_FOLDER.match(part)]
    return "".join(f"{word}/" for word in (*_process_words(file, files, ranks), *below))


def _base_folder(folder: tuple[str, ...]) -> tuple[str, ...]:
    while folder and any(
        pattern.match(folder[-1]) for pattern in (_DATA_FOLDER, _PROCESS_FOLDER, _TIME_FOLDER)
    ):
        folder = folder[:-1]
    return folder


def _process_words(file: EventFileName, files: Sequence[EventFileName], ranks: Ranks) -> list[str]:
    """Returns the words that identify the process, if the folder does not; rank 0 needs none."""
    rank = None if file.pid is None else ranks.get((file.node_rank, file.pid))
    if rank is not None:
        folder_ranks = {int(match[1]) for part in file.folder if (match := _PROCESS_FOLDER.match(part))}
        return [] if rank == 0 or rank in folder_ranks else [f"rank_{rank}"]
    words = [f"node_{file.node_rank}"] if file.node_rank else []
    processes = [
        item.process for item in files if (item.node_rank, item.folder) == (file.node_rank, file.folder)
    ]
    index = list(dict.fromkeys(processes)).index(file.process)
    return [*words, f"process_{index + 1}"] if index else words
