"""Checks whether the account of the runs could replace a folder of the agent by one of its own."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from trainhub_node.run_account import Account


def controlled_by(account: Account, folder: Path) -> Path | None:
    """Returns the first folder on the path to `folder`, or itself, in which `account` may rename or
    replace entries. None if there is none."""
    groups = os.getgrouplist(account.name, account.gid)
    real = folder.resolve()
    for step in (*reversed(real.parents), real):
        if not step.exists():
            return None  # the agent will make it
        facts = step.stat()
        is_writable = facts.st_mode & stat.S_IWOTH or (
            facts.st_mode & stat.S_IWGRP and facts.st_gid in groups
        )
        # In a sticky folder like /tmp other accounts' entries cannot be renamed. That does not protect
        # entries which the runs' account makes in the agent's own folder.
        is_protected = facts.st_mode & stat.S_ISVTX and step != real
        if facts.st_uid == account.uid or (is_writable and not is_protected):
            return step
    return None
