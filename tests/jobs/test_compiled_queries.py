"""Compiled queries and updates do what Django's own do, and refuse what would need other SQL."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import FieldDoesNotExist
from django.db import IntegrityError, connection, connections, transaction
from django.db.models import F, QuerySet
from django.db.models.signals import post_init
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.models import AttemptNode, Run, RunEvent
from jobs.states import Reason, RunState
from tests.jobs.builders import Played, launched, node
from workspaces.access import Principal
from workspaces.database.compiled_queries import compiled
from workspaces.database.compiled_writes import IS_NULL, insert_row, update_rows

pytestmark = pytest.mark.django_db


def _parts(node_id: int) -> QuerySet[AttemptNode]:
    parts = AttemptNode.objects.filter(node_id=node_id, settled_at=None).select_related("attempt__run")
    return parts.only("phase", "attempt__run__state").annotate(
        grace_s=F("attempt__run__spec__limits__grace_s")
    )


def _runs_before(at: Any, name: str) -> QuerySet[Run, tuple[Any, ...]]:
    runs = Run.objects.filter(created_at__lt=at, display_name=name, attempt__lt=7)
    return runs.values_list("number", "spec", "created_at")


def _locked(run_id: str) -> QuerySet[Run]:
    return Run.objects.select_for_update().filter(pk=run_id)


def test_instances_are_those_of_the_queryset(who: Principal) -> None:
    alpha, beta = Played(node("alpha")), Played(node("beta"))
    run = launched(who)
    parts = compiled(_parts)
    for played in (alpha, beta, alpha):
        rows, plain = parts(played.node.pk), list(_parts(played.node.pk))
        assert rows == plain
        for row, other in zip(rows, plain, strict=True):
            assert row.get_deferred_fields() == other.get_deferred_fields()
            assert row.attempt.run == run
            assert row.attempt.run.state == other.attempt.run.state
            assert row.grace_s == other.grace_s == 10  # type: ignore[attr-defined]
    assert len(parts(alpha.node.pk)) + len(parts(beta.node.pk)) == 1


def test_whoever_listens_to_the_making_of_instances_is_called(who: Principal) -> None:
    node()
    run, made = launched(who), list[Any]()

    def note(instance: Any, **_: Any) -> None:
        made.append(instance)

    post_init.connect(note, sender=Run)
    try:
        rows = compiled(_locked)(run.pk)
    finally:
        post_init.disconnect(note, sender=Run)
    assert [id(row) for row in rows] == [id(row) for row in made]


def _names_by_age() -> QuerySet[Run, tuple[str]]:
    return Run.objects.order_by("created_at").values_list("display_name").distinct()


def test_columns_of_the_order_are_left_out(who: Principal) -> None:
    node()
    launched(who), launched(who)
    assert compiled(_names_by_age)() == list(_names_by_age())


def test_tuples_are_converted_and_times_are_compared(who: Principal) -> None:
    node()
    run, runs = launched(who), compiled(_runs_before)
    later = timezone.now() + timedelta(hours=1)
    assert runs(later, run.display_name) == list(_runs_before(later, run.display_name))
    assert runs(later, run.display_name) == [(run.number, run.spec, run.created_at)]
    assert runs(run.created_at, run.display_name) == []
    assert runs(later, "another") == []


def test_every_call_asks_the_database_once(who: Principal) -> None:
    node()
    run, lock = launched(who), compiled(_locked)
    with CaptureQueriesContext(connection) as queries, transaction.atomic():
        first = lock(run.pk)
        Run.objects.filter(pk=run.pk).update(display_name="changed")
        second = lock(run.pk)
    assert (first[0].display_name, second[0].display_name) == (run.display_name, "changed")
    assert sum("SELECT" in query["sql"] for query in queries) == 2


@pytest.mark.django_db(transaction=True)
def test_threads_use_connections_of_their_own(who: Principal) -> None:
    node()
    run, runs = launched(who), compiled(_runs_before)
    later, found = timezone.now() + timedelta(hours=1), list[Any]()
    runs(later, run.display_name)

    def ask() -> None:
        try:
            found.extend(runs(later, run.display_name))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [number for number, *_ in found] == [run.number] * 4


@pytest.mark.parametrize("argument", [None, True, 1.5, ["a"]])
def test_values_for_which_the_sql_would_differ_are_refused(argument: Any) -> None:
    with pytest.raises(TypeError, match="_locked takes numbers, texts and times"):
        compiled(_locked)(argument)


def test_an_argument_that_is_not_passed_on_is_refused() -> None:
    def states(state: str, number: int) -> QuerySet[Run]:
        return Run.objects.filter(state="Queued" if state else "Running", number=number)

    with pytest.raises(TypeError, match="states does not pass its argument 0 on"):
        compiled(states)("Queued", 1)


class TestInserts:
    def test_adds_a_row_with_defaults(self, who: Principal) -> None:
        node()
        run, before = launched(who), timezone.now()
        insert_row(RunEvent, run_id=run.pk, to_state=RunState.FAILED, message="50 % of %s")
        added = RunEvent.objects.last()
        assert added is not None
        assert (added.run, added.to_state, added.message) == (run, "Failed", "50 % of %s")
        assert (added.from_state, added.reason, added.actor, added.attempt) == ("", "", "", 0)
        assert added.at >= before

    def test_names_that_are_no_columns_are_refused(self) -> None:
        with pytest.raises(FieldDoesNotExist, match="RunEvent has no column of the attribute 'run'"):
            insert_row(RunEvent, run=1)


class TestUpdates:
    def test_sets_every_kind_of_value_in_the_rows_that_match(self, who: Principal) -> None:
        node()
        first, other = launched(who), launched(who)
        when = timezone.now() - timedelta(hours=3)
        values = {
            "facts": {"nodes": ["a%s", None]},
            "reason": Reason.NODE_LOST,
            "started_at": when,
            "priority": 7,
        }
        where = {"pk": first.pk, "state": first.state}
        assert update_rows(Run, where, state=RunState.RUNNING, idempotency_key=None, **values) == 1
        changed = Run.objects.get(pk=first.pk)
        assert {name: getattr(changed, name) for name in values} == values
        assert (changed.state, changed.display_name, changed.spec) == (
            "Running",
            first.display_name,
            first.spec,
        )
        assert Run.objects.get(pk=other.pk).state == other.state

    def test_no_row_that_matches_is_no_change(self, who: Principal) -> None:
        node()
        run = launched(who)
        assert update_rows(Run, {"pk": run.pk, "attempt": run.attempt + 1}, state=RunState.FAILED) == 0
        assert Run.objects.get(pk=run.pk).state == run.state

    def test_several_rows_are_counted(self, who: Principal) -> None:
        node()
        launched(who), launched(who)
        assert update_rows(Run, {"workspace_id": who.workspace.pk}, priority=9) == 2
        assert set(Run.objects.values_list("priority", flat=True)) == {9}

    def test_rows_with_one_of_several_values_or_none_at_all_are_found(self, who: Principal) -> None:
        node()
        first, second, third = launched(who), launched(who), launched(who)
        Run.objects.filter(pk=second.pk).update(started_at=timezone.now())
        where = {"pk": (first.pk, second.pk), "started_at": IS_NULL}
        Run.objects.filter(pk__in=(first.pk, third.pk)).update(started_at=None)
        assert update_rows(Run, where, priority=4) == 1
        assert list(Run.objects.filter(priority=4)) == [first]
        assert update_rows(Run, {"pk": (first.pk, third.pk)}, priority=5) == 2

    def test_an_error_leaves_nothing_of_its_transaction(self, who: Principal) -> None:
        node()
        run, other = launched(who), launched(who)
        with transaction.atomic():
            with pytest.raises(IntegrityError):
                update_rows(Run, {"pk": run.pk}, number=other.number)
            assert connection.needs_rollback
            transaction.set_rollback(True)

    def test_names_that_are_no_columns_are_refused(self) -> None:
        with pytest.raises(FieldDoesNotExist, match="Run has no column of the attribute 'workspace'"):
            update_rows(Run, {"pk": "x"}, workspace=1)

    @pytest.mark.parametrize("nothing", [None, ()])
    def test_none_is_nothing_to_compare_with(self, nothing: Any) -> None:
        with pytest.raises(TypeError, match="not with None"):
            update_rows(Run, {"pk": nothing}, number=1)
