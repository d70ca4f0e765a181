"""The first tab of a run's page: what the run was, did and cost."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime

import pytest

from jobs import tags
from jobs.models import Member, Run
from jobs.retention import deletion, run_purge
from jobs.states import RunState
from tests.clusters.telemetry.builders import stored
from tests.jobs.builders import Played, ended, launched, node, queued
from tests.people import client_of, make_contributor, make_viewer, principal_of
from tests.tracking.builders import logged_run
from tracking import params
from tracking.metrics import point_writer
from tracking.metrics.points import Point
from tracking.models import LoggedModel, RunInput
from tracking.notes import TAG
from tracking.overview.gpu_means import gpu_means
from tracking.overview.metric_rows import MAX_ROWS, metric_rows
from tracking.overview.origin import MAX_CLONES, MAX_INPUTS, read_inputs
from tracking.usage import accounting
from trainhub_launch.telemetry import BUCKET_S, Block, pack
from workspaces.access import Principal

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
METRICS = ("utilization_pct", "power_w", "temperature_c")


@pytest.fixture
def who() -> Principal:
    return principal_of(make_contributor())


def page(run: Run, part: str = "") -> str:
    answer = client_of(make_viewer()).get(f"/runs/{run.number}/{part}")
    assert answer.status_code == 200
    return answer.content.decode()


def completed(who: Principal, *, gpus: int = 0, **changes: object) -> Run:
    """A run that ran for a minute, in which its GPUs measured 80 %, 300 W and 60 °C."""
    alpha = Played(node(gpus=gpus))
    run = launched(who, **changes)
    alpha.claim(run)
    now = time.time()
    start = int(now - 60) // BUCKET_S * BUCKET_S
    if gpus:
        uuids = tuple(f"GPU-alpha-{index}" for index in range(gpus))
        values = {"utilization_pct": 80.0, "power_w": 300.0, "temperature_c": 60.0}
        data = pack([[values for _ in uuids] for _ in range(6)], METRICS)
        measured = Block(start, BUCKET_S, uuids, METRICS, data, data)
        stored(alpha.node, measured)
    alpha.tell(run, "running")
    alpha.finish(run, ended(0, at=now))
    Member.objects.filter(attempt__run=run).update(started_at=datetime.fromtimestamp(start, UTC))
    run.refresh_from_db()
    return run


def log_input(run: Run, name: str, source: str, *, context: str = "") -> None:
    """Logs an input of the run as MLflow's client does."""
    tags = {"mlflow.data.context": context} if context else {}
    RunInput.objects.create(run=run, name=name, digest="1", source_type="local", source=source, tags=tags)


class TestWhichTab:
    def test_an_ended_run_opens_with_it(self, who: Principal) -> None:
        text = page(completed(who))
        assert 'aria-current="page">\n  Overview' in text
        assert "What ran" in text

    def test_a_job_that_goes_on_opens_with_its_log(self, who: Principal) -> None:
        run = launched(who)
        assert 'data-mount="log-view"' in page(run)
        assert "What ran" in page(run, "overview/")

    def test_a_link_to_a_line_opens_the_log(self, who: Principal) -> None:
        assert "What ran" not in page(completed(who), "?log=70_driver_log.txt")

    def test_a_logged_run_has_it_too(self) -> None:
        run = logged_run(state=RunState.COMPLETED)
        text = page(run)
        assert 'aria-labelledby="ov-note"' in text
        assert "What ran" not in text


class TestContent:
    def test_metrics_with_last_and_best_values(self) -> None:
        run = logged_run()
        steps = [(0, 2.0, 0.1), (1, 0.5, 0.7), (2, 0.9, 0.6), (3, math.nan, 0.6)]
        points = [
            Point(key, value, step, 1000 * step)
            for step, loss, other in steps
            for key, value in (("loss", loss), ("lr", other))
        ]
        point_writer.append(run.pk, run.experiment_id, points)
        rows, count = metric_rows(run)
        assert count == 2
        loss, rate = rows
        assert (loss.key, loss.best) == ("loss", 0.5)
        assert len(loss.paths) == 1
        assert (rate.best, rate.low, rate.high, rate.last) == (None, 0.1, 0.7, 0.6)

    def test_a_metric_that_never_changes_is_a_line(self) -> None:
        run = logged_run()
        point_writer.append(run.pk, run.experiment_id, [Point("flat", 3.0, step, step) for step in range(5)])
        assert "9.0" in metric_rows(run)[0][0].paths[0]

    def test_no_more_than_the_first_metrics(self) -> None:
        run = logged_run()
        point_writer.append(
            run.pk, run.experiment_id, [Point(f"m{n:02}", 1.0, 0, 0) for n in range(MAX_ROWS + 3)]
        )
        text = page(run, "overview/")
        assert f"All {MAX_ROWS + 3} metrics" in text
        assert text.count('<td class="th-mono">m') == MAX_ROWS

    def test_parameters_arguments_note_and_commit(self, who: Principal) -> None:
        run = completed(who, arguments=["--lr=0.1", "--epochs", "3", "data.csv"])
        params.put(run.pk, run.experiment_id, {"lr": "0.1", "seed": "<1>"})
        tags.set_tags(run, {TAG: "It was **the one**.", "mlflow.source.git.commit": "c0ffee" * 6})
        text = page(run)
        assert "<strong>the one</strong>" in text
        assert "&lt;1&gt;" in text
        assert '<dt class="th-mono">epochs</dt>' in text
        assert text.count(">0.1</dd>") == 1, "what was logged is not repeated"
        assert "data.csv" in text
        assert "c0ffeec0" in text

    def test_a_command_is_shown_instead_of_a_script(self, who: Principal) -> None:
        run = completed(who, script="", command=["python", "-m", "train"])
        text = page(run)
        assert "<dt>Command</dt><dd><code>python -m train</code></dd>" in text
        assert "<dt>Script</dt>" not in text

    def test_children_are_linked(self, who: Principal) -> None:
        run = completed(who)
        child = logged_run("a child", parent=run)
        assert f'<a href="/runs/{child.number}/">a child</a>' in page(run)

    def test_means_of_the_gpus_and_the_cost(self, who: Principal) -> None:
        run = completed(who, gpus=2, resources={"cluster": "local", "gpus_per_node": 2})
        means = gpu_means(run, 1)
        assert means is not None
        assert means.gpus == 2
        assert means.utilization_pct == pytest.approx(80)
        assert means.power_w == pytest.approx(300)
        assert means.hottest_c == pytest.approx(60)
        assert means.memory_used_bytes is None, "not measured"
        accounting.account_recent()
        text = page(run)
        assert "<dt>Mean power</dt><dd>300 W</dd>" in text
        assert "<dt>Node-hours</dt>" in text

    def test_without_gpus_there_are_no_means(self, who: Principal) -> None:
        assert gpu_means(completed(who), 1) is None


