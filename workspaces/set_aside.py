"""Stored bytes that this hub cannot read are set aside: they are not changed and do not block the processing
of others.

A newer hub may have written them, in a format that this version does not know; that hub processes them once
it runs again. Bytes of a known format that cannot be read are preserved, too: the fault may lie in the
reader, and its correction needs them."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from django.apps import apps
from django.db import models
from django.db.models import Q

log = logging.getLogger(__name__)
# Stands for the version of bytes that cannot be read although this hub knows their format.
CORRUPT = -1
_logged: set[tuple[str, int]] = set()


class UnreadableError(Exception):
    """Stored bytes cannot be read. `version`: that of their format if this code does not know it, otherwise
    CORRUPT."""

    def __init__(self, message: str, version: int = CORRUPT) -> None:
        super().__init__(message)
        self.version = version


class SetAsideModel(models.Model):
    """A model of packed bytes. `set_aside`: the version that a hub must know to use the row, or CORRUPT;
    null: the row is used."""

    # Without a default in the database, and null: a hub of the version before inserts rows without this
    # column.
    set_aside = models.SmallIntegerField(null=True, editable=False)

    class Meta:
        abstract = True


def usable(version: int) -> Q:
    """Returns the condition of rows that a hub can use which knows formats up to this version."""
    return Q(set_aside=None) | Q(set_aside__range=(1, version))


def set_aside(table: type[SetAsideModel], versions: Mapping[int, int]) -> None:
    """Sets these rows aside, {primary key: version or CORRUPT}. Logs each combination of table and version
    once."""
    keys: defaultdict[int, list[int]] = defaultdict(list)
    for key, version in versions.items():
        keys[version].append(key)
    for version, some in keys.items():
        table._default_manager.filter(pk__in=some).update(set_aside=version)
        if (table.__name__, version) not in _logged:
            _logged.add((table.__name__, version))
            log.error(
                "%s. Nothing is deleted; further ones are not logged.", _sentence(table, version, len(some))
            )


def sentences() -> Iterable[str]:
    """Yields a sentence for the operator about each table and version of rows that are set aside."""
    for table in apps.get_models():
        if not issubclass(table, SetAsideModel):
            continue
        counted: Any = table._default_manager.exclude(set_aside=None).order_by("set_aside")
        for version, count in counted.values_list("set_aside").annotate(models.Count("pk")):
            yield f"{_sentence(table, version, count)}."


def _sentence(table: type[SetAsideModel], version: int, count: int) -> str:
    rows = f"{count} {table._meta.verbose_name if count == 1 else table._meta.verbose_name_plural}"
    are = "is" if count == 1 else "are"
    if version == CORRUPT:
        return f"{rows} that cannot be read {are} set aside"
    return f"{rows} of format version {version}, written by a newer TrainHub, {are} set aside"
