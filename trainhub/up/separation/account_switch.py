"""`manage.py` commands on an installation whose hub has an account of its own: root becomes that account
first.

What root would write, the hub could not read.
"""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

from trainhub import env, installation
from trainhub.up.separation import accounts, ownership


def enter() -> None:
    """Start the same command anew on the hub's part of DATA_DIR, and as its account where root gave it. Else
    do nothing."""
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
    given = (
        accounts.environment(account.pw_name, data)
        if is_root
        else {**os.environ, "DATA_DIR": str(data / ownership.HUB)}
    )
    if is_root:
        os.umask(0o077)
        os.setgroups(os.getgrouplist(account.pw_name, account.pw_gid))
        os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
        os.setresuid(account.pw_uid, account.pw_uid, account.pw_uid)
    os.execve(sys.executable, [sys.executable, str(Path(sys.argv[0]).absolute()), *sys.argv[1:]], given)  # noqa: S606
