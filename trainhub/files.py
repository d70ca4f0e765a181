"""Where files lie, and files that only this account may read."""

from __future__ import annotations

import os
from pathlib import Path

from trainhub import env

BASE_DIR = Path(__file__).resolve().parent.parent
# The package in which an installed hub lies (packaging/hub).
PACKAGE = "trainhub_hub"


def is_installed() -> bool:
    """Returns whether this is the package `trainhub-hub`, and not a checkout."""
    return BASE_DIR.parent.name == PACKAGE


def default_data_folder(suffix: str = "") -> Path:
    """Returns where data lies if no setting says so: in a checkout `data` with the suffix; for a package,
    which an upgrade replaces, a folder of the account outside of it."""
    if not is_installed():
        return BASE_DIR / f"data{suffix}"
    if os.geteuid() == 0:
        return Path(f"/var/lib/trainhub{suffix}")
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share", f"trainhub{suffix}")


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
