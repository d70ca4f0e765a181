from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from trainhub.backup.data_folder import data_dir
from trainhub.backup.errors import BackupError
from trainhub.backup.restoration import Restoration, restore_backup
from workspaces.management.hub_command import HubCommand


class Command(HubCommand):
    help = (
        "Restores a backup of `manage.py backup` into an empty hub: the newest in FOLDER, or the one that "
        "FOLDER is. DATA_DIR and DATABASE_URL say where."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", metavar="FOLDER", type=Path)
        parser.add_argument(
            "--keys", metavar="KEYS", type=Path, help="the folder that `backup --with-keys KEYS` wrote"
        )

    def handle(self, *args: object, **options: Any) -> None:
        # Whatever is written is for the hub's account alone.
        os.umask(0o077)
        try:
            self._report(restore_backup(options["folder"], options["keys"], self.stdout.write))
        except BackupError as error:
            raise CommandError(str(error)) from error

    def _report(self, done: Restoration) -> None:
        manifest = done.backup.manifest
        self.stdout.write(
            f"Restored the backup of {manifest.name} with {manifest.files.count} files to {data_dir()}."
        )
        if done.is_migrated:
            self.stdout.write(f"The database of TrainHub {manifest.version} was migrated.")
        for key in done.lost_keys:
            self.stdout.write(self.style.WARNING(f"{key.path} is missing. {key.loss}"))
        if done.missing_blobs:
            self.stdout.write(
                self.style.WARNING(
                    f"{done.missing_blobs} stored files are only listed in this backup and not in "
                    f"{data_dir()}/blobs. Copy that folder of the old hub there before you start."
                )
            )
        if manifest.objects and not manifest.has_objects:
            self.stdout.write(
                f"{manifest.objects} files are in {manifest.object_store}, {done.missing_objects} of "
                "them missing there. `manage.py blobs verify --read` names these, and compares the "
                "others by their SHA-256."
            )
        if manifest.missing_count:
            self.stdout.write(
                self.style.WARNING(f"{manifest.missing_count} files were lost before the backup was made.")
            )
        self.stdout.write("Next: start the hub (`make up`), and let its old address lead to this machine.")
