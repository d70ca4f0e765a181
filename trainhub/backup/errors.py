"""What stops a backup or a restoration."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import Error as DatabaseError

from workspaces.stored_files.blobs import DISK_FULL


class BackupError(Exception):
    """A backup cannot be made, read or restored. The message is for the operator, with a remedy."""


@contextmanager
def system_errors(folder: Path) -> Iterator[None]:
    """Turns errors of the system, which writes to `folder`, and of the database into BackupError."""
    try:
        yield
    except OSError as error:
        raise _sentence(error, folder) from error
    except DatabaseError as error:
        raise BackupError(
            f"The database cannot be used: {str(error).strip()}. Check DATABASE_URL."
        ) from error


def _sentence(error: OSError, folder: Path) -> BackupError:
    """Returns the sentence for an error of the operating system while files were written to `folder`."""
    if error.errno in DISK_FULL:
        return BackupError(
            f"The disk of {folder} is full, or its quota is used up. Free space there, or name a folder on "
            "another disk, and run the command again."
        )
    name = error.filename or folder
    if isinstance(name, bytes):
        name = name.decode(errors="replace")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return BackupError(
            f"{name}: {error.strerror}. This command runs as the hub's account; give it the folder, for "
            f"example with `chown`, or name another one."
        )
    return BackupError(f"{name}: {error.strerror or error}.")
