"""The API of retention rules: members read those of their workspace, owners preview and set them, operators
those for all workspaces."""

from __future__ import annotations

from collections.abc import Mapping

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs.models import Run
from jobs.retention_rules import rule_changes
from jobs.retention_rules.previews import RulesPreview, preview_for_all, preview_own
from jobs.retention_rules.rule_states import rule_states
from jobs.retention_rules.rules import HubRule, Rule, hub_rules
from jobs.states import DataKind
from trainhub_launch.errors import SpecError
from workspaces.access import must_operate
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.states import Role

KINDS = ", ".join(DataKind)


class RuleSerializer(serializers.Serializer[Rule]):
    """When data is removed."""

    days = serializers.IntegerField(
        allow_null=True, help_text="So many days after the end of a run; null: never."
    )
    only_unsuccessful = serializers.BooleanField(help_text="Only of runs that failed or were canceled.")
    words = serializers.CharField(help_text="The same for people.")


class HubRuleSerializer(serializers.Serializer[HubRule]):
    """What operators have set for all workspaces."""

    rule = RuleSerializer(help_text="For workspaces without a rule of their own.")
    least_days = serializers.IntegerField(
        allow_null=True, help_text="Earlier than so many days no workspace may remove; null: no limit."
    )
    most_days = serializers.IntegerField(
        allow_null=True, help_text="Longer than so many days no workspace keeps; null: no limit."
    )


class RuleStateSerializer(serializers.Serializer[object]):
    """The rule for one kind of data."""

    kind = serializers.CharField(help_text=f"One of {KINDS}.")
    own = RuleSerializer(allow_null=True, help_text="What owners have set; null: the hub's rule holds.")
    in_force = RuleSerializer(help_text="By what data is removed now.")
    waiting = RuleSerializer(
        allow_null=True, help_text="A stricter rule that holds from `begins_at` on; null: none waits."
    )
    begins_at = serializers.DateTimeField(allow_null=True)
    hub = HubRuleSerializer()


class RetentionSerializer(serializers.Serializer[object]):
    rules = RuleStateSerializer(many=True)


class NewRuleSerializer(serializers.Serializer[Mapping[str, object]]):
    """A rule of a workspace for one kind of data."""

    kind = serializers.CharField(max_length=16, help_text=f"One of {KINDS}.")
    days = serializers.IntegerField(
        allow_null=True, required=False, default=None, help_text="Null or left out: never."
    )
    only_unsuccessful = serializers.BooleanField(required=False, default=False)
    from_hub = serializers.BooleanField(
        required=False, default=False, help_text="Take the hub's rule; the other fields are ignored then."
    )


class NewRulesSerializer(serializers.Serializer[Mapping[str, object]]):
    """Kinds that are left out keep their rules."""

    rules = NewRuleSerializer(many=True)
    confirmation = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=1000,
        help_text="Of the preview of exactly these rules; needed if one removes more than that in force.",
    )


class NewHubRuleSerializer(serializers.Serializer[Mapping[str, object]]):
    """A rule for all workspaces for one kind of data."""

    kind = serializers.CharField(max_length=16, help_text=f"One of {KINDS}.")
    days = serializers.IntegerField(allow_null=True, required=False, default=None)
    only_unsuccessful = serializers.BooleanField(required=False, default=False)
    least_days = serializers.IntegerField(allow_null=True, required=False, default=None)
    most_days = serializers.IntegerField(allow_null=True, required=False, default=None)


class NewHubRulesSerializer(serializers.Serializer[Mapping[str, object]]):
    """Kinds that are left out keep their rules."""

    rules = NewHubRuleSerializer(many=True)
    confirmation = serializers.CharField(required=False, default="", allow_blank=True, max_length=1000)


class PreviewedRunSerializer(serializers.Serializer[object]):
    id = serializers.CharField(source="pk")
    number = serializers.IntegerField()
    display_name = serializers.CharField()
    finished_at = serializers.DateTimeField()
    url = serializers.SerializerMethodField()

    def get_url(self, run: Run) -> str:
        return f"/api/v1/runs/{run.pk}/"


class KeepReasonSerializer(serializers.Serializer[object]):
    """Runs that are kept whole for one reason."""

    key = serializers.CharField()
    words = serializers.CharField()
    count = serializers.IntegerField()
    runs = PreviewedRunSerializer(source="listed", many=True, help_text="The oldest ones.")


class KindPreviewSerializer(serializers.Serializer[object]):
    """What would be removed now of one kind of data."""

    kind = serializers.CharField()
    workspace = serializers.CharField(source="workspace.slug")
    rule = RuleSerializer()
    count = serializers.IntegerField(help_text="Of how many runs.")
    size_bytes = serializers.IntegerField(
        help_text="Their size. Files that others name, too, are counted and stay on the disk."
    )
    oldest = serializers.DateTimeField(allow_null=True, help_text="When the first of them ended.")
    newest = serializers.DateTimeField(allow_null=True, help_text="When the last of them ended.")
    runs = PreviewedRunSerializer(source="listed", many=True, help_text="The oldest ones.")
    keep_count = serializers.IntegerField(help_text="How many runs are old enough, and kept all the same.")
    reasons = KeepReasonSerializer(many=True)


