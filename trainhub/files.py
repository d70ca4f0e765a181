"""Files that only this account may read."""

from __future__ import annotations

import os
from pathlib import Path

from trainhub import env


def write_secret(path: Path, text: str) -> None:
    """Writes `text` to `path`, readable by this account only. The file is replaced as a whole or not at
    all."""
    # In the same folder, so that the rename is atomic; with the process id, so that two processes do not
    # share it.
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:  # noqa: PTH123
        file.write(text)
    aside.replace(path)


def secrets_keyring(data: Path) -> Path:
    """Returns SECRETS_KEYRING, or a file beside the data folder: whoever gets hold of a backup of that folder
    must not be able to read its secrets."""
    # With an account of its own the hub's DATA_DIR is the part `hub` of the installation's.
    is_part = data.name == "hub" and (data.parent / "run").is_dir()
    whole = data.parent if is_part else data
    return env.folder("SECRETS_KEYRING", whole.with_name(f"{whole.name}.keyring") / "keys")
