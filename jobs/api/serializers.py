from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from jobs import causes
from jobs.causes.reasons import WITHOUT_CAUSE
from jobs.models import Attempt, Run
from trainhub_launch.findings import Finding
from trainhub_launch.frameworks import stored_framework
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.printing import show


class SnapshotSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(
        source="sha256", help_text='For a spec: "source": {"type": "snapshot", "id": …}.'
    )
    sha256 = serializers.CharField()
    files = serializers.SerializerMethodField(help_text="How many.")
    size_bytes = serializers.IntegerField()
    warnings = serializers.ListField(child=serializers.CharField(), help_text="What was left out, and why.")

    def get_files(self, snapshot: Any) -> int:
        return len(snapshot.manifest)


class SnapshotUploadSerializer(serializers.Serializer[Any]):
    file = serializers.FileField(help_text="The source folder as a zip.")


class FindingSerializer(serializers.Serializer[Finding]):
    level = serializers.ChoiceField(["error", "warning", "hint"])
    field = serializers.CharField(help_text="The JSON path in the spec.")
    message = serializers.CharField()


class PlanSerializer(serializers.Serializer[Any]):
    """What runs where: as JSON, and printed for reading."""

    plan = serializers.JSONField(
        allow_null=True, help_text="Node by node, process by process; null where it cannot be laid out."
    )
    printed = serializers.CharField()


class PreviewSerializer(PlanSerializer):
    ok = serializers.BooleanField(help_text="Whether this spec would be accepted.")
    findings = FindingSerializer(many=True)


class RunSerializer(serializers.Serializer[Any]):
    """A run as lists show it."""

    id = serializers.CharField(help_text="32 hex digits, unique everywhere.")
    number = serializers.IntegerField(help_text="Unique in its workspace; serves as the id in addresses.")
    display_name = serializers.CharField()
    experiment = serializers.CharField(source="experiment.name")
    kind = serializers.CharField(
        help_text="`job`, or `external`: logged from elsewhere; no spec, no attempts."
    )
    # Every field has an attribute of this name too, which is not set on the class.
    parent = serializers.CharField(  # type: ignore[assignment]
        source="parent_id",
        allow_null=True,
        help_text="The job whose process logged it, or the run that it is nested in: its id.",
    )
    framework = serializers.SerializerMethodField(help_text="Empty for a run from elsewhere.")
    cluster = serializers.CharField(
        source="spec.resources.cluster", default="", help_text="Empty for a run from elsewhere."
    )
    tags = serializers.SerializerMethodField()
    priority = serializers.IntegerField(help_text="Of the runs that wait, the highest is placed first.")
    state = serializers.CharField()
    reason = serializers.CharField(help_text="A word for programs; empty while nothing is to be said.")
    sentence = serializers.CharField(help_text="The reason for people.")
    cause_line = serializers.SerializerMethodField(
        help_text="Why it failed, in one line; empty where that is not known."
    )
    attempt = serializers.IntegerField(help_text="Of retries the latest; 0 before the first.")
    created_by = serializers.CharField(source="created_by.username", default=None, allow_null=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    state_since = serializers.DateTimeField()

    def get_cause_line(self, run: Any) -> str:
        return (run.cause_line or "") if run.state not in WITHOUT_CAUSE else ""

    def get_tags(self, run: Run) -> dict[str, str]:
        return {tag.key: tag.value for tag in run.tags.all()}

    def get_framework(self, run: Run) -> str:
        return "" if run.kind == "external" else stored_framework(run.spec)


class OtherSerializer(serializers.Serializer[Any]):
    rank = serializers.IntegerField()
    node = serializers.CharField()
    why = serializers.CharField(help_text="Why it ended, in a few words.")


class CauseSerializer(serializers.Serializer[Any]):
    """Why a run failed, or is about to: the rank that failed first, what it said, and what to do."""

    line = serializers.CharField(help_text="All of it in one line.")
    rank = serializers.IntegerField(
        allow_null=True, help_text="Null where none is to blame: a node, the environment, the time."
    )
    local_rank = serializers.IntegerField(allow_null=True)
    node = serializers.CharField()
    child = serializers.IntegerField(
        allow_null=True, help_text="Of a launcher such as torchrun: its own number of the process."
    )
    sentence = serializers.CharField()
    message = serializers.CharField(
        help_text="The exception where there is one, else the best short word for what happened."
    )
    exception = serializers.CharField(
        help_text="Type and message, or the line that names the error; else empty."
    )
    began = serializers.CharField(
        help_text="The exception that led to this one, where that is a known failure."
    )
    kind = serializers.CharField(
        help_text="A known failure's word for programs (docs/failures.md); else empty."
    )
    title = serializers.CharField()
    meaning = serializers.CharField()
    remedy = serializers.CharField(help_text="What to do.")
    log = serializers.CharField(help_text="The log that is quoted; empty where none is.")
    offset = serializers.IntegerField(help_text="Where in that log the quoted lines begin.")
    quote = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True, help_text="When, by the hub's clock.")
    is_certain = serializers.BooleanField(help_text="False if no rank has an error of its own.")
    others = OtherSerializer(many=True, help_text="The other ranks that ended with it.")


