from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from jobs import causes
from jobs.api.cause_serializers import CauseSerializer
from jobs.causes.reasons import WITHOUT_CAUSE
from jobs.environment_findings.failure_remedies import failure_remedy
from jobs.models import Attempt, Checkpoint, Run, RunTag
from jobs.queues import standings
from jobs.queues.standings import QueueStanding
from jobs.retention.removals import removed_data
from jobs.retention_rules.removal_serializer import RemovedDataSerializer
from jobs.states import RunKind
from trainhub_launch.findings import Finding
from trainhub_launch.frameworks import stored_framework
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.printing import show
from workspaces.database.compiled_queries import compiled


class FindingSerializer(serializers.Serializer[Finding]):
    level = serializers.ChoiceField(["error", "warning", "hint"])
    field = serializers.CharField(help_text="The JSON path of the field in the spec.")
    message = serializers.CharField()
    action = serializers.CharField(
        help_text="What the page at `link` does about it, such as `Add pandas`; empty if there is none."
    )
    link = serializers.CharField(
        help_text="The path of a form on this hub that is filled in with the remedy; empty if there is none."
    )


class PlanSerializer(serializers.Serializer[Any]):
    """The launch plan (which process runs on which node), as JSON and as readable text."""

    plan = serializers.JSONField(
        allow_null=True,
        help_text="The planned processes of each node; null if no plan is possible for this spec.",
    )
    printed = serializers.CharField()


class PreviewSerializer(PlanSerializer):
    ok = serializers.BooleanField(help_text="True if the spec would be accepted.")
    findings = FindingSerializer(many=True)
    job_script = serializers.CharField(
        help_text="What the cluster's own scheduler, such as Slurm, would get; empty for other clusters."
    )


