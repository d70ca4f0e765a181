"""Accounts of this machine, and a machine on which people have some, as an agent and its runs see it."""

from __future__ import annotations

import pwd
import shutil
from pathlib import Path

ADA, BO, HUB, TEAM = 64101, 64102, 64103, 64110
PEOPLE = {"ada": (ADA, "/home/ada"), "bo": (BO, "/home/bo"), "hub": (HUB, "/")}
ADDED = {
    "passwd": "".join(f"{name}:x:{uid}:{uid}::{home}:/bin/sh\n" for name, (uid, home) in PEOPLE.items()),
    "group": f"ada:x:{ADA}:\nbo:x:{BO}:\nteam:x:{TEAM}:ada,bo\n",
}
LINE = 'mount --bind "$1" /etc/passwd && mount --bind "$2" /etc/group && shift 2 && exec "$@"'


def as_account(account: str) -> list[str]:
    """The beginning of a command that runs as that account."""
    setpriv = shutil.which("setpriv") or "setpriv"
    return [setpriv, "--reuid", account, "--regid", str(pwd.getpwnam(account).pw_gid), "--clear-groups", "--"]


def with_people(folder: Path) -> list[str]:
    """The beginning of a command that sees the accounts of people, in a mount namespace of its own: the
    machine of the tests keeps its accounts. `folder` gets the files."""
    files = []
    for name, lines in ADDED.items():
        file = folder / name
        file.write_text(Path("/etc", name).read_text() + lines)
        file.chmod(0o644)
        files.append(str(file))
    return ["unshare", "--mount", "sh", "-c", LINE, "sh", *files]
