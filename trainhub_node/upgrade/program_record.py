"""Which program this node runs, which one it tries, and what became of the last order: `record.json`, beside
the programs. It is replaced as a whole, so no power cut leaves half of it."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from trainhub_launch.upgrades.program_order import DONE, FAILED
from trainhub_node.durable_files import write_durably

log = logging.getLogger(__name__)
FILE = "record.json"


@dataclass(frozen=True)
class ProgramRecord:
    """Programs are named by their folders; "" stands for the installed package. `installed`: its identity
    when another one was chosen, see package_identity. `current` runs, and `previous` ran before. `trial`: the
    one that is being tried, which has been started `starts` times and has not reported to the hub yet.

    `order`: the last order that was taken up, `takes` times; `outcome`: DONE or FAILED, "" while it is under
    way, and `why` it failed; `is_reported`: whether the hub knows. `key`: the public key by which this node
    knows orders of its hub."""

    installed: str = ""
    current: str = ""
    previous: str = ""
    trial: str = ""
    starts: int = 0
    order: int = 0
    takes: int = 0
    outcome: str = ""
    why: str = ""
    is_reported: bool = False
    key: str = ""

    def with_success(self) -> ProgramRecord:
        """Returns the record of a trial that has reported to the hub."""
        previous = self.current if self.current != self.trial else self.previous
        return replace(
            self,
            current=self.trial,
            previous=previous,
            trial="",
            starts=0,
            outcome=DONE,
            why="",
            is_reported=False,
        )

    def with_failure(self, why: str) -> ProgramRecord:
        return replace(self, trial="", starts=0, outcome=FAILED, why=why, is_reported=False)


def programs_folder(node_folder: Path) -> Path:
    return node_folder / "programs"


def read_record(folder: Path) -> ProgramRecord:
    """Returns the record in the folder of the programs, an empty one without a usable file."""
    file = folder / FILE
    try:
        if not is_private(folder) or not is_private(file):
            log.error("%s was not written by this account alone; the installed package is used", file)
            return ProgramRecord()
        data = json.loads(file.read_bytes())
        # Later programs may have added fields.
        types = {spot.name: type(spot.default) for spot in fields(ProgramRecord)}
        values: dict[str, Any] = {
            name: value for name, value in data.items() if type(value) is types.get(name)
        }
        return ProgramRecord(**values)
    except FileNotFoundError:
        return ProgramRecord()
    except (OSError, ValueError, AttributeError) as error:
        log.error("%s cannot be used, and the installed package is: %s", file, error)
        return ProgramRecord()


def write_record(folder: Path, record: ProgramRecord) -> None:
    """Raises OSError."""
    write_durably(folder / FILE, json.dumps(asdict(record), indent=2) + "\n")


def forget_hub(node_folder: Path) -> None:
    """Has the node take the key of the next hub: this one joined another. Raises OSError."""
    folder = programs_folder(node_folder)
    record = read_record(folder)
    if record.key or record.order:
        write_record(folder, replace(record, key="", order=0, takes=0, outcome="", is_reported=False))


def is_private(path: Path) -> bool:
    """Returns whether the path belongs to this account, and no other may write there. Raises OSError."""
    status = path.lstat()
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022
