"""Whether the account of the runs could exchange a folder of the agent's for one of its own, above the
agent's reach."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from trainhub_node.settings import Account


def controlled_by(account: Account, folder: Path) -> Path | None:
    """The first folder on the way to `folder`, itself included, in which `account` may rename or replace what
    is there."""
    groups = os.getgrouplist(account.name, account.gid)
    real = folder.resolve()
    for step in (*reversed(real.parents), real):
        if not step.exists():
            return None  # the agent makes it, and what is in it
        facts = step.stat()
        is_writable = facts.st_mode & stat.S_IWOTH or (
            facts.st_mode & stat.S_IWGRP and facts.st_gid in groups
        )
        # In a folder like /tmp others' entries cannot be renamed; the agent's own folder has no use for that.
        is_protected = facts.st_mode & stat.S_ISVTX and step != real
        if facts.st_uid == account.uid or (is_writable and not is_protected):
            return step
    return None
