"""How a round goes: batches, errors, backups, and what is recorded."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.logs import log_removal
from jobs.models import (
    DataRemoval,
    Experiment,
    Run,
)
from jobs.quotas import disk_use
from jobs.retention import removals
from jobs.retention_rules import contents, removal_round
from jobs.retention_rules.rules import Rule
from jobs.states import DataKind
from tests.jobs.retention_rules.rules_of import LOG_TEXT, after_grace, old_run, remove_all, removed, set_rule
from workspaces.access import Principal
from workspaces.models import AuditEvent
from workspaces.stored_files import deletions

pytestmark = pytest.mark.usefixtures("valkey")


class TestRound:
    def test_each_batch_is_in_the_audit_trail(self, who: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
        runs = [old_run(who) for _ in range(3)]
        monkeypatch.setattr(removal_round, "BATCH_RUNS", 2)
        remove_all(who, Rule(30), DataKind.LOGS)
        events = AuditEvent.objects.filter(verb="retention.removed").order_by("pk")
        assert [event.subject for event in events] == [
            "the logs of 2 runs, numbers 1 to 2",
            "the logs of 1 run, numbers 3 to 3",
        ]
        assert events[0].detail == {
            "kind": "logs",
            "bytes": 2 * len(LOG_TEXT),
            "runs": [runs[0].pk, runs[1].pk],
        }
        assert (events[0].actor, events[0].workspace) == ("hub", who.workspace)

    def test_an_error_in_one_batch_leaves_the_others_and_is_tried_again(
        self, who: Principal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, second = old_run(who, 50), old_run(who, 40)
        monkeypatch.setattr(removal_round, "BATCH_RUNS", 1)
        remove_logs = log_removal.remove_logs

        def fail_once(run: str) -> None:
            if run == first.pk:
                raise PermissionError(run)
            remove_logs(run)

        monkeypatch.setitem(contents.FILES, DataKind.LOGS, [fail_once])
        assert remove_all(who, Rule(30), DataKind.LOGS) == 1
        assert (removed(first), removed(second)) == (set(), {"logs"})
        monkeypatch.setitem(contents.FILES, DataKind.LOGS, [remove_logs])
        assert removal_round.remove_due(after_grace()) == 1
        assert removed(first) == {"logs"}

    def test_waits_for_a_backup(self, who: Principal) -> None:
        old_run(who)
        set_rule(who.workspace, who.user, Rule(30))
        with deletions.held(5):
            assert removal_round.remove_due(after_grace()) == 0
        assert removal_round.remove_due(after_grace()) == 4

    def test_goes_on_later_when_its_time_is_over(self, who: Principal) -> None:
        old_run(who)
        set_rule(who.workspace, who.user, Rule(30))
        assert removal_round.remove_due(after_grace(), max_s=0) == 0
        assert removal_round.remove_due(after_grace()) == 4

    def test_removed_logs_count_against_no_quota(self, who: Principal) -> None:
        old_run(who)
        disk_use.measure_disk(who.workspace)
        before = disk_use.disk_bytes(who.workspace)[who.workspace.pk, None]
        remove_all(who, Rule(30), DataKind.LOGS)
        disk_use.measure_disk(who.workspace)
        assert before - disk_use.disk_bytes(who.workspace)[who.workspace.pk, None] == len(LOG_TEXT)

    def test_a_purge_takes_the_record_along(self, who: Principal) -> None:
        run = old_run(who)
        remove_all(who)
        assert removals.removal_sentence(run, DataKind.LOGS).startswith(
            "The logs of this run were removed on "
        )
        Run.objects.filter(pk=run.pk).delete()
        assert not DataRemoval.objects.exists()
        assert Experiment.objects.exists()
        assert after_grace() > timezone.now() + timedelta(hours=24)
