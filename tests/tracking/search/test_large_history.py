"""What keeps searches of many runs fast on PostgreSQL: bounds of an order, and plans that use an index. Run
there by tests/platform/test_postgresql.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test import Client
from django.test.utils import CaptureQueriesContext

from bench.support.run_filler import analyze_tables, fill
from jobs.models import Experiment, Run, RunTag
from jobs.reading.experiment_counts import counts_of_experiments
from tests.people import client_of, make_owner, make_workspace
from tracking.search import find_runs, run_bounds, value_bounds
from workspaces.models import Workspace

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]
RUNS, EXPERIMENTS = 2_000, 8
ORDERS = (
    "metrics.acc DESC",
    "metrics.acc",
    "min(metrics.loss)",
    "params.lr",
    "params.opt DESC",
    "params.note",
    "tags.team",
    "tags.week DESC",
    "duration",
    "duration DESC",
    "",
)


@pytest.fixture
def many() -> Workspace:
    workspace = make_workspace()
    fill(RUNS, workspace, experiments=EXPERIMENTS, user=make_owner())
    analyze_tables()
    return workspace


def plans(act: Callable[[], object], part: str = "") -> str:
    """The plans of all queries of an action that have `part` in them."""
    with CaptureQueriesContext(connection) as queries:
        act()
    statements = [query["sql"] for query in queries]
    selects = [sql for sql in statements if sql.startswith("SELECT") and part in sql]
    lines = []
    with connection.cursor() as cursor:
        for sql in selects:
            cursor.execute(f"EXPLAIN {sql}")
            lines += [line for (line,) in cursor.fetchall()]
    return "\n".join(lines)


def names(runs: QuerySet[Run] | list[Run]) -> list[int]:
    return [run.number for run in runs]


class TestBounds:
    @pytest.mark.parametrize("text", ["", "metrics.acc > 0.5 AND params.opt = 'adam'", "params.depth > 48"])
    def test_find_the_same_runs_in_the_same_order(
        self, many: Workspace, monkeypatch: pytest.MonkeyPatch, text: str
    ) -> None:
        Run.objects.filter(number__lt=RUNS // 2, number__gt=RUNS // 3).update(archived_at="2026-01-01T00:00Z")
        Run.objects.filter(number__in=(RUNS // 4, RUNS - 3)).update(finished_at=None, state="Running")
        searches = [
            partial(find_runs, many, text=text, order_by=[order] if order else [], limit=20, skip=skip)
            for order in ORDERS
            for skip in (0, 40)
        ]
        bounded = [names(search().runs) for search in searches]
        monkeypatch.setattr(value_bounds, "FACTORS", ())
        monkeypatch.setattr(run_bounds, "NEWEST_FACTORS", ())
        monkeypatch.setattr(run_bounds, "DURATION_FACTORS", ())
        assert bounded == [names(search().runs) for search in searches]
        assert {len(found) for found in bounded} == {20}

    def test_spare_the_database_the_values_of_all_runs(self, many: Workspace) -> None:
        with CaptureQueriesContext(connection) as queries:
            find_runs(many, order_by=["metrics.acc DESC"], limit=20)
        (bounded,) = [query["sql"] for query in queries if '"last_value" >= ' in query["sql"]]
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {bounded}")
            (plan,) = cursor.fetchone()[0]
        assert most_rows(plan["Plan"]) < RUNS // 10

    def test_of_equal_values_are_one_value(self, many: Workspace) -> None:
        order = value_bounds.ValueOrder(
            model=RunTag, column="short", key="v", descending=False, experiments=all_experiments()
        )
        assert list(order.bounds(20)) == [{"short__exact": "1"}] * len(value_bounds.FACTORS)

    def test_are_none_for_few_values(self, many: Workspace) -> None:
        order = value_bounds.ValueOrder(
            model=RunTag, column="short", key="nothing", descending=False, experiments=all_experiments()
        )
        assert list(order.bounds(20)) == []


class TestPlans:
    def test_a_part_of_a_name_is_found_by_its_index(self, many: Workspace) -> None:
        run = Run.objects.filter(number=RUNS // 2)
        run.update(display_name="quite-another-name")
        analyze_tables()
        by_name = Run.objects.for_workspace(many).matching(many, text="ANOTHER-na")
        assert names(by_name) == [RUNS // 2]
        assert "run_name_parts" in plans(lambda: list(by_name.all()))
        for text in ("run_name LIKE '%another-na%'", "run_name ILIKE '%ANOTHER-na%'"):
            assert "run_name_parts" in plans(lambda: find_runs(many, text=text, limit=20)), text  # noqa: B023

    def test_a_short_text_is_looked_for_in_the_newest_runs(
        self, many: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("jobs.querysets.SHORT_TEXT_RUNS", 100)
        Run.objects.filter(number__in=(7, RUNS - 7)).update(display_name="zq")
        assert names(Run.objects.all().matching(many, text="zq")) == [RUNS - 7]
        assert 7 in names(Run.objects.all().matching(many, text="7")), "its number"

    def test_the_home_page_reads_what_ended_last(self, many: Workspace) -> None:
        client = client_of(make_owner())
        plan = plans(lambda: answered(client, "/"), part='ORDER BY "jobs_run"."finished_at" DESC')
        assert "run_ended" in plan
        assert "Sort" not in plan

    def test_orders_by_name_and_by_duration_read_an_index(self, many: Workspace) -> None:
        for order in ("run_name", "run_name DESC"):
            assert "run_by_name" in plans(partial(find_runs, many, order_by=[order], limit=20)), order
        assert "run_lasted" in plans(partial(find_runs, many, order_by=["duration DESC"], limit=20))

    def test_experiments_are_counted_from_an_index(self, many: Workspace) -> None:
        ids = all_experiments()
        # Rows of this transaction are not yet known to be visible to all, so that an index alone costs as
        # much as others: whether it has all that the query needs is what counts.
        ways = ("seqscan", "indexscan", "bitmapscan")
        with connection.cursor() as cursor:
            for way in ways:
                cursor.execute(f"SET LOCAL enable_{way} = off")
            plan = plans(lambda: counts_of_experiments(ids))
            # The checks of foreign keys at the end of the test need them.
            for way in ways:
                cursor.execute(f"SET LOCAL enable_{way} = on")
        assert "run_state_counts" in plan

    def test_values_of_the_spec_are_found_by_an_index(self, many: Workspace) -> None:
        for text, index in (
            ("cluster = 'nowhere'", "run_of_cluster"),
            ("environment = 'nothing'", "run_of_environment"),
        ):
            assert index in plans(lambda: find_runs(many, text=text, limit=20)), text  # noqa: B023


def answered(client: Client, path: str) -> None:
    assert client.get(path).status_code == 200


def all_experiments() -> list[int]:
    return list(Experiment.objects.values_list("pk", flat=True))


def most_rows(node: dict[str, object]) -> float:
    """The most rows that a part of the plan has given, over all its loops."""
    rows = float(node["Actual Rows"]) * float(node["Actual Loops"])  # type: ignore[arg-type]
    return max([rows, *(most_rows(part) for part in node.get("Plans", []))])  # type: ignore[attr-defined]
