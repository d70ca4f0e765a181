"""Which rows belong to a run and go with it. Higher floors add theirs when they are ready; this module
imports no model for that reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import models


@dataclass(frozen=True)
class RunTable:
    """A table whose rows belong to runs. `run`: the look-up from such a row to its run; `experiment`: to its
    experiment, where there are rows without a run. A table with a column `sha256` also has `size_bytes` and
    `created_at`: its rows name files."""

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


RUN_TABLES: list[RunTable] = []
"""In the order in which they go: what names another row, before that."""
