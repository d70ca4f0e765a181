"""Which versions of datasets runs read, and which were made from their outputs."""

from __future__ import annotations

from django.db import models

from datastores.models import DatasetVersion


class DatasetUse(models.Model):
    """A run reads this version. The spec of the run says under which name. `is_exact`: no node has reported
    that files were changed or gone, with which the run went on."""

    run = models.ForeignKey("jobs.Run", models.CASCADE, related_name="dataset_uses")
    version = models.ForeignKey(DatasetVersion, models.CASCADE, related_name="uses")
    is_exact = models.BooleanField(default=True, db_default=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "version"], name="dataset_use_once")]

    def __str__(self) -> str:
        return f"{self.run} reads {self.version}"


class DatasetOrigin(models.Model):
    """The version was made from outputs of a run. `run` is None once that is purged. `path`: the folder or
    file among the outputs, "" for all of them."""

    version = models.OneToOneField(DatasetVersion, models.CASCADE, related_name="origin")
    run = models.ForeignKey("jobs.Run", models.SET_NULL, null=True, related_name="made_versions")
    run_number = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    path = models.CharField(max_length=1024, blank=True)

    def __str__(self) -> str:
        return f"{self.version} from run {self.run_number}"
