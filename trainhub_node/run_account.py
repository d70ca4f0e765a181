"""The account under which runs execute, as the operator has chosen it with TRAINHUB_NODE_RUN_AS.

The functions raise ValueError with a sentence that names the setting."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainhub_node.isolation import uid_range

# Values that name no account: each attempt has one of its own, or that of the person who submitted it.
RANGE, PERSON = "range", "person"
# The account `nobody` of every machine, which stands for those of people.
NOBODY = 65534
PEOPLE_FILE = "people"


@dataclass(frozen=True)
class Account:
    """The account of the ranks, where the agent is root. `groups`: its groups; None = as the machine knows
    them."""

    name: str
    uid: int
    gid: int
    home: str
    groups: tuple[int, ...] | None = None


def choose_account(env: Mapping[str, str], uids: range | None) -> Account | None:
    """Returns the account, or one that stands for those of all attempts; None for the agent's own."""
    name = env.get("TRAINHUB_NODE_RUN_AS", "")
    if not name:
        return None
    if os.geteuid() != 0:
        raise ValueError(
            f"TRAINHUB_NODE_RUN_AS={name} needs an agent that runs as root; leave it out otherwise"
        )
    if uids is not None:
        return Account(name=RANGE, uid=uids[0], gid=uids[0], home="/")
    if name == PERSON:
        return Account(name=PERSON, uid=NOBODY, gid=NOBODY, home="/")
    try:
        entry = pwd.getpwnam(name)
    except KeyError as error:
        raise ValueError(f"TRAINHUB_NODE_RUN_AS={name} is not an account of this machine") from error
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, home=entry.pw_dir)


def numbers(env: Mapping[str, str]) -> range | None:
    """Returns the numbers for accounts of attempts; None if these have none of their own."""
    if env.get("TRAINHUB_NODE_RUN_AS") != RANGE or os.geteuid() != 0:
        return None
    try:
        return uid_range.read(env.get("TRAINHUB_NODE_UIDS", ""))
    except ValueError as error:
        raise ValueError(f"TRAINHUB_NODE_UIDS={env.get('TRAINHUB_NODE_UIDS', '')}: {error}") from error


def people_file(env: Mapping[str, str], folder: Path) -> Path | None:
    """Returns the file that names the accounts of people; None if the operator has made none. `folder`: the
    agent's."""
    if env.get("TRAINHUB_NODE_RUN_AS") != PERSON:
        return None
    value = env.get("TRAINHUB_NODE_PEOPLE", "")
    if value and not Path(value).is_file():
        raise ValueError(f"TRAINHUB_NODE_PEOPLE={value} is no file; make it, or leave the setting out")
    file = Path(value).absolute() if value else folder / PEOPLE_FILE
    return file if file.exists() else None


def can_execute(path: str, account: Account | None) -> bool:
    """Returns whether the account of the ranks may execute the file, or enter the folder, at `path`."""
    if account is None:
        return os.access(path, os.X_OK)
    # Checked under that account, because permissions of the parent folders count, too.
    result = subprocess.run(
        ["/usr/bin/test", "-x", path],
        user=account.uid,
        group=account.gid,
        check=False,
        stdin=subprocess.DEVNULL,
        extra_groups=os.getgrouplist(account.name, account.gid),
    )
    return result.returncode == 0
