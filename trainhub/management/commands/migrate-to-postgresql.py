from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from trainhub import env, installation
from trainhub.database_move.errors import MoveError
from trainhub.database_move.hub_lock import mark_source, stopped_hub
from trainhub.database_move.move import FinishedMove, MoveConsole, MoveOptions, move_database
from workspaces.management.hub_command import HubCommand

SQLITE = "django.db.backends.sqlite3"


class Command(HubCommand):
    help = (
        "Copies the SQLite database of a stopped hub into an empty PostgreSQL, and verifies the copy. Files, "
        "logs and keys stay where they are. If it is interrupted, the same command goes on."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--to",
            metavar="URL",
            help="postgres://user:password@host/name (default: DATABASE_URL, where others do not see the "
            "password)",
        )
        parser.add_argument(
            "--from",
            dest="source",
            metavar="FILE",
            type=Path,
            help="the SQLite database (default: that of the hub)",
        )
        parser.add_argument(
            "--replace-nul",
            action="store_true",
            help="write U+FFFD instead of NUL characters, which PostgreSQL refuses",
        )
        parser.add_argument(
            "--leave-out",
            action="append",
            default=[],
            metavar="TABLE",
            help="a table of the SQLite database that is not TrainHub's, and is not copied",
        )

    def handle(self, *args: object, **options: Any) -> None:
        os.umask(0o077)
        source = options["source"] or _own_file()
        target = options["to"] or _own_url()
        request = MoveOptions(source, target, options["replace_nul"], frozenset(options["leave_out"]))
        try:
            with stopped_hub(source):
                done = move_database(request, self._console())
                mark = mark_source(source, done.target)
        except MoveError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt as interrupt:
            raise CommandError("Interrupted. The same command goes on.") from interrupt
        self._report(done, source, mark)

    def _report(self, done: FinishedMove, source: Path, mark: Path | None) -> None:
        self.stdout.write(
            f"{done.target} has all {done.rows:,} rows of {done.tables} tables, each verified by its hash."
        )
        self.stdout.write(
            "Next: set DATABASE_URL to that address for every command and service of the hub, and start it. "
            "Files, logs and keys stay in DATA_DIR."
        )
        back = f", remove {mark}" if mark is not None else ""
        self.stdout.write(
            f"{source} is unchanged. To go back: stop the hub{back}, unset DATABASE_URL, and start it; what "
            "happened since is in PostgreSQL only. Keep the file until the first backup of the new database."
        )

    def _console(self) -> MoveConsole:
        is_terminal = sys.stdout.isatty()
        clear = "\r\x1b[K" if is_terminal else ""

        def say(sentence: str) -> None:
            self.stdout.write(f"{clear}{sentence}")

        def show(line: str) -> None:
            self.stdout.write(f"{clear}{line}", ending="" if is_terminal else "\n")
            self.stdout.flush()

        return MoveConsole(say, show, is_terminal)


def _own_file() -> Path:
    database = settings.DATABASES["default"]
    return Path(
        database["NAME"] if database["ENGINE"] == SQLITE else installation.DATA_DIR / "trainhub.sqlite3"
    )


def _own_url() -> str:
    url = env.secret("DATABASE_URL")
    if not url or settings.DATABASES["default"]["ENGINE"] == SQLITE:
        raise CommandError(
            "Where to? Set DATABASE_URL to an empty database of PostgreSQL, or name it with --to "
            "postgres://user:password@host/name."
        )
    return url
