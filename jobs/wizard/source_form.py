"""Step 1: the source, the script or command that is started from it, and the data that it reads."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from django import forms

from jobs.wizard.forms import Raw, StepForm
from jobs.wizard.parts import SourcePart
from jobs.wizard.text_values import join_arguments, split_arguments
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from trainhub_launch.spec import (
    FAIL,
    REFERENCE,
    USE,
    DataInput,
    ExampleSource,
    GitSource,
    SnapshotSource,
    Source,
)
from trainhub_launch.spec_reader import read_git_source

REQUIREMENTS = {
    "source": "Choose what to run: upload your code, name a git repository, or take an example.",
    "script": "Name the script to run, for example train.py.",
    "command": "Write the command to run, for example python train.py.",
}

DATASET, MAX_VERSION_DIGITS = "dataset", 9
# How an input is read, by the value of the choice.
READING_WORDS = {
    "": "ready at the start",
    USE: "also changed files",
    REFERENCE: "streamed by script",
}

# Field of the form for a repository -> field of a GitSource.
REPOSITORY_FIELDS = {"repository": "url", "repository_ref": "ref", "repository_path": "path"}


# No field is required by itself: which of them must be filled in depends on `runs`, see `clean`.
class SourceForm(StepForm[SourcePart]):
    """The form of the step. Inputs are repeated fields: `input_name`, `input_datastore`, `input_path` and
    `input_reading` (a key of READING_WORDS)."""

    template = "jobs/wizard/_source.html"
    unvalidated_fields = frozenset({"source", *REPOSITORY_FIELDS})

    source = forms.CharField(label="Source", required=False, widget=forms.HiddenInput)
    runs = forms.ChoiceField(label="What starts", choices=[("script", "A script"), ("command", "A command")])
    script = forms.CharField(
        label="Script",
        required=False,
        max_length=1000,
        help_text=(
            "The path of a file in the source. Python scripts run with the environment's interpreter."
        ),
        widget=forms.TextInput(
            attrs={
                "list": "source-files",
                "autocomplete": "off",
                "spellcheck": "false",
                "placeholder": "train.py",
            }
        ),
    )
    arguments = forms.CharField(
        label="Arguments",
        required=False,
        strip=False,
        help_text=(
            "Separate arguments by spaces or line breaks, and quote an argument that contains spaces. "
            "$RANK, $LOCAL_RANK and other variables are replaced for each process. No shell is used: "
            "nothing else is interpreted."
        ),
        widget=forms.Textarea(
            attrs={"rows": 3, "spellcheck": "false", "placeholder": "--epochs 20\n--learning-rate 0.001"}
        ),
    )
    command = forms.CharField(
        label="Command",
        required=False,
        strip=False,
        help_text=(
            "The command runs on every node as typed, without a shell. $NODE_RANK, $MASTER_ADDR and "
            "$MASTER_PORT are replaced."
        ),
        widget=forms.Textarea(
            attrs={
                "rows": 4,
                "spellcheck": "false",
                "placeholder": "torchrun --nproc_per_node 4 --nnodes 2 --node_rank $NODE_RANK\n"
                "--master_addr $MASTER_ADDR --master_port $MASTER_PORT train.py",
            }
        ),
    )

    # Only a place for labels and errors: the rows are read from the repeated fields.
    inputs = forms.Field(label="Data", required=False)

    def clean(self) -> dict[str, Any]:
        chosen = self.cleaned_data.get("runs", "script")
        for name, sentence in REQUIREMENTS.items():
            # A field whose own check failed is absent from cleaned_data as well; it must not get a second
            # error.
            if name in ("source", chosen) and not self.cleaned_data.get(name) and name not in self.errors:
                # The code marks the error as a field that is merely not filled in yet.
                self.add_error(name, forms.ValidationError(sentence, code="required"))
        self.keep_errors_of(
            {"source", "runs", "inputs", *(("script", "arguments") if chosen == "script" else ("command",))}
        )
        return self.cleaned_data

    def clean_source(self) -> Source | None:
        return read_source(self.cleaned_data["source"])

    def clean_arguments(self) -> tuple[str, ...]:
        return _split("Arguments", self.cleaned_data["arguments"])

    def clean_command(self) -> tuple[str, ...]:
        return _split("The command", self.cleaned_data["command"])

    def clean_inputs(self) -> dict[str, DataInput]:
        inputs: dict[str, DataInput] = {}
        for name, datastore, path, reading in self.input_rows():
            if not name and not path:
                continue
            if not name:
                raise forms.ValidationError(f"Data: give the input with the path '{path}' a name.")
            if name in inputs:
                raise forms.ValidationError(f"Data: {name} is given twice; keep one of the two.")
            if not datastore:
                raise forms.ValidationError(f"Data: choose a datastore for {name}; the page Data adds one.")
            inputs[name] = read_data_source(datastore, path, reading)
            if inputs[name].dataset and path:
                raise forms.ValidationError(
                    f"Data: {name} is a dataset, which is read as a whole; clear its path."
                )
        return inputs

    def input_rows(self) -> list[tuple[str, str, str, str]]:
        """Returns name, datastore, path and reading of each row, as typed but for white space around them."""
        columns = (self.column(f"input_{column}") for column in ("name", "datastore", "path", "reading"))
        rows = zip_longest(*columns, fillvalue="")
        return [(name.strip(), place.strip(), path.strip(), reading) for name, place, path, reading in rows]

    def part(self) -> SourcePart:
        data = self.cleaned_data
        if data["runs"] == "command":
            return SourcePart(data["source"], command=data["command"], inputs=data["inputs"])
        return SourcePart(
            data["source"], script=data["script"], arguments=data["arguments"], inputs=data["inputs"]
        )

    @classmethod
    def raw(cls, part: SourcePart) -> Raw:
        return {
            "source": [write_source(part.source)],
            "runs": ["command" if part.command else "script"],
            "script": [part.script],
            "arguments": [join_arguments(part.arguments)],
            "command": [join_arguments(part.command)],
            "input_name": list(part.inputs),
            "input_datastore": [write_data_source(data_input) for data_input in part.inputs.values()],
            "input_path": [data_input.path for data_input in part.inputs.values()],
            "input_reading": [write_reading(data_input) for data_input in part.inputs.values()],
        }

    @property
    def repository(self) -> dict[str, str]:
        """Returns what was typed last for a repository, otherwise the address of the chosen one, by field."""
        source = read_source((self.typed.get("source") or [""])[0])
        chosen = source if isinstance(source, GitSource) else GitSource("")
        return {
            name: (self.typed.get(name) or [getattr(chosen, attribute)])[0]
            for name, attribute in REPOSITORY_FIELDS.items()
        }

    @property
    def paths(self) -> dict[str, str]:
        return {name: name for name in ("source", "script", "arguments", "command", "inputs")}


def read_data_source(text: str, path: str, reading: str) -> DataInput:
    """Returns the input of a row. `text`: see `write_data_source`; `reading`: see `write_reading`."""
    row = DataInput(
        path=path,
        mode=REFERENCE if reading == REFERENCE else "",
        if_changed=USE if reading == USE else FAIL,
    )
    kind, _, rest = text.partition(":")
    if kind != DATASET or not rest:
        return replace(row, datastore=text)
    name, _, number = rest.partition(":")
    is_number = number.isascii() and number.isdecimal() and len(number) <= MAX_VERSION_DIGITS
    return replace(row, dataset=name, version=int(number) if is_number and int(number) else None)


def write_data_source(data_input: DataInput) -> str:
    """Returns the value of a choice: the name of a datastore, or `dataset:NAME` or
    `dataset:NAME:VERSION`. Names of datastores have no colon."""
    if not data_input.dataset:
        return data_input.datastore
    return ":".join(filter(None, (DATASET, data_input.dataset, str(data_input.version or ""))))


def write_reading(data_input: DataInput) -> str:
    """Returns the key of READING_WORDS for an input."""
    if data_input.mode == REFERENCE:
        return REFERENCE
    return USE if data_input.uses_changed else ""


def read_source(text: str) -> Source | None:
    kind, _, name = text.partition(":")
    if not name:
        return None
    if kind == "git":
        return _read_repository(name)
    return ExampleSource(name) if kind == "example" else SnapshotSource(name)


def write_source(source: Source | None) -> str:
    if source is None:
        return ""
    if isinstance(source, GitSource):
        return f"git:{json.dumps(vars(source))}"
    return f"example:{source.name}" if isinstance(source, ExampleSource) else f"snapshot:{source.id}"


def _read_repository(text: str) -> GitSource | None:
    # A browser may send anything.
    try:
        return read_git_source(Fields(json.loads(text)))
    except (ValueError, RecursionError, SpecError):
        return None


def _split(label: str, text: str) -> tuple[str, ...]:
    try:
        return split_arguments(text)
    except ValueError as error:
        raise forms.ValidationError(f"{label}: the text {error}.") from error
