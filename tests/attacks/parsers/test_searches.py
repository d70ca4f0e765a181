"""Filters, orders and patterns of searches: bounded time, whatever the texts that they are compared with."""

from __future__ import annotations

import pytest
from django.db import connection

from jobs.models import RunTag
from tests.attacks.parsers.bounds import bounded, cpu_s
from tests.tracking.builders import logged_run
from tracking.search import FilterError, count_runs, find_run_ids, query_time
from tracking.search.parser import MAX_COMPARISONS, MAX_ORDERS, parse, parse_orders
from tracking.search.patterns import matches
from tracking.search.run_search import build_query
from tracking.search.tokens import MAX_CHARACTERS
from tracking.search.values import MAX_PATTERN_LENGTH

HOSTILE_FILTERS = {
    "parentheses": "(" * (MAX_CHARACTERS // 2),
    "not": "NOT " * (MAX_CHARACTERS // 4),
    "comparisons": " AND ".join(["metrics.a > 1"] * (MAX_COMPARISONS + 1)),
    "quotes": "tags.a = " + "''" * 9000,
    "open quote": "tags.a = '" + "''" * 9000,
    "dots": "a" + "." * 19_000,
    "blanks": "a" + " " * 19_000,
    "a long number": "metrics.a > " + "9" * 19_000,
    "a long exponent": "metrics.a > 1e" + "9" * 19_000,
    "a long list": "tags.a IN (" + ",".join(["'x'"] * 5000) + ")",
    "a long pattern": "tags.a LIKE '" + "%a" * 9000 + "'",
    "too long": "a" * (MAX_CHARACTERS + 1),
    "NUL": "tags.a = '\0'",
    "half a character": "tags.a = '\ud800'",
}


@pytest.mark.parametrize("name", HOSTILE_FILTERS)
def test_a_filter_is_read_or_refused_within_the_limits(name: str) -> None:
    def read() -> bool:
        try:
            parse(HOSTILE_FILTERS[name])
        except FilterError as error:
            return len(error.sentence) < 500
        return True

    assert bounded(read, max_cpu_s=0.5, max_memory_bytes=16 * 2**20)


def test_a_pattern_longer_than_is_needed_is_refused_with_a_remedy() -> None:
    with pytest.raises(FilterError, match=f"A pattern may have {MAX_PATTERN_LENGTH} characters"):
        parse("tags.a LIKE '" + "a" * (MAX_PATTERN_LENGTH + 1) + "'")
    assert parse("tags.a LIKE '" + "a" * MAX_PATTERN_LENGTH + "'") is not None


@pytest.mark.parametrize(
    "orders", [["metrics.a"] * (MAX_ORDERS + 1), ["metrics.a" + "." * 19_000], ["(" * 19_000]]
)
def test_an_order_is_read_or_refused_within_the_limits(orders: list[str]) -> None:
    def read() -> None:
        with pytest.raises(FilterError):
            parse_orders(orders)

    bounded(read, max_cpu_s=0.5)


@pytest.mark.parametrize("pattern", ["%a" * 250, "%_" * 250, "%" + "a" * 498 + "b", "%" * 500, "\\" * 499])
def test_a_pattern_on_a_long_text_takes_bounded_time(pattern: str) -> None:
    bounded(lambda: matches(pattern, "a" * 8000, any_case=True), max_cpu_s=0.5)


@pytest.mark.django_db
def test_a_search_that_takes_too_long_is_broken_off_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 long patterns on 200 runs with long tags: 25 s of SQLite's time without the limit."""
    run = logged_run()
    for number in range(199):
        made = logged_run(workspace=run.experiment.workspace) if number else run
        RunTag.objects.create(
            run=made, experiment=made.experiment, key="a", value="a" * 5000, short="a" * 200
        )
    # Alternatives that differ, as equal ones might be asked once.
    text = " OR ".join(f"tags.a LIKE '%{'a' * (MAX_PATTERN_LENGTH - 2 - number)}b'" for number in range(30))
    wanted = build_query(run.experiment.workspace, text=text)
    monkeypatch.setattr(query_time, "MAX_CPU_S", 0.3)
    monkeypatch.setattr(query_time, "MAX_WALL_S", 1)
    for look in (lambda: find_run_ids(wanted, (), limit=10), lambda: count_runs(wanted, 1000)):
        begun = cpu_s()
        with pytest.raises(FilterError, match="takes too long; shorten"):
            look()
        assert cpu_s() - begun < 1.5
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


@pytest.mark.django_db
def test_an_honest_search_is_not_broken_off() -> None:
    run = logged_run()
    wanted = build_query(
        run.experiment.workspace, text="attributes.run_name ILIKE '%a%' OR tags.a LIKE '%b' OR duration < 1d"
    )
    assert count_runs(wanted, 100) in (0, 1)
