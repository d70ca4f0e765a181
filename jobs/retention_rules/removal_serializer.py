"""The JSON shape of what retention rules have removed of a run."""

from __future__ import annotations

from rest_framework import serializers

from jobs.models import DataRemoval
from jobs.retention.removals import sentence_of


class RemovedDataSerializer(serializers.Serializer[DataRemoval | list[DataRemoval]]):
    """One kind of data that a retention rule has removed of a run."""

    kind = serializers.CharField(help_text="logs, outputs, metrics (their points) or telemetry.")
    removed_at = serializers.DateTimeField(source="started_at")
    size_bytes = serializers.IntegerField(help_text="How much it was.")
    sentence = serializers.SerializerMethodField(help_text="The same for people.")

    def get_sentence(self, removal: DataRemoval) -> str:
        return sentence_of(removal)
