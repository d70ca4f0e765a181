from __future__ import annotations

from typing import Any

from rest_framework import serializers

from jobs.environments import ONNX
from registry.exports.options import ABSOLUTE, RELATIVE, Options
from registry.exports.states import ExportState


class ExportOptionsSerializer(serializers.Serializer[Any]):
    """What to export, and how it is checked; the notation is that of the page (docs/onnx.md)."""

    file = serializers.CharField(
        help_text="Of the version's files, the one that holds the model, such as model.pt."
    )
    inputs = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        default=list,
        help_text='Lines such as "images: 1x1x8x8 float32".',
    )
    example = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        help_text="Instead: a .npy, .npz or .pt of the version, or outputs/PATH.",
    )
    dynamic = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        default=list,
        help_text='Lines: "0=batch", or "ids: 0=batch, 1=length".',
    )
    factory = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        help_text="MODULE:FUNCTION of the run's source, where the file is weights.",
    )
    relative = serializers.FloatField(required=False, default=RELATIVE)
    absolute = serializers.FloatField(required=False, default=ABSOLUTE)
    opset = serializers.IntegerField(required=False, allow_null=True, default=None)
    cluster = serializers.CharField(required=False, default="local")
    environment = serializers.CharField(required=False, default=ONNX, help_text="A name, or NAME:VERSION.")

    def options(self) -> Options:
        told = dict(self.validated_data)
        return Options(**{**told, "inputs": tuple(told["inputs"]), "dynamic": tuple(told["dynamic"])})


class ExportSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    format = serializers.CharField()
    state = serializers.ChoiceField(choices=[state.value for state in ExportState])
    message = serializers.CharField(help_text="Why it was refused.")
    run = serializers.CharField(source="run_id", allow_null=True)
    run_number = serializers.IntegerField(source="run.number", allow_null=True, default=None)
    version = serializers.IntegerField(
        source="result.number", allow_null=True, default=None, help_text="That it made."
    )
    options = ExportOptionsSerializer()
    report = serializers.JSONField(
        allow_null=True, help_text="Differences, tolerances, shapes, versions of the packages."
    )
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
