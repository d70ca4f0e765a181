from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from trainhub.backup import integrity
from trainhub.backup.backup_folder import open_backup, unfinished
from trainhub.backup.creation import BackupOptions, FinishedBackup, create_backup
from trainhub.backup.errors import BackupError
from workspaces.management.hub_command import HubCommand


class Command(HubCommand):
    help = (
        "Backs up the hub to FOLDER while it works: database, logs and stored files, without keys. Further "
        "backups in the same FOLDER add what is new. `backup --verify FOLDER` reads a backup and says "
        "whether it is whole."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", metavar="FOLDER", type=Path)
        parser.add_argument(
            "--verify", action="store_true", help="make no backup; verify the newest, or the one named"
        )
        parser.add_argument(
            "--no-blobs",
            action="store_true",
            help="only list the content-addressed files, which you copy by other means",
        )
        parser.add_argument(
            "--with-objects",
            action="store_true",
            help="also copy the files that are only in the object store of BLOB_STORE",
        )
        parser.add_argument(
            "--copy", action="store_true", help="copy files also where hard links to the hub's are possible"
        )
        parser.add_argument(
            "--with-keys", metavar="KEYS", type=Path, help="write the hub's keys to this other folder"
        )
        parser.add_argument(
            "--keep", metavar="N", type=_positive, default=0, help="remove all but the newest N backups"
        )

    def handle(self, *args: object, **options: Any) -> None:
        # Whatever is written is for the hub's account alone.
        os.umask(0o077)
        try:
            if options["verify"]:
                self._verify(options["folder"])
            else:
                self._report(create_backup(_options(options), self._warn))
        except BackupError as error:
            raise CommandError(str(error)) from error

    def _verify(self, folder: Path) -> None:
        backup = open_backup(folder)
        for later in unfinished(folder):
            self._warn(f"{later} is not finished and does not count.")
        integrity.check_backup(backup)
        files = backup.manifest.files
        self.stdout.write(f"{backup.folder} is whole: {files.count} files, {_mib(files.size_bytes)}.")
        if not backup.manifest.has_blobs:
            self.stdout.write("Its content-addressed files are only listed, and were not verified.")

    def _report(self, done: FinishedBackup) -> None:
        manifest = done.stored.manifest
        self.stdout.write(
            f"{done.stored.folder}: {manifest.files.count} files, {_mib(manifest.files.size_bytes)}, of "
            f"which {_mib(done.new_bytes)} were written, in {done.seconds:.1f} s."
        )
        if done.removed:
            self.stdout.write(f"{done.removed} old backups were removed.")
        if manifest.missing_count:
            self._warn(
                f"{manifest.missing_count} files that the database names were missing or damaged before this "
                f"backup, for example {manifest.missing[0]}; {done.stored.folder}/manifest.json lists them."
            )
        if manifest.objects and not manifest.has_objects:
            self.stdout.write(
                f"{manifest.objects} files ({_mib(manifest.object_bytes)}) are in it by reference only: "
                f"they are in {manifest.object_store}."
            )
        if done.keys is not None:
            self.stdout.write(
                f"The keys are in {done.keys}. Move them to where the backups are not: whoever has both can "
                "read every secret."
            )
        else:
            self.stdout.write("The keys of the hub are not in it (--with-keys KEYS writes them).")

    def _warn(self, sentence: str) -> None:
        self.stderr.write(self.style.WARNING(sentence))


def _options(options: dict[str, Any]) -> BackupOptions:
    return BackupOptions(
        folder=options["folder"],
        keys=options["with_keys"],
        has_blobs=not options["no_blobs"],
        has_objects=options["with_objects"],
        is_linked=not options["copy"],
        keep=options["keep"],
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"
