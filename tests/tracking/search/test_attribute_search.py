"""Searches by attributes of runs, and the limits of searches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from jobs.models import Run
from jobs.retention.deletion import PURGE_STARTED
from jobs.states import RunState
from tests.people import make_contributor, make_owner, make_workspace
from tests.tracking.builders import make_experiment
from tests.tracking.search.builders import found_names, run_with_data
from tracking.history import cells, columns
from tracking.models import Param, RunInput, Star, UsageEntry
from tracking.search import FilterError, build_query, count_runs, find_runs
from tracking.search.vocabulary import ATTRIBUTES, OPERATORS, AttributeType

pytestmark = pytest.mark.django_db
HISTORY = Path(__file__).resolve().parents[3] / "docs" / "history.md"
VALUES = {
    AttributeType.TEXT: "'x'",
    AttributeType.WORD: "'x'",
    AttributeType.NUMBER: "1",
    AttributeType.TIME: "'2025-11-30'",
    AttributeType.FLAG: "true",
}


def filters(name: str, kind: AttributeType) -> list[str]:
    """A filter with each operator that the attribute allows."""
    value = VALUES[kind]
    right = {"IN": f" ({value})", "NOT IN": f" ({value})", "IS NULL": "", "IS NOT NULL": ""}
    return [f"{name} {operator}{right.get(operator, f' {value}')}" for operator in OPERATORS[kind]]


class TestEveryAttribute:
    @pytest.mark.parametrize(("name", "kind"), ATTRIBUTES.items())
    def test_can_be_filtered_by_with_each_of_its_operators(self, name: str, kind: AttributeType) -> None:
        run_with_data("only")
        for text in filters(name, kind):
            assert set(found_names(text, user=make_owner())) <= {"only"}, text

    @pytest.mark.parametrize("name", [name for name, kind in ATTRIBUTES.items() if kind != "flag"])
    def test_can_be_ordered_by(self, name: str) -> None:
        run_with_data("only")
        assert found_names("", f"attributes.{name} DESC") == ["only"]

    def test_is_documented_with_its_type(self) -> None:
        rows = {
            AttributeType.TEXT: "text",
            AttributeType.WORD: "one of a few words",
            AttributeType.NUMBER: "number",
            AttributeType.TIME: "time",
            AttributeType.FLAG: "true or false",
        }
        lines = HISTORY.read_text().splitlines()
        for name, kind in ATTRIBUTES.items():
            (row,) = (line for line in lines if line.startswith(f"| {rows[kind]} |"))
            assert f"`{name}`" in row, name

    def test_of_the_table_has_a_cell(self) -> None:
        assert columns.ATTRIBUTES.keys() == cells.ATTRIBUTES.keys()
        assert columns.ATTRIBUTES.keys() <= ATTRIBUTES.keys()


class TestAttributes:
    def test_states_in_our_words_and_mlflows(self) -> None:
        run_with_data("r")
        run_with_data("f", state=RunState.FAILED)
        run_with_data("q", state=RunState.QUEUED)
        assert (
            found_names("state = 'failed'")
            == found_names("status = 'FAILED'")
            == found_names("run.status IN ('FAILED')")
            == ["f"]
        )
        assert found_names("state = 'waiting'") == found_names("attributes.status = 'SCHEDULED'") == ["q"]
        assert sorted(found_names("state = 'active'")) == ["q", "r"]
        assert sorted(found_names("status != 'RUNNING'")) == ["f", "q"]
        assert found_names("status LIKE 'F%' AND state LIKE 'Fail%'") == ["f"]
        assert found_names("status = 'NONSENSE'") == []

    def test_names_times_people_and_numbers(self) -> None:
        at = datetime(2025, 11, 1, 12, tzinfo=UTC)
        run = run_with_data(
            "old",
            started_at=at,
            finished_at=at + timedelta(hours=3),
            state=RunState.COMPLETED,
            experiment="cats",
        )
        run_with_data("new", created_by=make_contributor())
        assert (
            found_names("start_time < '2025-11-02'")
            == found_names(f"attributes.start_time = {int(at.timestamp() * 1000)}")
            == ["old"]
        )
        assert found_names("start_time > '1d ago'") == ["new"]
        assert (
            found_names("duration >= 3h")
            == found_names("duration = 3h")
            == found_names("duration < 4h AND end_time IS NOT NULL")
            == ["old"]
        )
        assert found_names("end_time IS NULL") == ["new"]
        assert found_names("user_id = 'carl'") == ["new"]
        assert (
            found_names("experiment LIKE 'c%'")
            == found_names(f"experiment_id = '{run.experiment_id}'")
            == ["old"]
        )
        assert found_names(f"number = {run.number}") == found_names(f"run_id = '{run.pk}'") == ["old"]
        assert found_names(f"number NOT IN ({run.number}, 5)") == ["new"]
        assert found_names("name = 'old'") == found_names("attributes.`run name` = 'old'") == ["old"]
        assert found_names(f"artifact_uri LIKE '%{run.pk}%'") == ["old"]

    def test_flags_are_a_persons_own(self) -> None:
        mine = run_with_data("mine", pinned=True)
        run_with_data("theirs", created_by=make_contributor(), archived_at=timezone.now())
        Star.objects.create(user=make_owner(), run=mine)
        assert (
            found_names("starred", user=make_owner())
            == found_names("mine", user=make_owner())
            == found_names("pinned")
            == ["mine"]
        )
        assert (
            found_names("NOT starred", user=make_owner())
            == found_names("starred = false", user=make_owner())
            == ["theirs"]
        )
        assert found_names("archived") == ["theirs"]
        assert found_names("starred", user=make_contributor()) == found_names("starred") == []

    def test_gpu_hours_are_of_all_attempts(self) -> None:
        run = run_with_data("busy")
        run_with_data("idle")
        for attempt in (1, 2):
            UsageEntry.objects.create(
                workspace=run.workspace,
                run=run,
                run_number=run.number,
                attempt=attempt,
                month="2025-11-01",
                experiment_name="birds",
                gpu_seconds=3600.0,
            )
        assert found_names("gpu_hours > 1.9") == ["busy"]
        assert found_names("", "gpu_hours DESC") == ["busy", "idle"]

    def test_a_spec_tells_cluster_environment_and_framework(self) -> None:
        spec = {
            "resources": {"cluster": "big"},
            "environment": {"name": "torch"},
            "distribution": {"type": "mpi"},
        }
        run_with_data("job", kind="job", spec=spec)
        run_with_data("other")
        for text in ("cluster = 'big'", "environment LIKE 't%'", "framework = 'mpi'", "kind = 'job'"):
            assert found_names(text) == ["job"]
        assert found_names("cluster != 'small'") == ["job"]
        assert sorted(found_names("NOT cluster = 'small'")) == ["job", "other"]

    def test_data_sets(self) -> None:
        run = run_with_data("x")
        tags = {"mlflow.data.context": "training"}
        RunInput.objects.create(
            run=run, name="cifar", digest="d1", source_type="http", source="{}", tags=tags
        )
        assert found_names(
            "dataset.name = 'cifar' AND datasets.context = 'training' AND dataset.digest IN ('d1')"
        ) == ["x"]
        assert found_names("dataset.context = 'testing'") == []


class TestScope:
    def test_more_says_that_there_is_more(self) -> None:
        for name in "abc":
            run_with_data(name)
        assert find_runs(make_workspace(), limit=2).has_more
        assert not find_runs(make_workspace(), limit=3).has_more
        assert count_runs(build_query(make_workspace()), 2) == 2
        assert count_runs(build_query(make_workspace(), text="name = 'a'"), 100) == 1

    def test_another_workspaces_runs_are_not_there_even_by_their_experiment(self) -> None:
        other = make_workspace("other")
        secret = run_with_data("secret", workspace=other, metrics={"acc": 1.0})
        run_with_data("ours", metrics={"acc": 1.0})
        assert found_names("metrics.acc = 1") == found_names("metrics.acc = 1", "metrics.acc") == ["ours"]
        assert found_names("metrics.acc = 1", experiments=[secret.experiment_id]) == []
        assert found_names("", "metrics.acc", experiments=[secret.experiment_id]) == []
        Star.objects.create(user=make_owner(), run=secret)
        assert found_names("starred", user=make_owner()) == []

    def test_experiments_narrow(self) -> None:
        run_with_data("bird", metrics={"acc": 1})
        run_with_data("cat", metrics={"acc": 1}, experiment="cats")
        assert found_names("metrics.acc = 1", experiments=[make_experiment("cats").pk]) == ["cat"]
        assert found_names("", "metrics.acc", experiments=[make_experiment("cats").pk]) == ["cat"]
        assert found_names("", experiments=[]) == []

    def test_deleted_runs_are_seen_where_they_are_asked_for_until_they_are_purged(self) -> None:
        run_with_data("kept")
        run_with_data("deleted", deleted_at=timezone.now())
        run_with_data("purged", deleted_at=PURGE_STARTED)
        assert found_names() == ["kept"]
        assert found_names(view="DELETED_ONLY") == ["deleted"]
        assert sorted(found_names(view="ALL")) == ["deleted", "kept"]

    def test_text_is_looked_for_in_names(self) -> None:
        run_with_data("night")
        run_with_data("day", experiment="owls")
        assert found_names(name_part="nigh") == ["night"]
        assert found_names(name_part="owl") == ["day"]

    def test_many_comparisons_are_not_too_much_for_the_database(self) -> None:
        run = run_with_data("x")
        Param.objects.bulk_create(
            Param(run=run, experiment=run.experiment, key=f"p{n}", value="1", short="1") for n in range(60)
        )
        assert found_names(" AND ".join(f"params.p{n} = '1'" for n in range(60))) == ["x"]
        assert found_names(" OR ".join(f"params.p{n} = '2'" for n in range(60))) == []

    def test_a_bad_filter_is_refused_before_anything_is_asked(self) -> None:
        with pytest.raises(FilterError):
            found_names("metrics.acc >")
        with pytest.raises(FilterError):
            found_names("", "metrics.acc sideways")
        assert Run.objects.count() == 0
