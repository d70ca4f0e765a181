from __future__ import annotations

from rest_framework import serializers

from environments.curated import ONNX
from registry.exports.options import ABSOLUTE, RELATIVE, Options
from registry.exports.states import ExportState


class ExportOptionsSerializer(serializers.Serializer[object]):
    """What to export and how the result is checked. docs/onnx.md describes the notation."""

    file = serializers.CharField(
        help_text="The path of the version's file that contains the model, such as model.pt."
    )
    inputs = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        default=list,
        help_text='The example inputs, one string for each, such as "images: 1x1x8x8 float32".',
    )
    example = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        help_text=(
            "Replaces `inputs`: a .npy, .npz, .pt or .pth file of the version, or outputs/PATH for an "
            "output of its run."
        ),
    )
    dynamic = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        default=list,
        help_text=(
            'The dynamic axes, one string for each input: "ids: 0=batch, 1=length", or "0=batch" for all '
            "inputs."
        ),
    )
    factory = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        help_text=(
            "If the file contains only weights: the function in the run's source that creates the module, "
            "as MODULE:FUNCTION."
        ),
    )
    relative = serializers.FloatField(required=False, default=RELATIVE)
    absolute = serializers.FloatField(required=False, default=ABSOLUTE)
    opset = serializers.IntegerField(required=False, allow_null=True, default=None)
    cluster = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        help_text=(
            "The cluster on which the export runs. By default the only one, else the one last used, else "
            "the one with the most free GPUs."
        ),
    )
    environment = serializers.CharField(
        required=False,
        default=ONNX,
        help_text="The environment in which the export runs, as NAME or NAME:VERSION.",
    )

    def options(self) -> Options:
        values = dict(self.validated_data)
        return Options(**{**values, "inputs": tuple(values["inputs"]), "dynamic": tuple(values["dynamic"])})


class ExportSerializer(serializers.Serializer[object]):
    id = serializers.IntegerField(source="pk")
    format = serializers.CharField()
    state = serializers.ChoiceField(choices=[state.value for state in ExportState])
    message = serializers.CharField(help_text="Why the export was refused; empty if it was not.")
    run = serializers.CharField(source="run_id", allow_null=True)
    run_number = serializers.IntegerField(source="run.number", allow_null=True, default=None)
    version = serializers.IntegerField(
        source="result.number",
        allow_null=True,
        default=None,
        help_text="The number of the version that the export created; null if there is none.",
    )
    options = ExportOptionsSerializer()
    report = serializers.JSONField(
        allow_null=True,
        help_text=(
            "The numerical differences, tolerances, shapes and package versions; null if there is no report."
        ),
    )
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
