"""Makes stored files of earlier versions read-only, once, in the background (`workspaces.stored_files.blobs`
seals new ones)."""

from __future__ import annotations

import logging
import os
import stat
from contextlib import suppress
from pathlib import Path

from workspaces.stored_files import blobs

log = logging.getLogger(__name__)
_DONE = "sealed"


def seal_old() -> int:
    """Seals every stored file that is not sealed; returns how many. A marker file makes later calls return at
    once."""
    root = blobs.root()
    done = root / _DONE
    if done.exists() or not root.is_dir():
        return 0
    # The folders of blobs have two letters; beside them are half-written and damaged files, which stay as
    # they are.
    sealed = sum(
        _seal(folder) for folder in sorted(root.iterdir()) if folder.is_dir() and len(folder.name) == 2
    )
    done.touch(mode=0o600)
    if sealed:
        log.warning(
            "%s stored files of an earlier version of TrainHub are read-only now (mode 0400), as new "
            "ones are.",
            sealed,
        )
    return sealed


def _seal(folder: Path) -> int:
    changed = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                # Uploads go on meanwhile, and the garbage collection may take a file.
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISREG(mode) and stat.S_IMODE(mode) != blobs.SEALED:
                    Path(entry.path).chmod(blobs.SEALED)
                    changed += 1
    return changed
