"""A run at work that gives no sign of life: from its logs and metrics to the alert, and its end."""

from __future__ import annotations

import os
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from clusters.alerts import alert_store, presenters
from clusters.models import Alert, Hearing
from jobs.logs import log_store
from jobs.logs.rank_silence import silences
from jobs.models import Member, Run
from tests.clusters.alerts.test_alert_notifications import channel, event_names
from tests.jobs.builders import Played, alive, both_running, launched, node, running
from tracking.models import Metric, MetricSlice
from workspaces.access import Principal

pytestmark = pytest.mark.django_db


class Scene:
    """A run with a rank on each of two nodes, in a time that the test moves."""

    def __init__(self, who: Principal) -> None:
        self.alpha, self.beta, self.run = both_running(who)
        self.start = self.now = timezone.now()
        self.listens_since = self.start - timedelta(days=1)

    def pass_minutes(self, minutes: float) -> None:
        """Time passes, the nodes report that all goes on, and the rules are evaluated."""
        self.now += timedelta(minutes=minutes)
        Hearing.objects.update_or_create(pk=1, defaults={"since": self.listens_since, "until": self.now})
        for played in (self.alpha, self.beta):
            played.report(now=self.now)
        # The first evaluation opens the alert, the second one fires or clears it.
        for _ in range(2):
            alert_store.evaluate_all(self.now)

    def write(self, rank: int, text: bytes = b"step\n") -> None:
        """The rank writes at the present time of the scene."""
        played = (self.alpha, self.beta)[rank]
        name = Member.objects.get(attempt__run=self.run, rank=rank).log_name
        played.log(self.run, name, log_store.size(self.run.pk, 1, name), text)
        arrived = self.now.timestamp()
        os.utime(log_store.path(self.run.pk, 1, name), (arrived, arrived))


def firing() -> list[Alert]:
    return list(Alert.objects.filter(kind="run_silent", state="firing"))


@pytest.fixture
def scene(who: Principal) -> Scene:
    return Scene(who)


class TestSilences:
    def test_are_measured_from_the_last_output_of_each_rank(self, scene: Scene) -> None:
        scene.now += timedelta(minutes=3)
        scene.write(1)
        silence = silences([scene.run.pk], scene.now.timestamp() + 60)[scene.run.pk]
        assert [(item.rank, item.node, round(item.silent_s / 60)) for item in silence.ranks] == [
            (0, "alpha", 4),
            (1, "beta", 1),
        ]
        assert round(silence.silent_s) == 60

    def test_a_run_that_does_not_run_yet_has_none(self, who: Principal) -> None:
        alpha = Played(node())
        run = launched(who)
        alpha.claim(run)
        assert silences([run.pk], timezone.now().timestamp()) == {}

    def test_ranks_that_have_ended_do_not_count(self, who: Principal) -> None:
        alpha, run = running(who)
        Member.objects.update(state="Succeeded")
        assert silences([run.pk], timezone.now().timestamp()) == {}
        alpha.tell(run, "running", alive(0))


class TestAlert:
    def test_names_the_ranks_after_half_an_hour(self, scene: Scene, who: Principal) -> None:
        receiver = channel("default", "alert.warning")
        scene.pass_minutes(10)
        scene.write(1)
        scene.pass_minutes(29)
        assert firing() == []
        scene.pass_minutes(2)
        (alert,) = presenters.firing_of_run(scene.run.pk, who.workspace)
        assert alert.sentence.startswith(
            f"run {scene.run.number} has given no output and no metric for 31 min. Silent the longest: "
            "rank 0 on alpha (41 min), rank 1 on beta (31 min)."
        )
        assert (alert.alert.kind, alert.run, event_names(receiver)) == (
            "run_silent",
            scene.run.pk,
            ["alert.fired"],
        )

    def test_clears_when_a_rank_writes(self, scene: Scene) -> None:
        scene.pass_minutes(31)
        assert len(firing()) == 1
        scene.write(0)
        scene.pass_minutes(0.2)
        assert firing() == []
        assert Alert.objects.get(kind="run_silent").state == "cleared"

    def test_time_in_which_the_hub_did_not_listen_does_not_count(self, scene: Scene) -> None:
        scene.pass_minutes(10)
        scene.now += timedelta(minutes=60)
        scene.listens_since = scene.now
        scene.pass_minutes(1)
        assert firing() == []
        scene.pass_minutes(31)
        (summary,) = presenters.firing_of_run(scene.run.pk, scene.run.workspace)
        assert "no metric for 32 min. Silent the longest: rank 0 on alpha (32 min)" in summary.sentence

    def test_a_log_that_belongs_to_no_rank_is_a_sign_of_life(self, scene: Scene) -> None:
        scene.pass_minutes(20)
        scene.alpha.log(scene.run, "logs/child.log", 0, b"step 7")
        arrived = scene.now.timestamp()
        os.utime(log_store.path(scene.run.pk, 1, "logs/child.log"), (arrived, arrived))
        scene.pass_minutes(20)
        assert firing() == []
        scene.pass_minutes(11)
        assert len(firing()) == 1

    def test_clears_when_the_run_ends(self, scene: Scene) -> None:
        scene.pass_minutes(31)
        Run.objects.update(state="Completed")
        scene.pass_minutes(0.2)
        assert firing() == []

    @pytest.mark.parametrize("is_stored_in_curve", [True, False])
    def test_a_metric_is_a_sign_of_life(self, scene: Scene, *, is_stored_in_curve: bool) -> None:
        at = scene.start + timedelta(minutes=20)
        if is_stored_in_curve:
            Metric.objects.create(
                run=scene.run,
                experiment=scene.run.experiment,
                key="loss",
                last_ms=round(at.timestamp() * 1000),
            )
        else:
            MetricSlice.objects.create(run=scene.run, points=1, data=b"")
            MetricSlice.objects.update(created_at=at)
        scene.pass_minutes(40)
        assert firing() == []
        scene.pass_minutes(11)
        assert len(firing()) == 1

    def test_a_metric_of_a_clock_far_ahead_is_none(self, scene: Scene) -> None:
        ahead = datetime.fromtimestamp(scene.start.timestamp() + 86400, scene.start.tzinfo)
        Metric.objects.create(
            run=scene.run,
            experiment=scene.run.experiment,
            key="loss",
            last_ms=round(ahead.timestamp() * 1000),
        )
        scene.pass_minutes(31)
        assert len(firing()) == 1

    def test_a_node_that_does_not_report_leaves_it_open(self, scene: Scene) -> None:
        scene.pass_minutes(20)
        scene.now += timedelta(minutes=20)
        Hearing.objects.update(until=scene.now)
        scene.alpha.report(now=scene.now)
        for _ in range(2):
            alert_store.evaluate_all(scene.now)
        assert firing() == []
