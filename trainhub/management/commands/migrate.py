from __future__ import annotations

from typing import Any

from django.core.management.commands import migrate
from django.db import DEFAULT_DB_ALIAS

from trainhub.upgrade.release_record import record_release
from workspaces.management.hub_command import HubCommand


class Command(HubCommand, migrate.Command):
    """Django's command, which also notes which TrainHub has migrated the database."""

    def handle(self, *args: Any, **options: Any) -> None:
        super().handle(*args, **options)
        is_whole = options["app_label"] is None and options["database"] == DEFAULT_DB_ALIAS
        if is_whole and not options["plan"] and not options["check_unapplied"]:
            record_release()
