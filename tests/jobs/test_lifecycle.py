from __future__ import annotations

import asyncio
import json
import threading
from datetime import UTC, datetime

import pytest
from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.db import connection, transaction

from clusters.models import Lease
from jobs import lifecycle
from jobs.models import Attempt, Run, RunEvent
from jobs.states import Reason, RunState
from live.publish import flush, texts_of
from live.topics import run_topic
from tests.jobs.builders import Played, launched, node, queued
from tests.people import make_contributor, principal_of
from workspaces.access import Principal


class TestAdvance:
    def test_journals_from_where_to_where_why_and_who(self, who: Principal) -> None:
        run = queued(who)
        assert lifecycle.advance(
            run.pk, RunState.CANCELED, Reason.CANCELED, facts={"who": "carl"}, actor="carl"
        )
        event = run.events.last()
        assert event is not None
        assert (event.from_state, event.to_state, event.reason) == ("Queued", "Canceled", "canceled")
        assert (event.message, event.actor) == ("Canceled by carl.", "carl")

    def test_a_refused_move_leaves_no_trace(self, who: Principal) -> None:
        run = queued(who)
        assert not lifecycle.advance(run.pk, RunState.RUNNING)
        assert run.events.count() == 1

    def test_a_sentence_that_lacks_a_fact_is_found_before_anything_is_written(self, who: Principal) -> None:
        run = queued(who)
        with pytest.raises(KeyError):
            lifecycle.advance(run.pk, RunState.FAILED, Reason.EXITED)
        run.refresh_from_db()
        assert run.state == RunState.QUEUED

    def test_an_earlier_attempt_does_not_move_a_later_one(self, who: Principal) -> None:
        node()
        run = launched(who)
        Run.objects.filter(pk=run.pk).update(attempt=2)
        assert not lifecycle.advance(
            run.pk, RunState.FAILED, Reason.ORPHANED, facts={"node": "alpha"}, attempt=1
        )

    def test_sets_when_the_run_first_ran_and_when_it_ended(self, who: Principal) -> None:
        node()
        run = launched(who)
        first = datetime(2030, 1, 1, tzinfo=UTC)
        for state in (RunState.PREPARING, RunState.RUNNING, RunState.FINALIZING):
            lifecycle.advance(run.pk, state, at=first)
        lifecycle.advance(run.pk, RunState.COMPLETED, Reason.COMPLETED)
        run.refresh_from_db()
        assert run.started_at == first
        assert run.finished_at == run.state_since

    def test_the_end_lets_go_leases_and_the_token(self, who: Principal) -> None:
        node()
        run = launched(who)
        assert Attempt.objects.get().token_digest
        lifecycle.advance(
            run.pk, RunState.FAILED, Reason.NEVER_STARTED, facts={"node": "alpha", "seconds": 60}
        )
        assert not Lease.objects.filter(released_at=None).exists()
        assert not Attempt.objects.get().token_digest

    def test_gpus_stay_reserved_where_processes_may_still_run(self, who: Principal) -> None:
        alpha = Played(node())
        run = launched(who)
        alpha.claim(run)
        lifecycle.advance(run.pk, RunState.FAILED, Reason.NODE_LOST, facts={"node": "alpha", "seconds": 60})
        assert Lease.objects.filter(released_at=None).count() == 1


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_only_one_of_two_workers_wins(self, valkey: str) -> None:
        run = queued(principal_of(make_contributor()))
        start, won = threading.Barrier(2), []

        def move(to: RunState, reason: Reason, facts: dict[str, str]) -> None:
            start.wait()
            try:
                won.append(lifecycle.advance(run.pk, to, reason, facts=facts))
            finally:
                connection.close()

        threads = [
            threading.Thread(target=move, args=(RunState.CANCELED, Reason.CANCELED, {"who": "carl"})),
            threading.Thread(target=move, args=(RunState.FAILED, Reason.DOES_NOT_FIT, {"detail": "no"})),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(won) == [False, True]
        assert RunEvent.objects.filter(run=run).count() == 2

    async def test_a_move_is_told_after_its_commit_and_never_when_rolled_back(self, valkey: str) -> None:
        run = await sync_to_async(_queued)()
        layer = get_channel_layer()
        channel = await layer.new_channel()
        await layer.group_add(run_topic(run.pk), channel)
        await sync_to_async(_rolled_back_then_canceled)(run)
        texts: list[str] = []
        while len(texts) < 2:
            # Several may come together.
            texts += texts_of(await asyncio.wait_for(layer.receive(channel), 10))
        messages = [json.loads(text) for text in texts]
        assert [message["type"] for message in messages] == ["event.added", "run.changed"]
        assert messages[1]["state"] == "Canceled"


def _queued() -> Run:
    run = queued(principal_of(make_contributor()))
    assert flush(10)
    return run


def _rolled_back_then_canceled(run: Run) -> None:
    with transaction.atomic():
        lifecycle.advance(run.pk, RunState.FAILED, Reason.DOES_NOT_FIT, facts={"detail": "no"})
        transaction.set_rollback(True)
    lifecycle.advance(run.pk, RunState.CANCELED, Reason.CANCELED, facts={"who": "carl"})
