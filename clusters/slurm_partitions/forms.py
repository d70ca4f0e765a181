from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict

from clusters.backends.slurm.nodes import parse_time_limit
from clusters.models import SlurmPartition
from clusters.slurm_partitions.partition_settings import PREFIX, PartitionRefused, settings_values
from workspaces.models import User

PLAIN_TEXT = {"autocomplete": "off", "spellcheck": "false"}


class SlurmTimeField(forms.CharField):
    """A time as Slurm writes it, as seconds."""

    default_error_messages = {"invalid": "Enter a time as Slurm writes it: 4:00:00, or 1-00:00:00 for a day."}

    def to_python(self, value: Any) -> Any:
        seconds = parse_time_limit(str(value or "").strip())
        if seconds is None:
            raise forms.ValidationError(self.error_messages["invalid"])
        return seconds

    def prepare_value(self, value: Any) -> Any:
        return slurm_time(value) if isinstance(value, int) else value


def slurm_time(seconds: int) -> str:
    """Returns `4:00:00`, or `1-00:00:00` from a day on."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{f'{days}-' if days else ''}{hour:0{2 if days else 1}}:{minute:02}:{second:02}"


class PartitionForm(forms.Form):
    """The settings of a partition of a Slurm; the fields have the names of the settings."""

    use_required_attribute = False
    prefix = "slurm"
    partition = forms.CharField(
        max_length=64,
        widget=forms.TextInput(attrs=PLAIN_TEXT),
        help_text="The partition that takes the jobs, as sinfo names it.",
    )
    command_host = forms.CharField(
        max_length=300,
        required=False,
        label="Login node",
        widget=forms.TextInput(attrs={**PLAIN_TEXT, "placeholder": "trainhub@login.example"}),
        help_text="Where Slurm's commands are, as account@host or account@host:port over ssh. If empty, on "
        "the hub's own machine, unless slurmrestd is asked.",
    )
    host_key = forms.CharField(
        max_length=16000,
        required=False,
        label="Host key of the login node",
        widget=forms.Textarea(attrs={**PLAIN_TEXT, "rows": 2, "class": "th-mono"}),
        help_text="Its line ssh-ed25519 AAAA…, or several lines for several hosts of one name. If you leave "
        "it empty, you are told which key the host shows.",
    )
    login_group = forms.CharField(
        max_length=32,
        required=False,
        label="Group on the login node",
        widget=forms.TextInput(attrs=PLAIN_TEXT),
        help_text="The Unix group whose members can have jobs; this takes sudo there. If empty, all jobs "
        "belong to the account that logs in.",
    )
    rest_url = forms.CharField(
        max_length=300,
        required=False,
        label="slurmrestd",
        widget=forms.TextInput(attrs={**PLAIN_TEXT, "placeholder": "https://slurm.example:6820"}),
        help_text="Its address, if Slurm is asked over HTTP in place of any commands. If you change it, all "
        "tokens have to be entered again.",
    )
    rest_ca = forms.CharField(
        max_length=16000,
        required=False,
        label="Authority of slurmrestd",
        widget=forms.Textarea(attrs={**PLAIN_TEXT, "rows": 2, "class": "th-mono"}),
        help_text="Who signed its certificate, as PEM. If empty, those that the hub’s machine trusts.",
    )
    relay_port = forms.IntegerField(
        min_value=0,
        max_value=65535,
        required=False,
        label="Port of the relay",
        help_text="For nodes that cannot reach the hub: the login node listens there for it. 0: no relay.",
    )
    relay_host = forms.CharField(
        max_length=255,
        required=False,
        label="Address of the relay",
        widget=forms.TextInput(attrs=PLAIN_TEXT),
        help_text="The login node’s name for the nodes. If empty, the one by which the hub knows it.",
    )
    account = forms.CharField(
        max_length=64,
        required=False,
        widget=forms.TextInput(attrs=PLAIN_TEXT),
        help_text="Slurm's account for all jobs. If empty, the default of each person.",
    )
    qos = forms.CharField(
        max_length=64,
        required=False,
        label="QOS",
        widget=forms.TextInput(attrs=PLAIN_TEXT),
        help_text="The quality of service of all jobs. If empty, the default of each person.",
    )
    default_time_s = SlurmTimeField(
        label="Default time limit", help_text="For runs without a time limit, as days-hours:minutes:seconds."
    )
    max_time_s = SlurmTimeField(
        label="Greatest time limit", help_text="Runs that ask for more are refused before they are submitted."
    )
    gres = forms.CharField(
        max_length=100,
        label="GPUs in Slurm (GRES)",
        widget=forms.TextInput(attrs=PLAIN_TEXT),
        help_text="What jobs ask for to get a GPU: gpu, or gpu:a100 (see sinfo -o %G).",
    )
    node_cache = forms.CharField(
        max_length=255,
        required=False,
        label="Cache of each node",
        widget=forms.TextInput(attrs=PLAIN_TEXT),
        help_text="A folder of each node into which every account may write. They keep environments "
        "and data there for their next runs. Empty: each run fetches them anew.",
    )
    shared_folder = forms.CharField(
        max_length=255,
        required=False,
        widget=forms.TextInput(attrs=PLAIN_TEXT),
        help_text="A folder that all nodes share, for the output of the batch scripts. It may be empty.",
    )
    python = forms.CharField(
        max_length=255,
        label="Python on the nodes",
        widget=forms.TextInput(attrs=PLAIN_TEXT),
        help_text="The interpreter that starts TrainHub's node program there: Python 3.11 or newer.",
    )

    def __init__(self, data: QueryDict | None = None, *, row: SlurmPartition | None = None) -> None:
        before = settings_values(row)
        self._gres = before["gres"]
        super().__init__(data, initial={**before, "gres": self._gres.get("", "gpu")}, label_suffix="")

    @property
    def values(self) -> dict[str, Any]:
        """Returns the values for `partition_settings.check_settings`. The names of single models are kept."""
        return {
            **self.cleaned_data,
            "gres": {**self._gres, "": self.cleaned_data["gres"]},
            "relay_port": self.cleaned_data["relay_port"] or 0,
        }

    def add_problems(self, refusal: PartitionRefused) -> None:
        for problem in refusal.problems:
            name = problem.field.removeprefix(PREFIX)
            self.add_error(name if name in self.fields else None, problem.message)


class SlurmTokenForm(forms.Form):
    use_required_attribute = False
    token = forms.CharField(
        max_length=4096,
        widget=forms.PasswordInput(attrs={**PLAIN_TEXT, "placeholder": "SLURM_JWT=eyJ…"}),
        help_text="The line that the command prints, or the part after the equals sign.",
    )

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, label_suffix="", auto_id="slurm_%s")


class UnixAccountForm(forms.Form):
    use_required_attribute = False
    person = forms.CharField(max_length=150, widget=forms.TextInput(attrs={**PLAIN_TEXT, "list": "people"}))
    account = forms.CharField(
        max_length=32,
        label="Unix account",
        widget=forms.TextInput(attrs=PLAIN_TEXT),
        help_text="Their jobs belong to it. It must exist on the nodes, and where Slurm's commands are.",
    )

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, label_suffix="", auto_id="account_%s")

    def people(self) -> list[str]:
        active = User.objects.filter(is_active=True).order_by("username")
        return list(active.values_list("username", flat=True))
