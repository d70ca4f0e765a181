"""A database with every migration applied: making one anew takes a hub four seconds of a core, and the tests
start dozens."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.caching import CACHE, alone

PROJECT = Path(__file__).resolve().parent.parent
NAME = "trainhub.sqlite3"
UNUSED_S = 86400


def put_into(data_dir: Path) -> None:
    """As a hub that was started and stopped before its first request would leave it; what is there stays."""
    database = data_dir / NAME
    if not database.exists():
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        copy_migrated(database)


def copy_migrated(database: Path) -> None:
    """Makes `database` a copy of it."""
    # The copy is made under the lock, too: the tests of another checkout may remove old templates.
    with alone("migrated"):
        shutil.copy(_template(), database)
    database.chmod(0o600)


def _template() -> Path:
    key = hashlib.sha256()
    for file in (PROJECT / "requirements.txt", *sorted(PROJECT.glob("*/migrations/*.py"))):
        key.update(file.read_bytes())
    place = CACHE / f"migrated-{key.hexdigest()[:12]}.sqlite3"
    if not place.exists():
        for older in CACHE.glob("migrated-*.sqlite3"):
            # Two checkouts with different migrations are often tested in turn.
            if older.stat().st_mtime < time.time() - UNUSED_S:
                older.unlink()
        _make(place)
    place.touch()
    return place


def _make(place: Path) -> None:
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        env = {
            **os.environ,
            "DATA_DIR": folder,
            "DATABASE_URL": "",
            "DJANGO_SETTINGS_MODULE": "trainhub.settings",
        }
        command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(command, cwd=PROJECT, env=env, check=True, timeout=300)
        Path(folder, NAME).rename(place)
