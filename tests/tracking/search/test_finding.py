from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from jobs.models import Run
from jobs.retention.deletion import GONE
from jobs.states import RunState
from tests.people import make_contributor, make_owner, make_workspace
from tests.tracking.builders import make_experiment
from tests.tracking.search.builders import found, known_run, put_metric
from tracking.models import Param, RunInput, Star, UsageEntry
from tracking.search import FilterError, build_query, count_runs, find_runs

pytestmark = pytest.mark.django_db
LONG = "x" * 200


@pytest.fixture
def four() -> None:
    known_run(
        "a", metrics={"acc": 0.9, "loss": 0.1}, params={"opt": "adam", "lr": "0.1"}, tags={"team": "vision"}
    )
    known_run("b", metrics={"acc": 0.5}, params={"opt": "Adam", "lr": "1e-3"}, tags={"team": "speech"})
    known_run("c", metrics={"acc": math.nan, "loss": math.inf}, params={"opt": "sgd"})
    known_run("d")


@pytest.mark.usefixtures("four")
class TestLogged:
    @pytest.mark.parametrize(("text", "names"), [
        ("metrics.acc > 0.5", "a"),
        ("metrics.acc >= 0.5", "a b"),
        ("metrics.acc < 1", "a b"),
        ("metrics.acc = 0.5", "b"),
        ("metrics.loss > 1e300", "c"),
        ("metrics.loss = inf", "c"),
        ("params.opt = 'adam'", "a"),
        ("params.opt != 'adam'", "b c"),
        ("params.opt LIKE 'ad%'", "a"),
        ("params.opt ILIKE 'AD%'", "a b"),
        ("params.opt LIKE '_dam'", "a b"),
        ("params.opt IN ('adam', 'sgd')", "a c"),
        ("params.opt NOT IN ('adam', 'sgd')", "b"),
        ("params.lr > 0.01", "a"),
        ("params.lr = 0.001", "b"),
        ("params.lr != 0.001", "a"),
        ("params.lr = '0.001'", ""),
        ("tags.team = 'vision'", "a"),
        ("tags.team IS NULL", "c d"),
        ("params.opt IS NOT NULL", "a b c"),
        ("metrics.acc IS NULL", "d"),
        ("metrics.acc > 0.1 AND params.opt = 'Adam'", "b"),
        ("metrics.acc > 0.8 OR params.opt = 'sgd'", "a c"),
        ("metrics.acc > 0.4 AND metrics.acc < 0.6", "b"),
        ("(metrics.acc > 0.8 OR params.opt = 'sgd') AND NOT tags.team = 'vision'", "c"),
        ("metrics.nope = 1", ""),
        ("params.o = 'adam'", ""),
    ])  # fmt: skip
    def test_finds(self, text: str, names: str) -> None:
        assert sorted(found(text)) == names.split()

    def test_nan_is_only_unequal_as_in_mlflow(self) -> None:
        assert sorted(found("metrics.acc != 0.5")) == ["a", "c"]
        assert found("metrics.acc < 100") == ["b", "a"]

    def test_nan_can_be_asked_for(self) -> None:
        assert found("metrics.acc = nan") == ["c"]
        assert sorted(found("metrics.acc != nan")) == ["a", "b"]

    def test_not_is_the_rest_of_all_runs(self) -> None:
        assert sorted(found("NOT metrics.acc > 0.5")) == ["b", "c", "d"]
        assert sorted(found("NOT params.opt != 'adam'")) == ["a", "d"]


class TestText:
    def test_percent_and_underscore_can_be_meant(self) -> None:
        for name in ("50%", "50x", "a_b", "axb", "a*b", "[x]", "a\\b"):
            known_run(name, params={"p": name})
        assert found(r"params.p LIKE '50\%'") == ["50%"]
        assert found(r"params.p LIKE 'a\_b'") == ["a_b"]
        assert found(r"params.p LIKE 'a*b'") == ["a*b"]
        assert found(r"params.p LIKE '[x]'") == ["[x]"]
        assert found(r"params.p LIKE 'a\b'") == ["a\\b"]
        assert found(r"run_name ILIKE 'A\_%'") == ["a_b"]

    def test_a_value_longer_than_the_index_is_compared_whole(self) -> None:
        known_run("one", params={"p": LONG + "1"})
        known_run("two", params={"p": LONG + "2"})
        known_run("bare", params={"p": LONG})
        assert found(f"params.p = '{LONG}1'") == ["one"]
        assert found(f"params.p = '{LONG}'") == ["bare"]
        assert sorted(found(f"params.p != '{LONG}1'")) == ["bare", "two"]
        assert found("params.p LIKE '%2'") == ["two"]
        assert sorted(found(f"params.p IN ('{LONG}1', '{LONG}2', 'z')")) == ["one", "two"]

    def test_quotes_and_unicode_stay_themselves(self) -> None:
        known_run("x", params={"größe": "it's"}, tags={"a b": 'say "hi"'})
        assert found("params.größe = 'it''s'") == ["x"]
        assert found("tags.`a b` = 'say \"hi\"'") == ["x"]


