"""`manage.py` commands on an installation whose hub has an account of its own: root changes to that account
first.

The hub could not read files that root writes."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

from trainhub import env, installation
from trainhub.up.separation import accounts, ownership


def enter() -> None:
    """Executes the same command again with the hub's part of DATA_DIR, and, if started by root, as the hub's
    account. Returns without effect if the hub has no account of its own."""
    data = installation.DATA_DIR
    if not ownership.is_separate(data):
        return
    owner = (data / ownership.HUB).lstat().st_uid
    try:
        account = pwd.getpwuid(owner)
    except KeyError as error:
        raise env.EnvError(
            f"{data / ownership.HUB} belongs to no account of this machine. Give it to one."
        ) from error
    is_root = os.geteuid() == 0
    variables = (
        accounts.environment(account.pw_name, data)
        if is_root
        else {**os.environ, "DATA_DIR": str(data / ownership.HUB)}
    )
    if is_root:
        os.umask(0o077)
        # Groups first, the user last: without root's rights the others could not be changed.
        os.setgroups(os.getgrouplist(account.pw_name, account.pw_gid))
        os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
        os.setresuid(account.pw_uid, account.pw_uid, account.pw_uid)
    arguments = [str(Path(sys.argv[0]).absolute()), *sys.argv[1:]]
    os.execve(sys.executable, [sys.executable, *arguments], variables)  # noqa: S606
