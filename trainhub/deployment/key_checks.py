"""What would be lost, or lies open, on the disk of the hub."""

from __future__ import annotations

import os
import stat
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.core.checks import CheckMessage, Warning
from django.utils import timezone

from trainhub import installation
from trainhub.deployment.stored_facts import newest_backup, newest_key_copy

BACKUP_DAYS = 8


def debug_pages() -> list[CheckMessage]:
    if not settings.DEBUG:
        return []
    text = "DEBUG=1 shows settings and code to everybody who makes a page fail."
    return [Warning(text, hint="Remove DEBUG from the settings and restart the hub.", id="trainhub.W008")]


def readable_keys() -> list[CheckMessage]:
    """The files whose content signs sessions or decrypts secrets."""
    files = [
        installation.SECRET_KEY_FILE,
        Path(settings.SECRETS_KEYRING),
        installation.TLS_DIR / "ca-key.pem",
    ]
    given = os.environ.get("SECRET_KEY_FILE")
    files += [Path(given)] if given else []
    opened = [str(path) for path in files if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077]
    if not opened:
        return []
    text = f"Other accounts of this machine may read or write {', '.join(opened)}."
    return [Warning(text, hint=f"chmod 600 {' '.join(opened)}", id="trainhub.W009")]


def old_backup() -> list[CheckMessage]:
    at = newest_backup()
    if at is not None and timezone.now() - at < timedelta(days=BACKUP_DAYS):
        return []
    text = "The hub was never backed up." if at is None else f"The last backup is of {at:%Y-%m-%d}."
    hint = (
        "Run `manage.py backup FOLDER` every night, with FOLDER on another disk; docs/backup.md has a line "
        "for cron. A backup by other means is not known to this check."
    )
    return [Warning(text, hint=hint, id="trainhub.W010")]


def uncopied_keyring() -> list[CheckMessage]:
    keyring = Path(settings.SECRETS_KEYRING)
    if not keyring.exists():
        return []
    copied = newest_key_copy()
    if copied is not None and copied.timestamp() >= keyring.stat().st_mtime:
        return []
    since = "There is no copy" if copied is None else "There is no copy of the present content"
    text = f"{since} of {keyring}: if this disk fails, no secret can be read again."
    hint = "Run `manage.py backup FOLDER --with-keys KEYS`, and move KEYS to where the backups are not."
    return [Warning(text, hint=hint, id="trainhub.W011")]