class TestOrigin:
    def test_a_clone_names_its_original_and_the_original_its_clones(self, who: Principal) -> None:
        original = completed(who)
        clone = queued(who, cloned_from=original)
        text = page(clone, "overview/")
        assert f'<a href="/runs/{original.number}/">run {original.number}</a>' in text
        compare_url = f"/compare/?runs={original.number},{clone.number}"
        assert f'<a href="{compare_url}">compare</a>' in text
        assert client_of(make_viewer()).get(compare_url).status_code == 200
        text = page(original)
        assert f'<a href="/runs/{clone.number}/">run {clone.number}</a>' in text
        assert "Cloned from" not in text

    def test_a_deleted_original_is_named_without_a_link(self, who: Principal) -> None:
        original = completed(who)
        clone = queued(who, cloned_from=original)
        deletion.delete(original, who.user)
        text = page(clone, "overview/")
        assert f"run {original.number}, which is deleted" in text
        assert f'"/runs/{original.number}/"' not in text

    def test_a_clone_outlives_its_purged_original(self, who: Principal) -> None:
        original = completed(who)
        clone = queued(who, cloned_from=original)
        deletion.delete(original, who.user)
        run_purge.purge_now(original, who.user)
        assert run_purge.purge_due(lambda purged: purged) == 1
        assert not Run.objects.filter(pk=original.pk).exists()
        assert "Cloned from" not in page(clone, "overview/")

    def test_only_the_first_clones_are_listed(self, who: Principal) -> None:
        original = completed(who)
        numbers = [queued(who, cloned_from=original).number for _ in range(MAX_CLONES + 2)]
        text = page(original)
        assert f'"/runs/{numbers[MAX_CLONES - 1]}/"' in text
        assert f'"/runs/{numbers[MAX_CLONES]}/"' not in text
        assert "and 2 more" in text


class TestInputs:
    def test_shows_name_location_and_context(self) -> None:
        run = logged_run()
        log_input(run, "houses", '{"uri": "/data/houses.csv"}', context="training")
        text = page(run, "overview/")
        assert ">houses</dt>" in text
        assert ">/data/houses.csv</span>" in text
        assert ">training</span>" in text

    def test_a_model_is_shown_by_its_name(self) -> None:
        run = logged_run()
        model = LoggedModel.objects.create(pk="m-1", experiment=run.experiment, run=run, name="base")
        log_input(run, model.pk, f"models:/{model.pk}")
        assert [row.name for row in read_inputs(run)] == ["base"]

    @pytest.mark.parametrize(
        ("source", "location"),
        [
            ('{"url": "https://example.org/a.csv"}', "https://example.org/a.csv"),
            ('{"path": "glue", "revision": "main"}', "glue"),
            ('{"tags": {}}', ""),
            ('{"uri": 3}', ""),
            ("[1]", "[1]"),
            ("s3://bucket/a", "s3://bucket/a"),
            ("[" * 100_000, "[" * 100_000),
        ],
    )
    def test_the_location_is_read_from_the_source(self, source: str, location: str) -> None:
        run = logged_run()
        log_input(run, "data", source)
        assert read_inputs(run)[0].location == location

    def test_no_more_than_the_first_inputs(self) -> None:
        run = logged_run()
        for number in range(MAX_INPUTS + 2):
            log_input(run, f"data {number}", "{}")
        text = page(run, "overview/")
        assert f">data {MAX_INPUTS - 1}</dt>" in text
        assert f">data {MAX_INPUTS}</dt>" not in text
        assert "All inputs" in text