class TestParts:
    def test_least_and_greatest_can_be_asked_for(self) -> None:
        run = known_run("x")
        put_metric(run, "loss", 0.5, least=0.1, greatest=2.0)
        assert found("min(metrics.loss) < 0.2") == found("max(metrics.loss) = 2") == ["x"]
        assert found("metrics.loss < 0.2") == []


class TestAttributes:
    def test_states_in_our_words_and_mlflows(self) -> None:
        known_run("r")
        known_run("f", state=RunState.FAILED)
        known_run("q", state=RunState.QUEUED)
        assert (
            found("state = 'failed'")
            == found("status = 'FAILED'")
            == found("run.status IN ('FAILED')")
            == ["f"]
        )
        assert found("state = 'waiting'") == found("attributes.status = 'SCHEDULED'") == ["q"]
        assert sorted(found("state = 'active'")) == ["q", "r"]
        assert sorted(found("status != 'RUNNING'")) == ["f", "q"]
        assert found("status LIKE 'F%' AND state LIKE 'Fail%'") == ["f"]
        assert found("status = 'NONSENSE'") == []

    def test_names_times_people_and_numbers(self) -> None:
        at = datetime(2025, 11, 1, 12, tzinfo=UTC)
        run = known_run(
            "old",
            started_at=at,
            finished_at=at + timedelta(hours=3),
            state=RunState.COMPLETED,
            experiment="cats",
        )
        known_run("new", created_by=make_contributor())
        assert (
            found("start_time < '2025-11-02'")
            == found(f"attributes.start_time = {int(at.timestamp() * 1000)}")
            == ["old"]
        )
        assert found("start_time > '1d ago'") == ["new"]
        assert found("duration >= 3h") == found("duration < 4h AND end_time IS NOT NULL") == ["old"]
        assert found("end_time IS NULL") == ["new"]
        assert found("user_id = 'carl'") == ["new"]
        assert found("experiment LIKE 'c%'") == found(f"experiment_id = '{run.experiment_id}'") == ["old"]
        assert found(f"number = {run.number}") == found(f"run_id = '{run.pk}'") == ["old"]
        assert found(f"number NOT IN ({run.number}, 5)") == ["new"]
        assert found("name = 'old'") == found("attributes.`run name` = 'old'") == ["old"]
        assert found(f"artifact_uri LIKE '%{run.pk}%'") == ["old"]

    def test_flags_are_a_persons_own(self) -> None:
        mine = known_run("mine", pinned=True)
        known_run("theirs", created_by=make_contributor(), archived_at=timezone.now())
        Star.objects.create(user=make_owner(), run=mine)
        assert (
            found("starred", user=make_owner())
            == found("mine", user=make_owner())
            == found("pinned")
            == ["mine"]
        )
        assert (
            found("NOT starred", user=make_owner())
            == found("starred = false", user=make_owner())
            == ["theirs"]
        )
        assert found("archived") == ["theirs"]
        assert found("starred", user=make_contributor()) == found("starred") == []

    def test_gpu_hours_are_of_all_attempts(self) -> None:
        run = known_run("busy")
        known_run("idle")
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
        assert found("gpu_hours > 1.9") == ["busy"]
        assert found("", "gpu_hours DESC") == ["busy", "idle"]

    def test_a_spec_tells_cluster_environment_and_framework(self) -> None:
        spec = {
            "resources": {"cluster": "big"},
            "environment": {"name": "torch"},
            "distribution": {"type": "mpi"},
        }
        known_run("job", kind="job", spec=spec)
        known_run("other")
        for text in ("cluster = 'big'", "environment LIKE 't%'", "framework = 'mpi'", "kind = 'job'"):
            assert found(text) == ["job"]
        assert found("cluster != 'small'") == ["job"]
        assert sorted(found("NOT cluster = 'small'")) == ["job", "other"]

    def test_data_sets(self) -> None:
        run = known_run("x")
        tags = {"mlflow.data.context": "training"}
        RunInput.objects.create(
            run=run, name="cifar", digest="d1", source_type="http", source="{}", tags=tags
        )
        assert found(
            "dataset.name = 'cifar' AND datasets.context = 'training' AND dataset.digest IN ('d1')"
        ) == ["x"]
        assert found("dataset.context = 'testing'") == []


