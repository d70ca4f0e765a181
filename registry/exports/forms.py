from __future__ import annotations

from collections.abc import Mapping

from django import forms

from clusters.visibility import clusters_of
from environments.curated import ONNX
from jobs.wizard.choices import environment_choices
from registry.exports.options import ABSOLUTE, RELATIVE, Options, candidates, examples
from registry.exports.sources import factories
from registry.models import ModelVersion
from workspaces.models import Workspace

HELP = {
    "file": (
        "A TorchScript file, a torch.export program, a file written by torch.save, or MLmodel for a "
        "model that MLflow logged."
    ),
    "factory": (
        "Only needed if the file contains just weights: a function in the run's source that creates "
        "the module, such as <code>model:make_model</code>. Importing its module must not start a "
        "training."
    ),
    "inputs": (
        "One input per line, with shape and type, such as <code>1x64 float32</code>. A name and a "
        "range of values may be added: <code>ids: 1x16 int64 0..999</code>."
    ),
    "example": (
        "Replaces the typed shapes: a .npy, .npz, .pt or .pth file of this version or of its run's outputs."
    ),
    "dynamic": (
        "Axes whose size may differ between calls, counted from 0: <code>0=batch</code> for every "
        "input, or <code>ids: 0=batch, 1=length</code> for one. If empty, every size is fixed."
    ),
    "relative": "",
    "absolute": "",
    "opset": "",
    "environment": (
        "It must contain torch, onnx, onnxscript and onnxruntime, and the packages that the model's "
        "code imports."
    ),
    "cluster": "The cluster on which the export runs. It uses one CPU slot.",
}
DECIMAL = {"inputmode": "decimal"}


class ExportForm(forms.Form):
    """The form for an export. It only reads the values; `options.check` has the rules."""

    file = forms.CharField(
        label="Model file", widget=forms.Select, error_messages={"required": "Choose a file of this version."}
    )
    inputs = forms.CharField(
        required=False,
        label="Example input",
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": "1x64 float32"}),
    )
    example = forms.CharField(required=False, label="Example input from a file", widget=forms.Select)
    dynamic = forms.CharField(
        required=False,
        label="Dynamic axes",
        initial="0=batch",
        widget=forms.Textarea(attrs={"rows": 1, "placeholder": "0=batch"}),
    )
    factory = forms.CharField(
        required=False,
        label="Function that makes the module",
        widget=forms.TextInput(attrs={"list": "factories", "placeholder": "model:make_model"}),
    )
    relative = forms.FloatField(
        label="Relative tolerance", initial=RELATIVE, widget=forms.TextInput(attrs=DECIMAL)
    )
    absolute = forms.FloatField(
        label="Absolute tolerance", initial=ABSOLUTE, widget=forms.TextInput(attrs=DECIMAL)
    )
    opset = forms.IntegerField(
        required=False, label="Opset", widget=forms.TextInput(attrs={"inputmode": "numeric"})
    )
    environment = forms.CharField(label="Environment", initial=ONNX, widget=forms.Select)
    cluster = forms.CharField(label="Cluster", widget=forms.Select)

    def __init__(
        self,
        data: Mapping[str, object] | None = None,
        *,
        version: ModelVersion,
        workspace: Workspace,
        initial: dict[str, object] | None = None,
    ) -> None:
        super().__init__(data, initial=initial, label_suffix="")
        for name, field in self.fields.items():
            field.help_text = HELP[name]
            field.widget.attrs |= {"autocomplete": "off"}
            if HELP[name]:
                field.widget.attrs["aria-describedby"] = f"id_{name}_helptext"
        self.factories = factories(version)
        likely = candidates(version)
        rest = [file.path for file in version.all_files if file.path not in likely]
        self._offer("file", [(path, path) for path in (*likely, *rest)])
        self._offer("example", [("", "None: as typed above"), *((name, name) for name in examples(version))])
        self._offer(
            "environment",
            [(choice.value, choice.title) for choice in environment_choices(workspace) if choice.is_usable],
        )
        self._offer(
            "cluster", [(name, name) for name in clusters_of(workspace).values_list("name", flat=True)]
        )

    def options(self) -> Options:
        """Returns the options of a valid form."""
        typed = self.cleaned_data
        return Options(**{**typed, "inputs": _lines(typed["inputs"]), "dynamic": _lines(typed["dynamic"])})

    def _offer(self, name: str, choices: list[tuple[str, str]]) -> None:
        self.fields[name].widget = forms.Select(choices=choices, attrs=self.fields[name].widget.attrs)


def initial_of(options: Options) -> dict[str, object]:
    """Returns the initial values of a form that shows these options."""
    values = options.to_json()
    return {**values, "inputs": "\n".join(options.inputs), "dynamic": "\n".join(options.dynamic)}


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())
