"""The folder of checkpoints of a run: a folder in it for each checkpoint, named by its id.

A checkpoint is written beside its place and then renamed, with a file `.complete` that is written last: both
are signs by which the node knows that it is whole (docs/checkpoints.md)."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FOLDER = "TRAINHUB_CHECKPOINT_DIR"
COMPLETE, METADATA = ".complete", "metadata.json"


def checkpoint_root() -> Path:
    """Returns the folder of this process's run; outside of runs `checkpoints` in the current folder."""
    return Path(os.environ.get(FOLDER) or "checkpoints").absolute()


def unfinished_path(checkpoint_id: str, root: Path) -> Path:
    """Returns the folder in which a checkpoint is written, and which is no checkpoint yet."""
    return root / f".{checkpoint_id}"


def finish(checkpoint_id: str, root: Path, metadata: Mapping[str, Any]) -> None:
    """Makes a checkpoint of what was written. Raises OSError."""
    folder = unfinished_path(checkpoint_id, root)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / METADATA).write_text(json.dumps(metadata, default=str), encoding="utf-8")
    facts = {"written_at": time.time_ns(), "attempt": _attempt()}
    (folder / COMPLETE).write_text(json.dumps(facts), encoding="utf-8")
    folder.rename(root / checkpoint_id)


def copy_files(source: Path, target: Path, selector: Any = None) -> None:
    """Copies a folder with what is in it, or the files whose path below `source` pleases the `selector`."""
    for parent, _folders, names in os.walk(source):
        for name in names:
            path = Path(parent, name)
            below = path.relative_to(source)
            if below.as_posix() == COMPLETE or (selector is not None and not selector(below.as_posix())):
                continue
            (target / below).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target / below)


def newest_checkpoint() -> str | None:
    """Returns the id of the newest checkpoint that was there before this attempt began, None if there is
    none."""
    root = checkpoint_root()
    candidates = []
    for marker in root.glob(f"*/{COMPLETE}") if os.environ.get(FOLDER) else ():
        facts = _read_facts(marker)
        if facts.get("attempt") != _attempt():
            candidates.append((int(facts.get("written_at") or 0), marker.parent.name))
    return max(candidates)[1] if candidates else None


def read_metadata(checkpoint_id: str, root: Path) -> dict[str, Any]:
    """Raises FileNotFoundError if there is no such checkpoint."""
    text = (existing_path(checkpoint_id, root) / METADATA).read_text(encoding="utf-8")
    metadata: dict[str, Any] = json.loads(text)
    return metadata


def existing_path(checkpoint_id: str, root: Path) -> Path:
    """Returns the folder of a checkpoint. Raises FileNotFoundError if there is none."""
    folder = root / checkpoint_id
    if not checkpoint_id or not folder.is_dir():
        raise FileNotFoundError(
            f"There is no checkpoint {checkpoint_id} in {root}: a run has those of its own, and the one that "
            "checkpoint.resume_from of its spec names."
        )
    return folder


def _read_facts(marker: Path) -> dict[str, Any]:
    try:
        facts = json.loads(marker.read_text(encoding="utf-8") or "{}")
    except ValueError:
        return {}  # a script's own marker, which may hold anything
    return facts if isinstance(facts, dict) else {}


def _attempt() -> str:
    """What tells the attempts of all runs apart: a run may begin with the checkpoint of another one."""
    return f"{os.environ.get('TRAINHUB_RUN_ID', '')}.{os.environ.get('TRAINHUB_ATTEMPT', '')}"
