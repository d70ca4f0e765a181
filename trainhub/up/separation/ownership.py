"""Gives the hub's part of DATA_DIR to the hub's account, once, and without trusting anything that lies there.

DATA_DIR itself stays root's. The hub's files are moved to DATA_DIR/hub by renaming, so nothing is copied.
NODE_DIR stays where it is, because environments and running attempts contain its path."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

from trainhub import env, installation
from trainhub.files import secrets_keyring
from trainhub.up.console import Stop, say
from trainhub.up.separation.accounts import Account

HUB = "hub"
STAGING = ".hub-moving"
# Folders in DATA_DIR that stay root's: process ids and lock, the agent's log, copies of the operator's
# certificate.
OWN_FOLDERS = ("run", "logs", "tls-given")


def prepare(account: Account) -> None:
    """Makes DATA_DIR and its parts. At the first start with an account for the hub, moves the files that an
    earlier hub has left there. Raises Stop if that is impossible."""
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


def give_keyring(account: Account) -> None:
    """Makes the folder of the keys for secrets, and gives it with its file to the hub's account. A place of
    the operator's own (SECRETS_KEYRING) stays as it is."""
    if env.text("SECRETS_KEYRING", ""):
        return
    file = secrets_keyring(installation.DATA_DIR)
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        # The file first: the folder is root's and private until then.
        for path in (file, file.parent):
            if os.path.lexists(path) and path.lstat().st_uid == 0:
                os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
    except OSError as error:
        raise Stop(
            f"The folder of the keys for secrets, {file.parent}, cannot be made ready: {error.strerror}. Set "
            "SECRETS_KEYRING to a file in a folder of the hub's account."
        ) from error


def is_separate(data: Path) -> bool:
    """Returns whether the hub's part of this folder has been given to an account."""
    try:
        status = (data / HUB).lstat()
        return stat.S_ISDIR(status.st_mode) and status.st_uid != 0 and data.stat().st_uid == 0
    except OSError:
        return False


def copy_certificate(account: Account) -> dict[str, str]:
    """Returns TLS_CERT_FILE and TLS_KEY_FILE for the hub's account. They name copies, because usually only
    root can read the originals."""
    folder = installation.DATA_DIR / "tls-given"
    folder.chmod(0o711)
    copies = {}
    for name in ("TLS_CERT_FILE", "TLS_KEY_FILE"):
        path = env.text(name, "")
        if not path:
            continue
        copy = folder / name.lower()
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise Stop(f"{name}={path} cannot be read: {error.strerror}.") from error
        copy.unlink(missing_ok=True)
        # O_EXCL after the unlink: whatever somebody puts in its place is not written to.
        descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o400)
        with open(descriptor, "wb") as file:  # noqa: PTH123
            file.write(content)
            os.fchown(file.fileno(), account.pw_uid, account.pw_gid)
        copies[name] = str(copy)
    return copies


def _separate(data: Path, folder: int, account: Account) -> None:
    status = _lstat(folder, HUB)
    if status is not None:
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != account.pw_uid:
            remedy = (
                f"Set HUB_AS to its owner, or give it away yourself: chown -R {account.pw_name} {data / HUB}"
            )
            raise Stop(f"{data / HUB} belongs to {_name(status.st_uid)}, not to {account.pw_name}. {remedy}")
        return
    staged = _lstat(folder, STAGING)
    # The staging folder itself is given away last: if it is no longer root's, only the renaming is missing.
    if staged is None or staged.st_uid == 0:
        _stage(data, folder, account)
    # The last step, so that a folder with this name is always complete. After a crash the next start resumes.
    os.rename(STAGING, HUB, src_dir_fd=folder, dst_dir_fd=folder)


def _stage(data: Path, folder: int, account: Account) -> None:
    """Collects the hub's files in a folder that only root can enter. Gives away its content first, and the
    folder itself last."""
    moving = [name for name in os.listdir(folder) if name not in (*_names_to_keep(data), STAGING)]
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
        # While the folder is root's and private, the account cannot reach the files that are given away one
        # by one.
        os.fchown(staging, account.pw_uid, account.pw_gid)
    finally:
        os.close(staging)
    if count:
        say(
            f"The hub leaves root: its {count} files are in {data / HUB} now and belong to {account.pw_name}."
        )


def _names_to_keep(data: Path) -> set[str]:
    """Returns the names in DATA_DIR that stay root's."""
    cache = os.environ.get("TRAINHUB_NODE_CACHE", "")  # the agent's setting
    inside = [
        path
        for path in (installation.NODE_DIR, Path(cache).absolute() if cache else data)
        if path.is_relative_to(data)
    ]
    return {*OWN_FOLDERS, *(path.relative_to(data).parts[0] for path in inside if path != data)}


def _check(data: Path, folder: int, name: str) -> None:
    """Raises Stop for entries that root must not give away: those of other owners, links, files with further
    names, and devices."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    _check_entry(data / name, status)
    if not stat.S_ISDIR(status.st_mode):
        return
    for path, folders, files, at in os.fwalk(name, follow_symlinks=False, dir_fd=folder):
        for entry in (*folders, *files):
            _check_entry(data / path / entry, os.stat(entry, dir_fd=at, follow_symlinks=False))


def _check_entry(path: Path, status: os.stat_result) -> None:
    if status.st_uid != 0:
        raise Stop(
            f"{path} belongs to {_name(status.st_uid)}, so it is not given away. Give it to root, or move it "
            "elsewhere."
        )
    if stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink == 1):
        return
    what = (
        "has a second name elsewhere"
        if stat.S_ISREG(status.st_mode)
        else "is neither a folder nor a plain file"
    )
    raise Stop(
        f"{path} {what}, so it is not given away to the hub's account. Replace it by a copy, or move it "
        "elsewhere."
    )


def _check_owner(data: Path, status: os.stat_result) -> None:
    if status.st_uid != 0:
        raise Stop(
            f"DATA_DIR={data} belongs to {_name(status.st_uid)}. With RUN_AS it must be root's: chown -R "
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