class RunSerializer(serializers.Serializer[Any]):
    """A run with the fields that lists show."""

    id = serializers.CharField(help_text="The run's id: 32 hexadecimal digits, globally unique.")
    number = serializers.IntegerField(
        help_text="The run's number, unique in its workspace. URLs accept it in place of the id."
    )
    display_name = serializers.CharField()
    experiment = serializers.CharField(source="experiment.name")
    kind = serializers.CharField(
        help_text=(
            "`job`: started by TrainHub. `external`: logged by a program that TrainHub did not start; it "
            "has no spec and no attempts."
        )
    )
    # Every field has an attribute of this name too, which is not set on the class.
    parent = serializers.CharField(  # type: ignore[assignment]
        source="parent_id",
        allow_null=True,
        help_text=(
            "The id of the parent run: the job whose process logged this run, or the run that this run is "
            "nested in. Null if it has none."
        ),
    )
    framework = serializers.SerializerMethodField(
        help_text="The name of the training framework; empty for an external run."
    )
    cluster = serializers.CharField(
        source="spec.resources.cluster",
        default="",
        help_text="The name of the requested cluster; empty for an external run.",
    )
    tags = serializers.SerializerMethodField()
    priority = serializers.IntegerField(
        help_text="The scheduling priority; waiting runs with a higher value are placed first."
    )
    state = serializers.CharField()
    reason = serializers.CharField(
        help_text="A code for programs that explains the state; empty if there is nothing to explain."
    )
    sentence = serializers.CharField(help_text="The reason as a sentence for people.")
    cause_line = serializers.SerializerMethodField(
        help_text=(
            "The cause of the failure in one line; empty if the run did not fail or the cause is unknown."
        )
    )
    attempt = serializers.IntegerField(
        help_text="The number of the latest attempt, starting at 1; 0 before the first attempt."
    )
    created_by = serializers.CharField(source="created_by.username", default=None, allow_null=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    state_since = serializers.DateTimeField()

    def get_cause_line(self, run: Any) -> str:
        # The line is of the latest attempt, which may have failed before the run was canceled.
        return (run.cause_line or "") if run.state not in WITHOUT_CAUSE else ""

    def get_tags(self, run: Run) -> dict[str, str]:
        return {tag.key: tag.value for tag in run.tags.all()}

    def get_framework(self, run: Run) -> str:
        return "" if run.kind == RunKind.EXTERNAL else stored_framework(run.spec)


class MemberSerializer(serializers.Serializer[object]):
    """A planned process of an attempt, with its present state."""

    rank = serializers.IntegerField()
    local_rank = serializers.IntegerField()
    role = serializers.CharField()
    node = serializers.CharField(source="node.name")
    gpus = serializers.ListField(
        child=serializers.CharField(), help_text="The UUIDs of the GPUs that the process can use."
    )
    log_name = serializers.CharField()
    decides = serializers.BooleanField(help_text="True if the exit of this process decides how the run ends.")
    state = serializers.CharField()
    pid = serializers.IntegerField(allow_null=True)
    exit_code = serializers.IntegerField(allow_null=True)
    signal = serializers.IntegerField(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class AttemptSerializer(serializers.Serializer[object]):
    number = serializers.IntegerField()
    nodes = serializers.SerializerMethodField(
        help_text="The names of the nodes, ordered by node rank; the first is the head node."
    )
    plan = serializers.SerializerMethodField(
        allow_null=True, help_text="The plan that was executed; null until a node has claimed the attempt."
    )
    warnings = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)

    def get_nodes(self, attempt: Attempt) -> list[str]:
        return [node["name"] for node in attempt.placement]

    @extend_schema_field(PlanSerializer(allow_null=True))
    def get_plan(self, attempt: Attempt) -> dict[str, Any] | None:
        return None if attempt.plan is None else plan_json(attempt.plan)


class QueueStandingSerializer(serializers.Serializer[QueueStanding]):
    place = serializers.IntegerField(allow_null=True, help_text="From 1, of all workspaces; null: too new.")
    total = serializers.IntegerField(help_text="How many runs wait for the cluster.")
    sentence = serializers.CharField(
        help_text="The place, and what the workspace has used of the cluster compared with its share."
    )


class RunDetailSerializer(RunSerializer):
    """A run with all its details. `members` are the processes of the latest attempt."""

    cloned_from = serializers.CharField(
        source="cloned_from_id",
        allow_null=True,
        help_text="The id of the run whose spec this run was started from; null if there is none.",
    )
    spec = serializers.JSONField(help_text="The RunSpec, with its source stored as a snapshot.")
    preview = serializers.SerializerMethodField(
        allow_null=True, help_text="The plan at the time of submission; null if there is none."
    )
    cause = serializers.SerializerMethodField(
        allow_null=True,
        help_text=(
            "The cause of the failure of the latest attempt; null unless the attempt has failed or is "
            "failing."
        ),
    )
    queue = serializers.SerializerMethodField(
        allow_null=True, help_text="The place in the queue of the cluster; null unless the run waits there."
    )
    attempts = serializers.SerializerMethodField()
    members = serializers.SerializerMethodField()
    removed = serializers.SerializerMethodField(help_text="What retention rules have removed of the run.")

    def get_tags(self, run: Run) -> dict[str, str]:
        return {tag.key: tag.value for tag in _tags(run.pk)}

    @extend_schema_field(RemovedDataSerializer(many=True))
    def get_removed(self, run: Run) -> object:
        return RemovedDataSerializer(removed_data(run), many=True).data

    @extend_schema_field(QueueStandingSerializer(allow_null=True))
    def get_queue(self, run: Run) -> dict[str, Any] | None:
        standing = standings.standing_of(run)
        return None if standing is None else dict(QueueStandingSerializer(standing).data)

    @extend_schema_field(PlanSerializer(allow_null=True))
    def get_preview(self, run: Run) -> dict[str, Any] | None:
        return None if run.preview is None else plan_json(run.preview)

    def get_cause_line(self, run: Run) -> str:
        cause = causes.for_run(run)
        return cause.line if cause else ""

    @extend_schema_field(CauseSerializer(allow_null=True))
    def get_cause(self, run: Run) -> dict[str, Any] | None:
        cause = causes.for_run(run)
        if cause is None:
            return None
        remedy = failure_remedy(run, cause)
        change = {"action": remedy.action, "link": remedy.link} if remedy else {"action": "", "link": ""}
        return dict(CauseSerializer({**cause.to_json(), **change}).data)

    @extend_schema_field(AttemptSerializer(many=True))
    def get_attempts(self, run: Run) -> Any:
        attempts = run.attempts.order_by("number") if run.attempt else []
        return AttemptSerializer(attempts, many=True).data

    @extend_schema_field(MemberSerializer(many=True))
    def get_members(self, run: Run) -> Any:
        latest = run.attempts.filter(number=run.attempt).first() if run.attempt else None
        return MemberSerializer(latest.members.select_related("node"), many=True).data if latest else []


@compiled
def _tags(run_id: str) -> QuerySet[RunTag]:
    return RunTag.objects.filter(run_id=run_id)


class SubmittedRunSerializer(RunDetailSerializer):
    """A submitted run, with what its preview found doubtful; empty for a repeated request."""

    findings = FindingSerializer(many=True)


class EventSerializer(serializers.Serializer[object]):
    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    attempt = serializers.IntegerField()
    from_state = serializers.CharField()
    to_state = serializers.CharField(
        help_text="The state after the event; empty if the event did not change the state."
    )
    reason = serializers.CharField()
    message = serializers.CharField()
    actor = serializers.CharField(help_text="Who caused the event: a user name, 'node NAME', or 'hub'.")


class CheckpointSerializer(serializers.ModelSerializer[Checkpoint]):
    files = serializers.IntegerField(source="file_count", help_text="How many files it has.")
    place = serializers.CharField(help_text="The folder of a datastore in which it lies; empty: on the hub.")

    class Meta:
        model = Checkpoint
        fields = (
            "number",
            "name",
            "state",
            "sign",
            "attempt",
            "origin",
            "detail",
            "size_bytes",
            "files",
            "place",
            "created_at",
            "finished_at",
        )
        extra_kwargs: Mapping[str, Mapping[str, str]] = {
            "number": {"help_text": "Counts the checkpoints of the run."},
            "name": {"help_text": "Of the file or folder below the folder of checkpoints."},
            "attempt": {"help_text": "Which attempt saved it; 0: it comes from another run, `origin`."},
            "sign": {"help_text": "What showed that it is complete; empty: nothing did."},
            "detail": {"help_text": "Why it is torn."},
        }


class ResumeSerializer(serializers.Serializer[object]):
    checkpoint = serializers.IntegerField(
        required=False,
        min_value=1,
        help_text="The number of one; by default the newest complete one.",
    )


def plan_json(plan: Mapping[str, object]) -> dict[str, Any]:
    """Returns a stored plan as data for PlanSerializer."""
    return {"plan": dict(plan), "printed": show(LaunchPlan.from_json(plan))}
