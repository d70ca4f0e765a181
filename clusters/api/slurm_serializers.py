from __future__ import annotations

from collections.abc import Mapping, Sequence

from rest_framework import serializers

from clusters.allocations import relays
from clusters.backends.slurm.examination import CheckResult, SlurmCheck
from clusters.backends.slurm.settings import MAX_TIME_S, MIN_TIME_S
from clusters.models import SlurmPartition, SlurmToken, UnixAccount
from clusters.slurm_partitions.login_node import LoginNode


class PartitionSerializer(serializers.Serializer[Mapping[str, object]]):
    """The partition of a Slurm that a cluster is; see docs/slurm.md."""

    partition = serializers.CharField(max_length=64, required=False, help_text="As sinfo names it.")
    command_host = serializers.CharField(
        max_length=300,
        allow_blank=True,
        required=False,
        help_text="Where Slurm's commands are: account@host or account@host:port over ssh; empty for the "
        "hub's machine.",
    )
    host_key = serializers.CharField(
        max_length=16000,
        allow_blank=True,
        required=False,
        help_text="The key of that host: lines like `ssh-ed25519 AAAA…`.",
    )
    login_group = serializers.CharField(
        max_length=32,
        allow_blank=True,
        required=False,
        help_text="The group there whose members can have jobs; if empty, only the account that logs in.",
    )
    rest_url = serializers.CharField(
        max_length=300,
        allow_blank=True,
        required=False,
        help_text="The address of a slurmrestd, which is asked in place of commands; a change deletes all "
        "tokens.",
    )
    rest_ca = serializers.CharField(
        max_length=16000,
        allow_blank=True,
        required=False,
        help_text="Certificates (PEM) of who signed that of slurmrestd; empty for those that the hub trusts.",
    )
    account = serializers.CharField(
        max_length=64, allow_blank=True, required=False, help_text="If empty, the default of each person."
    )
    qos = serializers.CharField(
        max_length=64, allow_blank=True, required=False, help_text="If empty, the default of each person."
    )
    relay_port = serializers.IntegerField(
        min_value=0,
        max_value=65535,
        required=False,
        help_text="Where the login node listens for nodes that cannot reach the hub; 0: nowhere.",
    )
    relay_host = serializers.CharField(
        max_length=255,
        allow_blank=True,
        required=False,
        help_text="The login node's name for the nodes; if empty, the one in `command_host`.",
    )
    default_time_s = serializers.IntegerField(
        min_value=MIN_TIME_S,
        max_value=MAX_TIME_S,
        required=False,
        help_text="The time limit of runs without one, in seconds.",
    )
    max_time_s = serializers.IntegerField(
        min_value=MIN_TIME_S,
        max_value=MAX_TIME_S,
        required=False,
        help_text="Runs that ask for more are refused.",
    )
    gres = serializers.DictField(
        child=serializers.CharField(max_length=100),
        required=False,
        help_text="GPU model -> what Slurm calls it, such as gpu:a100; the model '' is any GPU.",
    )
    shared_folder = serializers.CharField(
        max_length=255, allow_blank=True, required=False, help_text="A folder that all nodes share, or empty."
    )
    node_cache = serializers.CharField(
        max_length=255,
        allow_blank=True,
        required=False,
        help_text="A folder of each node in which accounts keep what their later runs need, or empty.",
    )
    python = serializers.CharField(
        max_length=255, required=False, help_text="The Python of the nodes that runs the node program."
    )

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        unknown = sorted(set(self.initial_data_of_this()) - set(self.fields))
        if unknown:
            raise serializers.ValidationError(
                {unknown[0]: f"is not a setting of a partition; the settings are: {', '.join(self.fields)}"}
            )
        return attrs

    def initial_data_of_this(self) -> Mapping[str, object]:
        """Returns what was sent for this object, which is a part of a larger one."""
        sent = self.parent.initial_data.get(self.field_name) if self.parent else self.initial_data
        return sent if isinstance(sent, Mapping) else {}


class SlurmStatusSerializer(serializers.Serializer[SlurmPartition]):
    """What is known about the Slurm of a cluster."""

    has_accounting = serializers.BooleanField(
        allow_null=True, help_text="Whether sacct answers; null before the first test."
    )
    trouble = serializers.CharField(help_text="Why it does not answer; empty if it does.")
    trouble_since = serializers.DateTimeField(allow_null=True)
    relay_trouble = serializers.SerializerMethodField(
        help_text="Why the relay does not stand; empty if it does, or if there is none."
    )

    def get_relay_trouble(self, row: SlurmPartition) -> str:
        return relays.trouble_of(row) if relays.relay_address(row) else ""


class SlurmCheckSerializer(serializers.Serializer[SlurmCheck | Sequence[SlurmCheck]]):
    name = serializers.CharField()
    result = serializers.ChoiceField(choices=[result.value for result in CheckResult])
    sentence = serializers.CharField()


class SlurmTestSerializer(serializers.Serializer[Mapping[str, object]]):
    """The checks, in the order in which they were made; after a failed call the rest is left out."""

    is_usable = serializers.BooleanField(help_text="True if no check is an error.")
    checks = SlurmCheckSerializer(many=True)


class UnixAccountSerializer(serializers.Serializer[UnixAccount | Sequence[UnixAccount]]):
    """Under which Unix account the runs of a person are."""

    person = serializers.CharField(source="person.username", max_length=150)
    account = serializers.CharField(source="name", max_length=32)


class NewUnixAccountSerializer(serializers.Serializer[Mapping[str, str]]):
    person = serializers.CharField(max_length=150, help_text="The name with which the person signs in.")
    account = serializers.CharField(max_length=32, help_text="A Unix account, never root.")


class SlurmTokenSerializer(serializers.Serializer[SlurmToken]):
    """A token for slurmrestd; its value is never shown."""

    account = serializers.CharField(help_text="The Unix account that Slurm knows by it.")
    expires_at = serializers.DateTimeField()
    stored_at = serializers.DateTimeField()


class NewSlurmTokenSerializer(serializers.Serializer[Mapping[str, str]]):
    token = serializers.CharField(
        max_length=4096, help_text="What `scontrol token` prints, or the part of it after the equals sign."
    )


class LoginNodeSerializer(serializers.Serializer[LoginNode]):
    """What the login node of a cluster needs; see docs/slurm.md."""

    authorized_key = serializers.CharField(
        help_text="The line for ~/.ssh/authorized_keys of the account that logs in."
    )
    fingerprint = serializers.CharField(help_text="Of the hub's key: SHA256:….")
    host_fingerprints = serializers.ListField(
        child=serializers.CharField(), help_text="Of the keys by which the hub knows the login node."
    )
    sudoers = serializers.CharField(
        help_text="The content of a file in /etc/sudoers.d; empty if no sudo is needed."
    )
    sshd = serializers.CharField(
        help_text="What the configuration of sshd there needs for the relay; empty without one."
    )
    setup = serializers.CharField(
        help_text="Shell commands that set up the login node, in the folder with the file trainhub-login: as "
        "root if there is a group, otherwise as the account that logs in."
    )
    wrapper = serializers.CharField(help_text="The content of the file trainhub-login.")