class RulesPreviewSerializer(serializers.Serializer[RulesPreview]):
    confirmation = serializers.CharField(help_text="With it these rules may be set, for an hour.")
    begins_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When the first data would be removed if the rules were set now; null: nothing removes "
        "more than the rules in force.",
    )
    kinds = KindPreviewSerializer(many=True)


class _HubRulesSerializer(serializers.Serializer[object]):
    kind = serializers.CharField()
    hub = HubRuleSerializer()


class HubRetentionSerializer(serializers.Serializer[object]):
    rules = _HubRulesSerializer(many=True)


class _OwnView(APIView):
    permission_classes = [AtLeast(Role.VIEWER, writing=Role.OWNER)]

    def state(self, request: PrincipalRequest) -> Response:
        rows = rule_states(request.principal.workspace)
        return Response(RetentionSerializer({"rules": rows}).data)


class Retention(_OwnView):
    @extend_schema(responses=RetentionSerializer)
    def get(self, request: PrincipalRequest) -> Response:
        """The rules by which the workspace removes data of runs that ended long ago."""
        return self.state(request)

    @extend_schema(request=NewRulesSerializer, responses=RetentionSerializer)
    def put(self, request: PrincipalRequest) -> Response:
        """Set rules, for owners. What removes more than the rule in force needs the confirmation of its
        preview, and begins a day later."""
        choices, confirmation = _own_choices(request)
        rule_changes.set_own(request.principal.workspace, choices, request.principal.user, confirmation)
        return self.state(request)


class RetentionPreview(_OwnView):
    @extend_schema(request=NewRulesSerializer, responses=RulesPreviewSerializer)
    def post(self, request: PrincipalRequest) -> Response:
        """What rules would remove now, for owners. Nothing is changed."""
        choices, _ = _own_choices(request)
        return Response(RulesPreviewSerializer(preview_own(request.principal.workspace, choices)).data)


class RetentionCancel(_OwnView):
    @extend_schema(request=None, responses=RetentionSerializer)
    def post(self, request: PrincipalRequest) -> Response:
        """Cancel the stricter rules that wait, for owners: those in force are set again."""
        rule_changes.cancel_waiting(request.principal.workspace, request.principal.user)
        return self.state(request)


class _HubView(APIView):
    permission_classes = [AtLeast(Role.VIEWER, writing=Role.VIEWER)]

    def state(self) -> Response:
        rows = [{"kind": kind, "hub": hub} for kind, hub in hub_rules().items()]
        return Response(HubRetentionSerializer({"rules": rows}).data)


class HubRetention(_HubView):
    @extend_schema(responses=HubRetentionSerializer)
    def get(self, _: PrincipalRequest) -> Response:
        """The rules that operators have set for all workspaces."""
        return self.state()

    @extend_schema(request=NewHubRulesSerializer, responses=HubRetentionSerializer)
    def put(self, request: PrincipalRequest) -> Response:
        """Set rules for all workspaces, for operators; as for one workspace."""
        must_operate(request.principal.user)
        choices, confirmation = _hub_choices(request)
        rule_changes.set_for_all(choices, request.principal.user, confirmation)
        return self.state()


class HubRetentionPreview(_HubView):
    @extend_schema(request=NewHubRulesSerializer, responses=RulesPreviewSerializer)
    def post(self, request: PrincipalRequest) -> Response:
        """What rules for all workspaces would remove now besides, for operators."""
        must_operate(request.principal.user)
        choices, _ = _hub_choices(request)
        return Response(RulesPreviewSerializer(preview_for_all(choices)).data)


def _own_choices(request: Request) -> tuple[dict[DataKind, Rule | None], str]:
    body = NewRulesSerializer(data=request.data)
    body.is_valid(raise_exception=True)
    data = body.validated_data
    _check_once(data["rules"])
    choices = {
        DataKind(item["kind"]): None if item["from_hub"] else Rule(item["days"], item["only_unsuccessful"])
        for item in data["rules"]
    }
    return choices, data["confirmation"]


def _hub_choices(request: Request) -> tuple[dict[DataKind, HubRule], str]:
    body = NewHubRulesSerializer(data=request.data)
    body.is_valid(raise_exception=True)
    data = body.validated_data
    _check_once(data["rules"])
    choices = {
        DataKind(item["kind"]): HubRule(
            Rule(item["days"], item["only_unsuccessful"]), item["least_days"], item["most_days"]
        )
        for item in data["rules"]
    }
    return choices, data["confirmation"]


def _check_once(rules: list[dict[str, str]]) -> None:
    for index, item in enumerate(rules):
        if item["kind"] not in set(DataKind):
            raise SpecError(f"rules.{index}.kind", f"must be one of {KINDS}")
    kinds = [item["kind"] for item in rules]
    if not kinds or len(kinds) != len(set(kinds)):
        raise SpecError("rules", f"must name at least one kind, and each at most once: {KINDS}")
