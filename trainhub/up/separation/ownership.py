"""Gives the hub's part of DATA_DIR to the hub's account, once, and without trusting anything that lies there.

DATA_DIR stays root's. The hub's files move to DATA_DIR/hub by renaming, so nothing is copied, and NODE_DIR
stays where it is: environments and runs that are going name it by its path."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

from trainhub import env, installation
from trainhub.up.console import Stop, say
from trainhub.up.separation.accounts import Account

HUB = "hub"
STAGING = ".hub-moving"
OWN_FOLDERS = ("run", "logs", "tls-given")
"""Root's, in DATA_DIR: process ids and lock, the agent's log, copies of a given certificate."""


def prepare(account: Account) -> None:
    """Make DATA_DIR and its parts ready; at the first start with an account move what an earlier hub has left
    there."""
    data = installation.DATA_DIR
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o711)
        os.umask(0o077)
        folder = os.open(data, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _check_owner(data, os.fstat(folder))
            os.fchmod(folder, 0o711)
            _separate(data, folder, account)
        finally:
            os.close(folder)
        for path in (installation.NODE_DIR, *(data / name for name in OWN_FOLDERS)):
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        why = f"{error.filename or data}: {error.strerror or error}"
        raise Stop(
            f"The data folder {data} cannot be made ready ({why}). Set DATA_DIR to a folder of root's."
        ) from error


def is_separate(data: Path) -> bool:
    """Whether the hub's part of this folder has been given to an account."""
    try:
        found = (data / HUB).lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid != 0 and data.stat().st_uid == 0
    except OSError:
        return False


def copy_certificate(account: Account) -> dict[str, str]:
    """TLS_CERT_FILE and TLS_KEY_FILE for the hub's account: copies, because the originals are usually root's
    alone."""
    folder = installation.DATA_DIR / "tls-given"
    folder.chmod(0o711)
    copies = {}
    for name in ("TLS_CERT_FILE", "TLS_KEY_FILE"):
        given = env.text(name, "")
        if not given:
            continue
        copy = folder / name.lower()
        try:
            content = Path(given).read_bytes()
        except OSError as error:
            raise Stop(f"{name}={given} cannot be read: {error.strerror}.") from error
        copy.unlink(missing_ok=True)
        with open(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o400), "wb") as file:  # noqa: PTH123
            file.write(content)
            os.fchown(file.fileno(), account.pw_uid, account.pw_gid)
        copies[name] = str(copy)
    return copies


def _separate(data: Path, folder: int, account: Account) -> None:
    found = _lstat(folder, HUB)
    if found is not None:
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != account.pw_uid:
            remedy = (
                f"Set HUB_AS to its owner, or give it away yourself: chown -R {account.pw_name} {data / HUB}"
            )
            raise Stop(f"{data / HUB} belongs to {_name(found.st_uid)}, not to {account.pw_name}. {remedy}")
        return
    staged = _lstat(folder, STAGING)
    if staged is None or staged.st_uid == 0:
        _stage(data, folder, account)
    os.rename(STAGING, HUB, src_dir_fd=folder, dst_dir_fd=folder)


def _stage(data: Path, folder: int, account: Account) -> None:
    """Collect the hub's files in a folder that nobody but root can enter, and give away its content first,
    itself last."""
    moving = [name for name in os.listdir(folder) if name not in (*_kept(data), STAGING)]
    for name in moving:
        _check(data, folder, name)
    if _lstat(folder, STAGING) is None:
        os.mkdir(STAGING, 0o700, dir_fd=folder)
    staging = os.open(STAGING, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        for name in moving:
            os.rename(name, name, src_dir_fd=folder, dst_dir_fd=staging)
        count = 0
        for _, folders, files, at in os.fwalk(".", topdown=False, follow_symlinks=False, dir_fd=staging):
            for name in (*folders, *files):
                os.chown(name, account.pw_uid, account.pw_gid, dir_fd=at, follow_symlinks=False)
            count += len(files)
        os.fchown(staging, account.pw_uid, account.pw_gid)
    finally:
        os.close(staging)
    if count:
        say(
            f"The hub leaves root: its {count} files are in {data / HUB} now and belong to {account.pw_name}."
        )


def _kept(data: Path) -> set[str]:
    """Names in DATA_DIR that stay root's."""
    cache = os.environ.get("TRAINHUB_NODE_CACHE", "")  # the agent's setting
    inside = [
        path
        for path in (installation.NODE_DIR, Path(cache).absolute() if cache else data)
        if path.is_relative_to(data)
    ]
    return {*OWN_FOLDERS, *(path.relative_to(data).parts[0] for path in inside if path != data)}


def _check(data: Path, folder: int, name: str) -> None:
    """Raise Stop for what root must not give away: anything not root's, links, second names of a file,
    devices."""
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    _check_entry(data / name, found)
    if not stat.S_ISDIR(found.st_mode):
        return
    for path, folders, files, at in os.fwalk(name, follow_symlinks=False, dir_fd=folder):
        for entry in (*folders, *files):
            _check_entry(data / path / entry, os.stat(entry, dir_fd=at, follow_symlinks=False))


def _check_entry(path: Path, found: os.stat_result) -> None:
    if found.st_uid != 0:
        raise Stop(
            f"{path} belongs to {_name(found.st_uid)}, so it is not given away. Give it to root, or move it "
            "elsewhere."
        )
    if stat.S_ISDIR(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_nlink == 1):
        return
    what = (
        "has a second name elsewhere"
        if stat.S_ISREG(found.st_mode)
        else "is neither a folder nor a plain file"
    )
    raise Stop(
        f"{path} {what}, so it is not given away to the hub's account. Replace it by a copy, or move it "
        "elsewhere."
    )


def _check_owner(data: Path, found: os.stat_result) -> None:
    if found.st_uid != 0:
        raise Stop(
            f"DATA_DIR={data} belongs to {_name(found.st_uid)}. With RUN_AS it must be root's: chown -R "
            f"root {data}"
        )


def _lstat(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"the account number {uid}"
