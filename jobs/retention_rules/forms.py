"""The forms of the pages of retention rules: one for each kind of data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from jobs.retention_rules.rule_states import RuleState
from jobs.retention_rules.rules import HubRule, Rule
from jobs.states import DataKind
from trainhub_launch.errors import SpecError

FROM_HUB, KEEP_ALL, REMOVE = "hub", "keep", "remove"
_KEEP_OR_REMOVE = [(KEEP_ALL, "Keep for ever"), (REMOVE, "Remove after")]


class _KindForm(forms.Form):
    mode = forms.ChoiceField(choices=_KEEP_OR_REMOVE, label="What happens")
    days = forms.IntegerField(required=False, label="Days after the end of a run")
    only_unsuccessful = forms.BooleanField(required=False, label="only of failed and canceled runs")

    def __init__(
        self, kind: DataKind, data: Mapping[str, object] | None, initial: Mapping[str, object]
    ) -> None:
        super().__init__(data, initial=dict(initial), prefix=kind.value, label_suffix="")
        self.kind = kind
        for field in self.fields.values():
            if not isinstance(field, forms.BooleanField):
                field.widget.attrs["class"] = "th-input"
            field.widget.attrs["aria-label"] = f"{kind.label}: {field.label}"

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if data.get("mode") == REMOVE and data.get("days") is None and "days" not in self.errors:
            self.add_error("days", "Enter a number of days.")
        return data

    @property
    def rule(self) -> Rule:
        data = self.cleaned_data
        return Rule(data["days"], data["only_unsuccessful"]) if data["mode"] == REMOVE else Rule()


class OwnRuleForm(_KindForm):
    """The rule of a workspace."""

    state: RuleState

    def __init__(self, state: RuleState, data: Mapping[str, object] | None) -> None:
        own = state.own
        initial: dict[str, object] = {"mode": FROM_HUB} if own is None else _initial(own)
        super().__init__(state.kind, data, initial)
        self.state = state
        self.fields["mode"].choices = [  # type: ignore[attr-defined]
            (FROM_HUB, f"As the hub: {state.hub.limit(None).words}"),
            *_KEEP_OR_REMOVE,
        ]

    @property
    def choice(self) -> Rule | None:
        return None if self.cleaned_data["mode"] == FROM_HUB else self.rule


class HubRuleForm(_KindForm):
    """The rule for all workspaces."""

    least_days = forms.IntegerField(required=False, label="Least days")
    most_days = forms.IntegerField(required=False, label="Most days")

    def __init__(self, kind: DataKind, hub: HubRule, data: Mapping[str, object] | None) -> None:
        limits = {"least_days": hub.least_days, "most_days": hub.most_days}
        super().__init__(kind, data, {**_initial(hub.rule), **limits})

    @property
    def choice(self) -> HubRule:
        data = self.cleaned_data
        return HubRule(self.rule, data["least_days"], data["most_days"])


def _initial(rule: Rule) -> dict[str, object]:
    return {
        "mode": KEEP_ALL if rule.days is None else REMOVE,
        "days": rule.days,
        "only_unsuccessful": rule.only_unsuccessful,
    }


def add_problem(rule_forms: Iterable[OwnRuleForm] | Iterable[HubRuleForm], error: SpecError) -> str:
    """Shows an error of `rule_changes` at its field; returns it if it belongs to none."""
    kind, _, name = error.field.partition(".")
    for form in rule_forms:
        if form.kind == kind and name in form.fields:
            form.add_error(name, f"{error.message[:1].upper()}{error.message[1:]}.")
            return ""
    return f"{error.field}: {error.message}"
