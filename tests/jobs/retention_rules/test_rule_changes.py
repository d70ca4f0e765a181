"""How rules are set: the confirmation of a preview, the grace of what removes more, the hub's limits, and who
is told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core import signing
from django.utils import timezone

from jobs.models import DataRemoval, RetentionRule
from jobs.retention_rules import confirmations, previews, removal_round, rule_changes
from jobs.retention_rules.rule_changes import GRACE
from jobs.retention_rules.rule_states import rule_states
from jobs.retention_rules.rules import KEEP, HubRule, Rule, holding_rules, rules_in_force
from jobs.states import DataKind
from tests.jobs.retention_rules.rules_of import after_grace, old_run, set_rule
from tests.people import (
    make_contributor,
    make_operator,
    make_person,
    make_workspace,
)
from trainhub_launch.errors import SpecError
from workspaces.access import Principal
from workspaces.models import AuditEvent, Channel, Delivery, OutgoingMail, User
from workspaces.notifications.events import RETENTION_PLANNED
from workspaces.states import MailKind, Role

pytestmark = pytest.mark.usefixtures("valkey")
LOGS = DataKind.LOGS


def set_hub(who: User, **kinds: HubRule) -> None:
    choices = {DataKind(kind): hub for kind, hub in kinds.items()}
    rule_changes.set_for_all(choices, who, previews.preview_for_all(choices).confirmation)


class TestStricter:
    @pytest.mark.parametrize(
        ("new", "old", "is_stricter"),
        [
            (Rule(30), KEEP, True),
            (KEEP, Rule(30), False),
            (Rule(29), Rule(30), True),
            (Rule(31), Rule(30), False),
            (Rule(30), Rule(30, only_unsuccessful=True), True),
            (Rule(30, only_unsuccessful=True), Rule(30), False),
            (Rule(40), Rule(30, only_unsuccessful=True), True),
            (Rule(20, only_unsuccessful=True), Rule(30), True),
            (Rule(30), Rule(30), False),
        ],
    )
    def test_is_what_can_remove_something_that_was_kept(
        self, new: Rule, old: Rule, is_stricter: bool
    ) -> None:
        assert new.removes_more_than(old) == is_stricter


class TestConfirmation:
    def test_nothing_is_set_without_that_of_the_preview(self, who: Principal) -> None:
        with pytest.raises(SpecError, match="ask for their preview first") as error:
            rule_changes.set_own(who.workspace, {LOGS: Rule(30)}, who.user)
        assert error.value.field == "confirmation"
        assert not RetentionRule.objects.exists()

    def test_nor_with_that_of_other_rules_or_another_workspace(self, who: Principal) -> None:
        other = previews.preview_own(who.workspace, {LOGS: Rule(31)}).confirmation
        elsewhere = previews.preview_own(make_workspace("other"), {LOGS: Rule(30)}).confirmation
        for confirmation in (other, elsewhere, "x", signing.dumps("x")):
            with pytest.raises(SpecError, match="confirmation"):
                rule_changes.set_own(who.workspace, {LOGS: Rule(30)}, who.user, confirmation)

    def test_nor_an_hour_later(self, who: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
        confirmation = previews.preview_own(who.workspace, {LOGS: Rule(30)}).confirmation
        monkeypatch.setattr(confirmations, "MAX_AGE_S", -1)
        with pytest.raises(SpecError, match="older than an hour"):
            rule_changes.set_own(who.workspace, {LOGS: Rule(30)}, who.user, confirmation)

    def test_what_removes_less_needs_none(self, who: Principal) -> None:
        set_rule(who.workspace, who.user, Rule(30), LOGS)
        rule_changes.set_own(who.workspace, {LOGS: KEEP}, who.user)
        assert rule_states(who.workspace)[0].waiting is None


class TestGrace:
    def test_a_stricter_rule_waits_a_day_and_then_holds(self, who: Principal) -> None:
        old_run(who)
        set_rule(who.workspace, who.user, Rule(30), LOGS)
        state = rule_states(who.workspace)[0]
        assert (state.in_force, state.waiting) == (KEEP, Rule(30))
        assert state.begins_at is not None
        assert timedelta(hours=23) < state.begins_at - timezone.now() <= GRACE
        assert removal_round.remove_due(timezone.now() + timedelta(hours=23)) == 0
        assert removal_round.remove_due(after_grace()) == 1
        assert rule_states(who.workspace)[0].in_force == Rule(30)

    def test_meanwhile_the_earlier_rule_goes_on(self, who: Principal) -> None:
        set_rule(who.workspace, who.user, Rule(60), LOGS)
        rule_changes.apply_rules(who.workspace, after_grace())
        older, old = old_run(who, 70), old_run(who, 40)
        set_rule(who.workspace, who.user, Rule(30), LOGS)
        assert removal_round.remove_due() == 1
        assert DataRemoval.objects.get().run_id == older.pk != old.pk

    def test_it_is_not_put_off_by_setting_it_again(self, who: Principal) -> None:
        set_rule(who.workspace, who.user, Rule(30), LOGS)
        before = rule_states(who.workspace)[0].begins_at
        set_rule(who.workspace, who.user, Rule(30), LOGS)
        assert rule_states(who.workspace)[0].begins_at == before

    def test_a_still_stricter_one_begins_anew(self, who: Principal) -> None:
        set_rule(who.workspace, who.user, Rule(30), LOGS)
        before = rule_states(who.workspace)[0].begins_at
        set_rule(who.workspace, who.user, Rule(20), LOGS)
        after = rule_states(who.workspace)[0].begins_at
        assert before is not None
        assert after is not None
        assert after > before

    def test_it_can_be_canceled(self, who: Principal) -> None:
        old_run(who)
        set_rule(who.workspace, who.user, Rule(60), LOGS)
        rule_changes.apply_rules(who.workspace, after_grace())
        set_rule(who.workspace, who.user, Rule(30), LOGS)
        rule_changes.cancel_waiting(who.workspace, who.user)
        assert removal_round.remove_due(after_grace()) == 0
        state = rule_states(who.workspace)[0]
        assert (state.own, state.in_force, state.waiting) == (Rule(60), Rule(60), None)
        with pytest.raises(SpecError, match="nothing to cancel"):
            rule_changes.cancel_waiting(who.workspace, who.user)


class TestLimitsOfTheHub:
    def test_its_rule_holds_for_workspaces_without_one(self, who: Principal) -> None:
        set_hub(make_operator(), logs=HubRule(Rule(90)))
        assert rule_states(who.workspace)[0].waiting == Rule(90)
        set_rule(who.workspace, who.user, KEEP, LOGS)
        assert holding_rules(who.workspace)[LOGS] == KEEP
        set_rule(who.workspace, who.user, None, LOGS)
        assert holding_rules(who.workspace)[LOGS] == Rule(90)

    @pytest.mark.parametrize(
        ("hub", "rule", "field", "message"),
        [
            (HubRule(least_days=10), Rule(9), "logs.days", "at least 10"),
            (HubRule(most_days=90), Rule(91), "logs.days", "at most 90"),
            (HubRule(most_days=90), Rule(30, True), "logs.only_unsuccessful", "nothing to be kept longer"),
            (HubRule(), Rule(0), "logs.days", "from 1 to"),
            (HubRule(), Rule(36_501), "logs.days", "from 1 to"),
        ],
    )
    def test_an_owner_is_told_what_is_allowed(
        self, who: Principal, hub: HubRule, rule: Rule, field: str, message: str
    ) -> None:
        if hub.most_days:
            hub = HubRule(Rule(hub.most_days), hub.least_days, hub.most_days)
        set_hub(make_operator(), logs=hub)
        with pytest.raises(SpecError, match=message) as error:
            previews.preview_own(who.workspace, {LOGS: rule})
        assert error.value.field == field

    @pytest.mark.parametrize(
        ("hub", "field"),
        [
            (HubRule(Rule(5), least_days=10), "logs.days"),
            (HubRule(KEEP, most_days=10), "logs.days"),
            (HubRule(least_days=10, most_days=9), "logs.least_days"),
            (HubRule(least_days=0), "logs.least_days"),
        ],
    )
    def test_an_operator_is_told_what_does_not_fit(self, who: Principal, hub: HubRule, field: str) -> None:
        with pytest.raises(SpecError) as error:
            previews.preview_for_all({LOGS: hub})
        assert error.value.field == field

    def test_a_new_limit_holds_for_rules_that_are_there(self, who: Principal) -> None:
        set_rule(who.workspace, who.user, Rule(100), LOGS)
        rule_changes.apply_rules(who.workspace, after_grace())
        set_hub(make_operator(), logs=HubRule(Rule(60), most_days=60))
        assert rule_states(who.workspace)[0].waiting == Rule(60)
        with pytest.raises(SpecError, match="limit that operators have set"):
            rule_changes.cancel_waiting(who.workspace, who.user)
        set_hub(make_operator(), logs=HubRule(least_days=200))
        assert rules_in_force(who.workspace)[LOGS] == Rule(200)

    def test_the_preview_for_all_names_the_workspaces(self, who: Principal) -> None:
        old_run(who)
        preview = previews.preview_for_all({LOGS: HubRule(Rule(30))})
        assert [(kind.workspace.slug, kind.count) for kind in preview.kinds] == [("default", 1)]
        assert preview.begins_at is not None


class TestWhoIsTold:
    def test_owners_by_mail_and_channels_that_want_it(self, who: Principal, settings: Any) -> None:
        settings.EMAIL_URL = "smtp://localhost"
        User.objects.filter(pk=who.user.pk).update(email="olivia@example.org")
        make_contributor()
        other = make_person("otto", Role.OWNER)
        assert other.email == ""
        channel = Channel.objects.create(
            workspace=who.workspace,
            kind="webhook",
            name="ours",
            target="https://example.org/",
            events=[RETENTION_PLANNED],
        )
        set_rule(who.workspace, who.user, Rule(30), LOGS, DataKind.OUTPUTS)
        mail = OutgoingMail.objects.get()
        assert (mail.kind, mail.recipient) == (MailKind.RETENTION, "olivia@example.org")
        assert "logs are removed 30 days after the end of a run; outputs are removed" in mail.detail
        delivery = Delivery.objects.get()
        assert delivery.channel == channel
        assert delivery.body["text"].startswith("[retention] From ")
        assert delivery.body["url"].endswith("/retention/")

    def test_nobody_of_what_removes_less(self, who: Principal, settings: Any) -> None:
        settings.EMAIL_URL = "smtp://localhost"
        set_rule(who.workspace, who.user, KEEP)
        assert not OutgoingMail.objects.exists()

    def test_the_audit_trail_has_each_change(self, who: Principal) -> None:
        set_rule(who.workspace, who.user, Rule(30), LOGS)
        rule_changes.cancel_waiting(who.workspace, who.user)
        changed, canceled = AuditEvent.objects.filter(verb__startswith="retention.").order_by("pk")
        assert (changed.actor, changed.subject) == ("olivia", "workspace default")
        assert changed.detail == {"logs": "removed 30 days after the end of a run"}
        assert (canceled.verb, canceled.detail) == ("retention.canceled", {"logs": "kept for ever"})
