"""What an operator has to know before an upgrade: read by the new version from the database of the hub that
still runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from django.apps import apps
from django.conf import settings
from django.db import connection
from django.utils import timezone

from clusters.models import Node
from clusters.node_reports.notices import agent_version
from jobs.models import Run
from jobs.states import FINAL
from trainhub import __version__
from trainhub.backup import database_copy
from trainhub.upgrade.expand_rules import MigrationEffect
from trainhub.upgrade.migration_plan import pending_migrations
from trainhub.upgrade.release_record import DatabaseTooNew, check_release, release_record, version_numbers
from trainhub.upgrade.setting_names import unknown_settings
from workspaces.models import AuditEvent

MIB = 2**20
OLD_BACKUP = timedelta(days=1)


class Weight(StrEnum):
    OK = "ok"
    NOTE = "note"
    BLOCKS = "stop"


@dataclass(frozen=True)
class UpgradeFinding:
    """`weight`: BLOCKS if the upgrade must wait until something is done."""

    weight: Weight
    sentence: str


def upgrade_findings() -> Iterator[UpgradeFinding]:
    """Yields what is found, the database first."""
    try:
        notice = check_release()
    except DatabaseTooNew as error:
        yield UpgradeFinding(Weight.BLOCKS, str(error))
        return
    release = release_record()
    before = release.version if release is not None else "one without a record of its version"
    yield UpgradeFinding(Weight.OK, f"This is TrainHub {__version__}; the database is of {before}.")
    if notice:
        yield UpgradeFinding(Weight.NOTE, notice)
    pending = pending_migrations()
    yield from _migrations(pending, version_numbers(release.version) if release is not None else ())
    yield _space(pending)
    yield _backup()
    yield from _agents()
    runs = Run.objects.exclude(state__in=FINAL).filter(deleted_at=None).count()
    yield UpgradeFinding(Weight.OK, f"{runs} runs are queued or active. They go on during an upgrade.")
    for name in unknown_settings():
        yield UpgradeFinding(
            Weight.NOTE, f"{name} is set, and this version has no such setting (docs/configuration.md)."
        )


def _migrations(pending: list[MigrationEffect], before: tuple[int, ...]) -> Iterator[UpgradeFinding]:
    """`before`: the version that runs now, empty if that is not recorded."""
    if not pending:
        yield UpgradeFinding(Weight.OK, "No migration is pending.")
    for effect in pending:
        if effect.is_expanding:
            yield UpgradeFinding(Weight.OK, f"{effect.name} only adds: the version before goes on meanwhile.")
        elif effect.unused_since and version_numbers(effect.unused_since) <= before:
            yield UpgradeFinding(
                Weight.OK,
                f"{effect.name} removes what no version since {effect.unused_since} uses: the version before "
                "goes on meanwhile.",
            )
        else:
            yield UpgradeFinding(
                Weight.NOTE,
                f"{effect.name} needs the hub stopped while it runs: it {'; it '.join(effect.breaks)}. Going "
                "back needs the backup of before.",
            )


def _space(pending: list[MigrationEffect]) -> UpgradeFinding:
    """Compares the free disk with a copy of the database and of the tables that are written anew."""
    copy = _database_bytes()
    tables = {table for effect in pending for table in effect.tables}
    rewritten = copy if connection.vendor == "sqlite" and tables else sum(map(_table_bytes, tables))
    free = shutil.disk_usage(settings.DATA_DIR).free
    sentence = (
        f"The database has {copy / MIB:,.0f} MiB, of which the migrations may write "
        f"{rewritten / MIB:,.0f} MiB anew; {settings.DATA_DIR} has {free / MIB:,.0f} MiB left"
    )
    if connection.vendor != "sqlite":
        return UpgradeFinding(Weight.OK, f"{sentence}, the disk of PostgreSQL is its own.")
    if free < copy + rewritten:
        return UpgradeFinding(Weight.BLOCKS, f"{sentence}: too little. Free space there first.")
    return UpgradeFinding(Weight.OK, f"{sentence}.")


def _database_bytes() -> int:
    if connection.vendor == "sqlite":
        return sum(path.stat().st_size for path in database_copy.sqlite_files() if path.exists())
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


def _table_bytes(table: tuple[str, str]) -> int:
    app, model = table
    with connection.cursor() as cursor:
        # Of a model that the new version has renamed or removed, the name of its table is Django's own.
        names = {item._meta.label_lower: item._meta.db_table for item in apps.get_models()}
        name = names.get(f"{app}.{model}", f"{app}_{model}")
        cursor.execute("SELECT coalesce(pg_total_relation_size(to_regclass(%s)), 0)", [name])
        return int(cursor.fetchone()[0])


def _backup() -> UpgradeFinding:
    event = AuditEvent.objects.filter(verb="hub.backed-up").order_by("-at").first()
    remedy = "Run `manage.py backup FOLDER` first (docs/backup.md)."
    if event is None:
        return UpgradeFinding(Weight.NOTE, f"No backup is recorded. {remedy}")
    folder = event.detail.get("folder", "")
    sentence = f"The last backup is of {event.at:%Y-%m-%d %H:%M} UTC, in {folder}."
    if timezone.now() - event.at > OLD_BACKUP:
        return UpgradeFinding(Weight.NOTE, f"{sentence} {remedy}")
    return UpgradeFinding(Weight.OK, sentence)


def _agents() -> Iterator[UpgradeFinding]:
    """Names nodes whose agents are newer than this hub, or more than a version behind it."""
    own = version_numbers(agent_version())
    nodes = Node.objects.exclude(agent_version="").order_by("cluster__name", "name")
    others = 0
    # The columns that this version adds are not there yet.
    for node in nodes.select_related("cluster").only("name", "agent_version", "cluster__name"):
        version = version_numbers(node.agent_version)
        name = f"The agent of {node.cluster.name}/{node.name} is {node.agent_version}"
        if version > own:
            yield UpgradeFinding(
                Weight.BLOCKS,
                f"{name}, newer than this hub's {agent_version()}, which refuses reports whose fields it "
                "does not know. Upgrade the hub to that version.",
            )
        elif version[:1] != own[:1] or (len(version) > 1 and own[1] - version[1] > 1):
            yield UpgradeFinding(
                Weight.BLOCKS,
                f"{name}, more than one version behind {agent_version()}. Install the package of the running "
                "hub on it first (docs/nodes.md).",
            )
        others += version != own
    yield UpgradeFinding(
        Weight.OK,
        f"{others} of {nodes.count()} nodes have another version of the agent than {agent_version()}; those "
        "one version behind go on, and are upgraded after the hub.",
    )