class RunPageSerializer(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = RunSerializer(many=True)


class MemberSerializer(serializers.Serializer[Any]):
    """One process as planned, and what became of it."""

    rank = serializers.IntegerField()
    local_rank = serializers.IntegerField()
    role = serializers.CharField()
    node = serializers.CharField(source="node.name")
    gpus = serializers.ListField(child=serializers.CharField(), help_text="UUIDs.")
    log_name = serializers.CharField()
    decides = serializers.BooleanField(help_text="Whether its exit decides the run.")
    state = serializers.CharField()
    pid = serializers.IntegerField(allow_null=True)
    exit_code = serializers.IntegerField(allow_null=True)
    signal = serializers.IntegerField(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class AttemptSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    nodes = serializers.SerializerMethodField(help_text="In node-rank order; the first is the head.")
    plan = serializers.SerializerMethodField(
        allow_null=True, help_text="What ran; null until a node has claimed it."
    )
    warnings = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)

    def get_nodes(self, attempt: Attempt) -> list[str]:
        return [node["name"] for node in attempt.placement]

    @extend_schema_field(PlanSerializer(allow_null=True))
    def get_plan(self, attempt: Attempt) -> dict[str, Any] | None:
        return None if attempt.plan is None else plan_json(attempt.plan)


class RunDetailSerializer(RunSerializer):
    """A run whole; `members` are those of the latest attempt."""

    spec = serializers.JSONField(help_text="The RunSpec, its source frozen as a snapshot.")
    preview = serializers.SerializerMethodField(
        allow_null=True, help_text="The plan as it was when the run was submitted."
    )
    cause = serializers.SerializerMethodField(
        allow_null=True, help_text="Of the latest attempt; null unless it failed or is failing."
    )
    attempts = serializers.SerializerMethodField()
    members = serializers.SerializerMethodField()

    @extend_schema_field(PlanSerializer(allow_null=True))
    def get_preview(self, run: Run) -> dict[str, Any] | None:
        return None if run.preview is None else plan_json(run.preview)

    def get_cause_line(self, run: Run) -> str:
        cause = causes.for_run(run)
        return cause.line if cause else ""

    @extend_schema_field(CauseSerializer(allow_null=True))
    def get_cause(self, run: Run) -> dict[str, Any] | None:
        cause = causes.for_run(run)
        return dict(CauseSerializer(cause.to_json()).data) if cause else None

    @extend_schema_field(AttemptSerializer(many=True))
    def get_attempts(self, run: Run) -> Any:
        return AttemptSerializer(run.attempts.order_by("number"), many=True).data

    @extend_schema_field(MemberSerializer(many=True))
    def get_members(self, run: Run) -> Any:
        latest = run.attempts.filter(number=run.attempt).first()
        return MemberSerializer(latest.members.select_related("node"), many=True).data if latest else []


class EventSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    attempt = serializers.IntegerField()
    from_state = serializers.CharField()
    to_state = serializers.CharField(help_text="Empty: something happened, the state stayed.")
    reason = serializers.CharField()
    message = serializers.CharField()
    actor = serializers.CharField(help_text="A person, 'node NAME', or 'hub'.")


class OutputSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    size_bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    url = serializers.CharField(help_text="Its bytes; understands Range.")


class OutputListSerializer(serializers.Serializer[Any]):
    attempt = serializers.IntegerField()
    outputs = OutputSerializer(many=True)


class EnvironmentSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    version = serializers.CharField()
    kind = serializers.CharField(
        help_text="venv: made on the node from `requirements`; system: an interpreter that the node has."
    )
    requirements = serializers.ListField(child=serializers.CharField())
    nodes = serializers.ListField(
        child=serializers.CharField(), help_text="system: the nodes that have it. venv: empty, all."
    )


class ExampleSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField()
    sentence = serializers.CharField()
    framework = serializers.CharField()
    spec = serializers.DictField(help_text="A RunSpec to submit as it is, or changed.")


def plan_json(plan: Mapping[str, Any]) -> dict[str, Any]:
    """A stored plan as PlanSerializer shows it."""
    return {"plan": dict(plan), "printed": show(LaunchPlan.from_json(plan))}
