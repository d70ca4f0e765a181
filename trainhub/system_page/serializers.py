"""What `GET /api/v1/system/` answers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

_BOUND = (
    "An upper bound in seconds; null: nothing was observed, or (where count is not 0) more than a minute."
)


class TimingSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    count = serializers.IntegerField(help_text="Observations within the window.")
    total_s = serializers.FloatField(help_text="Their sum in seconds.")
    median_s = serializers.FloatField(allow_null=True, help_text=_BOUND)
    p99_s = serializers.FloatField(allow_null=True, help_text=_BOUND)


class RequestTimingSerializer(TimingSerializer):
    name = serializers.CharField(help_text="Method and route.")
    failed = serializers.IntegerField(help_text="Answers of 500 and above.")


class StoreRequestSerializer(TimingSerializer):
    name = serializers.CharField(help_text="upload, read, size, delete or sign.")
    failed = serializers.IntegerField(help_text="Requests that failed for good.")


class StoreFiguresSerializer(serializers.Serializer[Any]):
    place = serializers.CharField()
    requests = StoreRequestSerializer(many=True, help_text="Each with all its repetitions.")
    sent_bytes = serializers.IntegerField()
    received_bytes = serializers.IntegerField()
    upload_retries = serializers.IntegerField(help_text="Uploads that failed and were put off.")
    disk_reads = serializers.IntegerField(help_text="Reads of files of which a copy was on the disk.")
    store_reads = serializers.IntegerField(help_text="Reads of files that came from the store.")
    cache_bytes = serializers.IntegerField(
        allow_null=True, help_text="Of the files on the disk, as counted last; null: not yet."
    )
    cache_limit_bytes = serializers.IntegerField(help_text="BLOB_CACHE_BYTES; 0: none.")
    waiting = serializers.IntegerField(help_text="Files that are not uploaded yet.")
    waiting_bytes = serializers.IntegerField()
    oldest_at = serializers.DateTimeField(allow_null=True, help_text="Since when the first of them waits.")


class RoundTimingSerializer(TimingSerializer):
    process = serializers.CharField()
    failures = serializers.IntegerField()
    late_s = serializers.FloatField(
        allow_null=True, help_text="How many seconds later than planned it began last; null: not measured."
    )


class HubProcessSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="Its kind, host name and process id.")
    kind = serializers.CharField(help_text="web or worker.")
    version = serializers.CharField()
    started_at = serializers.DateTimeField()
    measured_at = serializers.DateTimeField()
    is_silent = serializers.BooleanField(help_text="It has ended without a word, or hangs.")
    cpu_share = serializers.FloatField(allow_null=True, help_text="Of one core, within the window.")
    memory_bytes = serializers.FloatField(allow_null=True)
    open_files = serializers.FloatField(allow_null=True)
    lag_p99_s = serializers.FloatField(allow_null=True, help_text=f"Of its event loop. {_BOUND}")


class ServerSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    part = serializers.CharField(help_text="web or worker.")
    address = serializers.CharField(allow_blank=True, help_text="Where the other web servers reach it.")
    version = serializers.CharField()
    started_at = serializers.DateTimeField()
    silent_s = serializers.FloatField(help_text="Seconds since it said that it lives.")
    clock_offset_s = serializers.FloatField(help_text="By how much its clock is ahead of the database's.")
    is_leader = serializers.BooleanField(help_text="It runs the periodic tasks.")


class ServerWarningSerializer(serializers.Serializer[Any]):
    setting = serializers.CharField(
        allow_blank=True, help_text="The setting in which servers differ; empty for a clock."
    )
    server = serializers.CharField()
    text = serializers.CharField()
    remedy = serializers.CharField()


class ProxyWarningSerializer(serializers.Serializer[Any]):
    header = serializers.CharField(help_text="What the proxy removes, or does not set.")
    count = serializers.IntegerField(help_text="Requests of the last minutes.")
    text = serializers.CharField()
    remedy = serializers.CharField()


class BacklogSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    waiting = serializers.IntegerField()
    oldest_at = serializers.DateTimeField(allow_null=True)


class LogTargetStateSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="Whose runs: a workspace, or all workspaces.")
    host = serializers.CharField()
    word = serializers.CharField(help_text="working, failing, or unused: nothing has arrived there yet.")
    kind = serializers.CharField(help_text="otlp or loki.")
    lines = serializers.IntegerField(help_text="Lines that have arrived there.")
    refused_lines = serializers.IntegerField(help_text="Lines that were left out because it refused them.")
    last_refusal = serializers.CharField()
    last_accepted_at = serializers.DateTimeField(allow_null=True)
    last_error = serializers.CharField()
    failing_since = serializers.DateTimeField(allow_null=True)
    behind_bytes = serializers.IntegerField(help_text="What waits, as of the last round.")
    behind_since = serializers.DateTimeField(
        allow_null=True, help_text="When the oldest line that waits arrived at the hub."
    )


class StepDelaySerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    meaning = serializers.CharField()
    count = serializers.IntegerField()
    median_s = serializers.FloatField(allow_null=True)
    p99_s = serializers.FloatField(allow_null=True)


class SystemSerializer(serializers.Serializer[Any]):
    window_s = serializers.FloatField(help_text="Seconds to which the figures of processes belong.")
    processes = HubProcessSerializer(many=True)
    servers = ServerSerializer(many=True, help_text="Empty on SQLite, which one server alone can use.")
    server_warnings = ServerWarningSerializer(many=True)
    proxy_warnings = ProxyWarningSerializer(many=True)
    requests = RequestTimingSerializer(many=True, help_text="The routes that took most time.")
    store = StoreFiguresSerializer(allow_null=True, help_text="The store of BLOB_STORE; null without it.")
    rounds = RoundTimingSerializer(many=True, help_text="Periodic work.")
    tasks = TimingSerializer(many=True, help_text="Durations of tasks.")
    task_waits = TimingSerializer(many=True, help_text="From the message for a task to its start.")
    backlogs = BacklogSerializer(many=True)
    log_targets = LogTargetStateSerializer(many=True, help_text="Log systems that get the lines of runs.")
    delays = StepDelaySerializer(many=True, help_text="Steps of the launches of the last hour.")
    database = serializers.CharField()
    database_bytes = serializers.IntegerField(allow_null=True)
    disk_free_bytes = serializers.IntegerField(help_text="Where DATA_DIR is.")
    disk_total_bytes = serializers.IntegerField()
