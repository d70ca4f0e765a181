"""Logged models, and the inputs and outputs of runs."""

from __future__ import annotations

import uuid

from django.db import models

from jobs.models import Experiment, Run


def new_model_id() -> str:
    return f"m-{uuid.uuid4().hex}"


class LoggedModel(models.Model):
    """A logged model (MLflow 3); its files are rows of LoggedModelFile.

    `tags` and `params` are {key: value}; `metrics` is a list of {key, value, step, timestamp, run_id,
    dataset_name, dataset_digest} with the last point of each key and data set. `source_run_id` is the run
    that the client named if it does not exist here, for example because it has not been imported yet.
    """

    id = models.CharField(primary_key=True, max_length=34, default=new_model_id, editable=False)
    experiment = models.ForeignKey(Experiment, models.CASCADE, related_name="logged_models")
    run = models.ForeignKey(Run, models.CASCADE, null=True, related_name="logged_models")
    source_run_id = models.CharField(max_length=250, blank=True)
    name = models.CharField(max_length=500)
    model_type = models.CharField(max_length=250, blank=True)
    status = models.CharField(max_length=40, default="LOGGED_MODEL_PENDING")
    tags = models.JSONField(default=dict)
    params = models.JSONField(default=dict)
    metrics = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(null=True, blank=True)


class LoggedModelFile(models.Model):
    model = models.ForeignKey(LoggedModel, models.CASCADE, related_name="files")
    path = models.CharField(max_length=1000)
    size_bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64, db_index=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["model", "path"], name="logged_model_file_once")]
        ordering = ["path"]


class RunInput(models.Model):
    """A data set that a run has read."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="inputs")
    name = models.CharField(max_length=500)
    digest = models.CharField(max_length=64)
    source_type = models.CharField(max_length=64)
    source = models.TextField()
    schema = models.TextField(blank=True)
    profile = models.TextField(blank=True)
    tags = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "name", "digest"], name="input_once_per_run")]
        ordering = ["id"]


class RunOutput(models.Model):
    """A logged model that a run has created, with its step."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="model_outputs")
    model = models.ForeignKey(LoggedModel, models.CASCADE, related_name="+")
    step = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "model"], name="output_once_per_run")]
        ordering = ["id"]
