"""Registry of the tables whose rows retention rules remove.

Each app registers its tables in AppConfig.ready, so this module imports no models."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.db.models import Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Length

from jobs.states import DataKind


@dataclass(frozen=True)
class DataTable:
    """A table whose rows are data of runs, found by the look-up `run`. `size`: the column of their sizes in
    bytes, or the packed one whose length counts; "": they are not counted."""

    kind: DataKind
    model: type[models.Model]
    run: str = "run"
    size: str = "size_bytes"

    def rows(self, runs: Collection[str] | QuerySet[Any]) -> QuerySet[Any]:
        return self.model._default_manager.filter(**{f"{self.run}__in": runs}).order_by()

    def is_in_run(self) -> Q:
        """Returns the condition that a run has such rows."""
        return Q(Exists(self.model._default_manager.filter(**{self.run: OuterRef("pk")})))

    @property
    def total(self) -> Sum:
        field = self.model._meta.get_field(self.size)
        is_packed = isinstance(field, models.BinaryField)
        return Sum(Length(self.size) if is_packed else self.size, default=0)


# In the order of removal: tables that refer to others come before them.
TABLES: list[DataTable] = []
