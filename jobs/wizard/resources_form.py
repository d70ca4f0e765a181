"""Step 3: cluster, GPUs, limits, priority, checkpoints and outputs of the run."""

from __future__ import annotations

from django import forms

from jobs.wizard.forms import Raw, StepForm, whole_number
from jobs.wizard.parts import ResourcesPart
from jobs.wizard.text_values import read_span, write_size, write_span
from trainhub_launch.data.outputs import LONGEST_PATH, OutputPlace
from trainhub_launch.scheduler.sizes import parse_bytes
from trainhub_launch.spec import HIGHEST_PRIORITY, LOWEST_PRIORITY, Checkpoints, Limits
from trainhub_launch.spec_reader import (
    LEAST_CPUS,
    MOST_CHECKPOINTS,
    MOST_CPUS,
    MOST_GPUS,
    MOST_PATH_LENGTH,
    RUN_ID,
)

LONGEST_S = 366 * 86400


class ResourcesForm(StepForm[ResourcesPart]):
    template = "jobs/wizard/_resources.html"
    independent_fields = frozenset(
        {
            "timeout",
            "grace_s",
            "retries",
            "priority",
            "memory",
            "cpus",
            "disk",
            "keep_checkpoints",
            "checkpoint_path",
            "resume_from",
            "output_store",
            "output_path",
            "checkpoint_store",
            "checkpoint_store_path",
        }
    )

    # Blank in drafts whose user has chosen none; the page shows the default cluster as chosen.
    cluster = forms.CharField(label="Cluster", required=False, max_length=100)
    gpus_per_node = whole_number(
        "GPUs per node",
        least=0,
        most=MOST_GPUS,
        help_text="0 for a run on CPUs. Each process gets GPUs of its own if there are enough.",
    )
    all_gpus = forms.BooleanField(
        label="All GPUs of each node",
        required=False,
        help_text="In place of a number. The run waits for nodes of which all GPUs are free and work.",
    )
    timeout = forms.CharField(
        label="Time limit",
        required=False,
        help_text=(
            "For example 45 min, 2h 30m or 1d, counted from the start of the first process. Blank means "
            "no limit; in a cluster with a queue of its own, such as Slurm's, the default of that cluster."
        ),
        widget=forms.TextInput(attrs={"placeholder": "none", "autocomplete": "off"}),
    )
    grace_s = whole_number(
        "Shutdown grace period (s)",
        least=0,
        most=3600,
        help_text="The time that processes have to shut down after SIGTERM before they are killed.",
    )
    retries = whole_number(
        "Retries",
        least=0,
        most=100,
        help_text=(
            "The number of new attempts after a failure. Each starts in a fresh folder, with the newest "
            "complete checkpoint in it."
        ),
    )
    priority = whole_number(
        "Priority",
        least=LOWEST_PRIORITY,
        most=HIGHEST_PRIORITY,
        required=False,
        help_text=(
            "Waiting runs with a higher priority start first; runs of equal priority start by fair share. "
            "A run below 0 may be stopped and queued again for one of higher priority. A value above 0 "
            "requires the role owner in the workspace."
        ),
    )
    memory = forms.CharField(
        label="Memory per node",
        required=False,
        max_length=30,
        help_text="For example 64 GiB. The run gets that much and cannot use more. Blank means no limit, or "
        "what the cluster's own queue gives.",
        widget=forms.TextInput(attrs={"placeholder": "none", "autocomplete": "off"}),
    )
    cpus = forms.FloatField(
        label="CPU cores per node",
        required=False,
        min_value=LEAST_CPUS,
        max_value=MOST_CPUS,
        help_text="The run gets that many and cannot use more. Blank: no limit, or what the queue gives.",
    )
    disk = forms.CharField(
        label="Disk per node",
        required=False,
        max_length=30,
        help_text=(
            "For example 100 GiB, for all files of the run, also in /tmp. The run is ended when it has used "
            "more. Blank means no limit."
        ),
        widget=forms.TextInput(attrs={"placeholder": "none", "autocomplete": "off"}),
    )

    keep_checkpoints = whole_number(
        "Checkpoints to keep",
        least=1,
        most=MOST_CHECKPOINTS,
        required=False,
        help_text="How many of the newest complete checkpoints of the run stay.",
    )
    checkpoint_path = forms.CharField(
        label="Folder of checkpoints",
        required=False,
        max_length=MOST_PATH_LENGTH,
        help_text=(
            "Where the script saves them, below its working folder. It finds the whole path in "
            "TRAINHUB_CHECKPOINT_DIR."
        ),
        widget=forms.TextInput(attrs={"placeholder": Checkpoints().path, "autocomplete": "off"}),
    )
    resume_from = forms.CharField(
        label="Begin with a checkpoint of",
        required=False,
        max_length=60,
        help_text=(
            "The id of a run, for its newest complete checkpoint, or with # the number of another one. The "
            "tab Checkpoints of a run fills it in. Blank: begin anew."
        ),
        widget=forms.TextInput(attrs={"placeholder": "none", "autocomplete": "off", "spellcheck": "false"}),
    )

    checkpoint_store = forms.CharField(
        label="Checkpoints go to",
        required=False,
        max_length=100,
        help_text="A datastore that runs can write into, for checkpoints that are too large for the hub.",
    )
    checkpoint_store_path = forms.CharField(
        label="Folder of the checkpoints there",
        required=False,
        max_length=LONGEST_PATH,
        help_text=(
            "In the datastore that the checkpoints go to. Each run has a folder of its own below it. Blank "
            "means directly in the datastore."
        ),
        widget=forms.TextInput(attrs={"placeholder": "none", "autocomplete": "off", "spellcheck": "false"}),
    )
    output_store = forms.CharField(
        label="Outputs go to",
        required=False,
        max_length=100,
        help_text=(
            "A datastore that runs can write into. It gets what the script leaves in outputs/, and the hub "
            "lists it."
        ),
    )
    output_path = forms.CharField(
        label="Folder of the outputs",
        required=False,
        max_length=LONGEST_PATH,
        help_text=(
            "In the datastore that the outputs go to. Each run has a folder of its own below it. Blank means "
            "directly in the datastore."
        ),
        widget=forms.TextInput(attrs={"placeholder": "none", "autocomplete": "off", "spellcheck": "false"}),
    )

    def clean(self) -> None:
        # The number does not count then, and may even be blank.
        if self.cleaned_data.get("all_gpus"):
            self.errors.pop("gpus_per_node", None)
            self.cleaned_data["gpus_per_node"] = 0

    def clean_resume_from(self) -> tuple[str, int | None]:
        run, sign, number = self.cleaned_data["resume_from"].strip().partition("#")
        is_number = number.isascii() and number.isdigit() and len(number) < 10
        if (run or sign) and not (RUN_ID.match(run) and (is_number or not sign)):
            raise forms.ValidationError(
                "Begin with a checkpoint of: write the id of a run, 32 hexadecimal digits, or that with "
                "# and the number of a checkpoint."
            )
        return run, int(number) if sign else None

    def clean_memory(self) -> int | None:
        return self._size("memory", "64 GiB")

    def clean_disk(self) -> int | None:
        return self._size("disk", "100 GiB")

    def _size(self, name: str, example: str) -> int | None:
        text = self.cleaned_data[name]
        try:
            return parse_bytes(text) if text else None
        except ValueError as error:
            label = self.fields[name].label
            raise forms.ValidationError(f"{label}: write a size, like {example}.") from error

    def clean_timeout(self) -> int | None:
        try:
            seconds = read_span(self.cleaned_data["timeout"])
        except ValueError as error:
            raise forms.ValidationError(f"Time limit: the text {error}.") from error
        if seconds is not None and seconds > LONGEST_S:
            raise forms.ValidationError("Time limit: at most 366 days; leave it blank for none.")
        return seconds

    def part(self) -> ResourcesPart:
        data = self.cleaned_data
        limits = Limits(timeout_s=data["timeout"], grace_s=data["grace_s"], retries=data["retries"])
        default = Checkpoints()
        resume_from, number = data["resume_from"]
        checkpoint = Checkpoints(
            data["keep_checkpoints"] or default.keep,
            data["checkpoint_path"].strip() or default.path,
            resume_from,
            number,
            data["checkpoint_store"].strip(),
            data["checkpoint_store_path"].strip().strip("/"),
        )
        return ResourcesPart(
            data["cluster"],
            data["gpus_per_node"],
            limits,
            data["priority"] or 0,
            data["memory"],
            data["cpus"],
            data["disk"],
            checkpoint,
            self._outputs(),
            data["all_gpus"],
        )

    def _outputs(self) -> OutputPlace | None:
        # A folder without a datastore is refused when the spec is read.
        store, path = (self.cleaned_data[name].strip() for name in ("output_store", "output_path"))
        return OutputPlace(store, path) if store or path else None

    @classmethod
    def raw(cls, part: ResourcesPart) -> Raw:
        return {
            "cluster": [part.cluster],
            "gpus_per_node": [str(part.gpus_per_node)],
            **({"all_gpus": ["on"]} if part.all_gpus else {}),
            "timeout": [write_span(part.limits.timeout_s)],
            "grace_s": [str(part.limits.grace_s)],
            "retries": [str(part.limits.retries)],
            "priority": [str(part.priority)],
            "memory": [write_size(part.memory)],
            "cpus": ["" if part.cpus is None else f"{part.cpus:g}"],
            "disk": [write_size(part.disk)],
            "keep_checkpoints": [str(part.checkpoint.keep)],
            "checkpoint_path": [part.checkpoint.path],
            "resume_from": [_resume_text(part.checkpoint)],
            "checkpoint_store": [part.checkpoint.datastore],
            "checkpoint_store_path": [part.checkpoint.datastore_path],
            "output_store": [part.outputs.datastore if part.outputs else ""],
            "output_path": [part.outputs.path if part.outputs else ""],
        }

    @property
    def paths(self) -> dict[str, str]:
        return {
            "resources": "cluster",
            "resources.gpus_per_node": "gpus_per_node",
            "resources.memory": "memory",
            "resources.cpus": "cpus",
            "resources.disk": "disk",
            "limits": "timeout",
            "limits.grace_s": "grace_s",
            "limits.retries": "retries",
            "priority": "priority",
            "checkpoint": "resume_from",
            "checkpoint.keep": "keep_checkpoints",
            "checkpoint.path": "checkpoint_path",
            "checkpoint.datastore": "checkpoint_store",
            "checkpoint.datastore_path": "checkpoint_store_path",
            "outputs": "output_store",
            "outputs.path": "output_path",
        }


def _resume_text(checkpoint: Checkpoints) -> str:
    number = "" if checkpoint.number is None else f"#{checkpoint.number}"
    return f"{checkpoint.resume_from}{number}"
