"""The kinds of data for which there are retention rules."""

from __future__ import annotations

from django.db import models


class DataKind(models.TextChoices):
    """LOGS: of its processes. OUTPUTS: files that the hub stores for it, its checkpoints and logged models
    among them. METRICS: the points of its curves, its histograms and TensorBoard's files. TELEMETRY: the
    curves of its GPUs and machines."""

    LOGS = "logs", "Logs"
    OUTPUTS = "outputs", "Outputs and checkpoints"
    METRICS = "metrics", "Metric points"
    TELEMETRY = "telemetry", "Telemetry"

    @property
    def noun(self) -> str:
        """What was removed, in a sentence."""
        return {
            DataKind.LOGS: "logs",
            DataKind.OUTPUTS: "outputs",
            DataKind.METRICS: "metric points",
            DataKind.TELEMETRY: "telemetry",
        }[self]