@pytest.mark.usefixtures("four")
class TestOrder:
    @pytest.mark.parametrize(("order", "names"), [
        ("metrics.acc", "b a c d"),
        ("metrics.acc DESC", "a b c d"),
        ("metrics.loss DESC", "c a d b"),
        ("params.lr", "b a d c"),
        ("params.opt DESC", None),
        ("tags.team", "b a d c"),
        ("run_name", "a b c d"),
        ("start_time DESC", "d c b a"),
        ("end_time", "d c b a"),
    ])  # fmt: skip
    def test_missing_comes_last_and_nan_before_it(self, order: str, names: str | None) -> None:
        if names:
            assert found("", order) == names.split()
        assert found("", order)[-1] == "d" or names

    @pytest.mark.parametrize(
        "order", ["metrics.acc DESC", "params.opt", "tags.team", "params.lr", "duration"]
    )
    def test_pages_hold_every_run_once(self, order: str) -> None:
        pages = [found("", order, limit=1, skip=skip) for skip in range(5)]
        assert [name for page in pages for name in page] == found("", order)
        assert pages[4] == []

    def test_few_found_beforehand_come_in_the_same_order(self) -> None:
        wanted = "params.opt IS NOT NULL"
        for order in ("metrics.acc", "metrics.acc DESC", "metrics.loss", "params.lr DESC", "tags.team"):
            assert found(wanted, order) == [name for name in found("", order) if name != "d"]

    def test_the_second_key_decides_between_equals(self) -> None:
        known_run("e", metrics={"acc": 0.9, "loss": 0.01})
        assert found("metrics.acc = 0.9", "metrics.acc", "metrics.loss") == ["e", "a"]
        assert found("", "tags.team DESC", "metrics.loss DESC", "run_name") == ["a", "b", "c", "e", "d"]

    def test_the_newest_is_first_where_nothing_is_said(self) -> None:
        assert found() == ["d", "c", "b", "a"]


class TestScope:
    def test_more_says_that_there_is_more(self) -> None:
        for name in "abc":
            known_run(name)
        assert find_runs(make_workspace(), limit=2).has_more
        assert not find_runs(make_workspace(), limit=3).has_more
        assert count_runs(build_query(make_workspace()), 2) == 2
        assert count_runs(build_query(make_workspace(), text="name = 'a'"), 100) == 1

    def test_another_workspaces_runs_are_not_there_even_by_their_experiment(self) -> None:
        other = make_workspace("other")
        secret = known_run("secret", workspace=other, metrics={"acc": 1.0})
        known_run("ours", metrics={"acc": 1.0})
        assert found("metrics.acc = 1") == found("metrics.acc = 1", "metrics.acc") == ["ours"]
        assert found("metrics.acc = 1", experiments=[secret.experiment_id]) == []
        assert found("", "metrics.acc", experiments=[secret.experiment_id]) == []
        Star.objects.create(user=make_owner(), run=secret)
        assert found("starred", user=make_owner()) == []

    def test_experiments_narrow(self) -> None:
        known_run("bird", metrics={"acc": 1})
        known_run("cat", metrics={"acc": 1}, experiment="cats")
        assert found("metrics.acc = 1", experiments=[make_experiment("cats").pk]) == ["cat"]
        assert found("", "metrics.acc", experiments=[make_experiment("cats").pk]) == ["cat"]
        assert found("", experiments=[]) == []

    def test_deleted_runs_are_seen_where_they_are_asked_for_until_they_are_purged(self) -> None:
        known_run("kept")
        known_run("deleted", deleted_at=timezone.now())
        known_run("purged", deleted_at=GONE)
        assert found() == ["kept"]
        assert found(view="DELETED_ONLY") == ["deleted"]
        assert sorted(found(view="ALL")) == ["deleted", "kept"]

    def test_text_is_looked_for_in_names(self) -> None:
        known_run("night")
        known_run("day", experiment="owls")
        assert found(name_part="nigh") == ["night"]
        assert found(name_part="owl") == ["day"]

    def test_many_comparisons_are_not_too_much_for_the_database(self) -> None:
        run = known_run("x")
        Param.objects.bulk_create(
            Param(run=run, experiment=run.experiment, key=f"p{n}", value="1", short="1") for n in range(60)
        )
        assert found(" AND ".join(f"params.p{n} = '1'" for n in range(60))) == ["x"]
        assert found(" OR ".join(f"params.p{n} = '2'" for n in range(60))) == []

    def test_a_bad_filter_is_refused_before_anything_is_asked(self) -> None:
        with pytest.raises(FilterError):
            found("metrics.acc >")
        with pytest.raises(FilterError):
            found("", "metrics.acc sideways")
        assert Run.objects.count() == 0
