"""Registry of the tables whose rows a purge deletes together with their run.

Each app registers its tables in AppConfig.ready, so this module imports no models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import models


@dataclass(frozen=True)
class RunTable:
    """A table whose rows belong to runs. `run`: the lookup from a row to its run. `experiment`: the lookup to
    its experiment, for tables with rows without a run. The rows of a table with a column `sha256` name stored
    files; such a table also has `size_bytes` and `created_at`."""

    model: type[models.Model]
    run: str = "run"
    experiment: str = ""

    @property
    def names_files(self) -> bool:
        return any(field.name == "sha256" for field in self.model._meta.fields)

    def for_runs(self, *runs: str) -> models.QuerySet[Any]:
        return self.model._default_manager.filter(**{f"{self.run}__in": runs})

    def without_run(self, experiment: models.Model) -> models.QuerySet[Any]:
        rows = self.model._default_manager.all()
        return (
            rows.filter(**{self.experiment: experiment, self.run: None}) if self.experiment else rows.none()
        )


# In the order of deletion: referencing tables come before the tables they reference.
RUN_TABLES: list[RunTable] = []
