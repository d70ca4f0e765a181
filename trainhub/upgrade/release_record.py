"""Which versions of TrainHub work with a database: the record of it, and the refusal of a hub that is too
old."""

from __future__ import annotations

from django.db import connection

from trainhub import OLDEST_HUB_VERSION, __version__
from trainhub.backup.database_copy import applied_migrations, own_migrations
from trainhub.models import HubRelease


class DatabaseTooNew(Exception):
    """This version does not work with the database. The message names versions and remedies."""


def version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def release_record() -> HubRelease | None:
    """Returns the record, None for a database of versions that had none."""
    if HubRelease._meta.db_table not in connection.introspection.table_names():
        return None
    return HubRelease.objects.first()


def check_release() -> str:
    """Returns a notice if the database is of a newer version with which this one works, else "". Raises
    DatabaseTooNew."""
    unknown = sorted(set(applied_migrations()) - own_migrations())
    if not unknown:
        return ""
    release = release_record()
    version = f"TrainHub {release.version}" if release is not None else "a newer TrainHub"
    more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
    if release is not None and version_numbers(release.oldest_version) <= version_numbers(__version__):
        return (
            f"The database was migrated by {version}, with which TrainHub {__version__} works: it goes on "
            f"without {unknown[0]}{more}."
        )
    oldest = f"{release.oldest_version} or newer" if release is not None else "that version"
    raise DatabaseTooNew(
        f"The database was migrated by {version} ({unknown[0]}{more}), with which TrainHub {__version__} "
        f"does not work. Install {oldest}, or restore the backup of before the upgrade (docs/upgrade.md)."
    )


def record_release() -> None:
    """Notes that this version has migrated the database; the record of a newer one stays."""
    values = {"version": __version__, "oldest_version": OLDEST_HUB_VERSION}
    release = HubRelease.objects.first()
    if release is None:
        HubRelease.objects.create(**values)
    elif set(applied_migrations()) <= own_migrations() and (
        (release.version, release.oldest_version) != (__version__, OLDEST_HUB_VERSION)
    ):
        HubRelease.objects.filter(pk=release.pk).update(**values)
