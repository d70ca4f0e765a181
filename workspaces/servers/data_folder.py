"""Keeps two hubs from using one database by mistake: a database belongs to one data folder, which all servers
of the hub share."""

from __future__ import annotations

import hmac
import secrets
import socket
from hashlib import sha256
from pathlib import Path

from django.conf import settings
from django.db import connection

from workspaces.servers import server_registry
from workspaces.servers.models import DataFolder, ServerProcess

FILE = "installation-id"
ADOPT = "manage.py servers --adopt-data-folder"


class WrongDatabase(Exception):
    """The message says, as sentences, why this hub must not use the database, and what to do."""


def check_pairing(*, is_further: bool, has_content: bool) -> None:
    """Raises WrongDatabase if this hub must not start. `is_further`: it is one of several servers.
    `has_content`: the data folder has files of a hub. Does nothing on a database without these tables."""
    if DataFolder._meta.db_table not in connection.introspection.table_names():
        return
    living = list(server_registry.living_processes()) if server_registry.is_shareable() else []
    row = DataFolder.objects.first()
    if row is not None:
        _check_folder(row, living, has_content=has_content)
        _check_key(row, living)
    others = [server for server in living if not server_registry.is_own(server)]
    if not is_further and others:
        raise WrongDatabase(
            f"TrainHub runs on this database already: {_names(others)}. Start this one with "
            "`manage.py up --only web` or `--only worker` to add it (docs/servers.md), or set DATABASE_URL "
            "to a database of its own."
        )
    alone = [server for server in others if server.is_alone and server.role == server_registry.WEB]
    if alone:
        raise WrongDatabase(
            f"{_names(alone)} was started as the only server. Set SERVER_ADDRESS there, and start it again "
            "first (docs/servers.md)."
        )


def pair_with_database() -> None:
    """Notes that the database and the data folder belong together. `check_pairing` comes first."""
    path = _file()
    row = DataFolder.objects.first()
    fingerprint = _fingerprint() or (row.fingerprint if row is not None else secrets.token_hex(16))
    if not path.exists():
        path.write_text(f"{fingerprint}\n")
        path.chmod(0o600)
    facts = {
        "fingerprint": fingerprint,
        "key_check": _key_check(fingerprint),
        "path": str(settings.DATA_DIR),
        "host": socket.gethostname()[:255],
    }
    if row is None or any(getattr(row, name) != value for name, value in facts.items()):
        DataFolder.objects.update_or_create(pk=1, defaults=facts)


def adopt_folder() -> None:
    """Makes this data folder the database's. Raises WrongDatabase while a server uses the other one."""
    living = list(server_registry.living_processes()) if server_registry.is_shareable() else []
    if living:
        raise WrongDatabase(f"{_names(living)} still runs with the other data folder. Stop it first.")
    _file().unlink(missing_ok=True)
    DataFolder.objects.all().delete()
    pair_with_database()


def _check_folder(row: DataFolder, living: list[ServerProcess], *, has_content: bool) -> None:
    own = _fingerprint()
    if own == row.fingerprint:
        return
    # A folder that was restored from a backup has no such file.
    if not own and has_content and not living:
        return
    running = f", which {_names(living)} uses now" if living else ""
    raise WrongDatabase(
        f"This database belongs to the data folder {row.path} (last started on {row.host}){running}, and "
        f"{settings.DATA_DIR} is another one. Set DATA_DIR to that folder, or DATABASE_URL to this folder's "
        f"database. If that folder is gone for good, stop all servers and run `{ADOPT}`."
    )


def _check_key(row: DataFolder, living: list[ServerProcess]) -> None:
    if living and row.key_check != _key_check(row.fingerprint):
        raise WrongDatabase(
            f"SECRET_KEY is another one than that of {_names(living)}. Give all servers the same, by "
            "SECRET_KEY, SECRET_KEY_FILE or the file secret-key in the shared data folder."
        )


def _names(servers: list[ServerProcess]) -> str:
    return " and ".join(sorted({f"server {server.name}" for server in servers}))


def _file() -> Path:
    return Path(settings.DATA_DIR) / FILE


def _fingerprint() -> str:
    try:
        return _file().read_text().strip()
    except FileNotFoundError:
        return ""


def _key_check(fingerprint: str) -> str:
    return hmac.new(settings.SECRET_KEY.encode(), f"servers:{fingerprint}".encode(), sha256).hexdigest()
