"""Whether a page says rightly that GPUs wait for data."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from clusters.node_reports import heartbeat
from jobs.models import Member
from jobs.reading.rank_rows import RankRow, rank_rows
from jobs.reading.starving import MIN_WINDOW_S, WARM_UP_S, WINDOW_S, read_node_load, starving_sentence
from tests.clusters.telemetry.builders import gpu_block, host_block, stored
from tests.jobs.builders import Played, alive, beat, launched, node
from tests.people import client_of, make_contributor, principal_of
from trainhub_launch.telemetry import BUCKET_S, RankRead

pytestmark = pytest.mark.django_db
GPU = "GPU-alpha-0"
MB = 1e6
READS = [RankRow(0, "alpha", 40 * MB, 30 * MB)]


@pytest.fixture
def alpha() -> Played:
    return Played(node(gpus=1))


def measured(
    played: Played, used: float, *, lately: float | None = None, disk: float = 0.0, fastest: float = 0.0
) -> float:
    """The last minutes of the node: its GPU's use in percent, in the last one `lately`, and what its disk
    read a second, now and at another time."""
    count, last = WINDOW_S // BUCKET_S, MIN_WINDOW_S // BUCKET_S
    gpu = [used] * (count - last) + [used if lately is None else lately] * last
    end = int(time.time()) // BUCKET_S * BUCKET_S
    start = end - WINDOW_S
    for first, speed in ((start - 6 * 3600, fastest), (start, disk)):
        stored(
            played.node,
            gpu_block(first, GPU, gpu),
            host_block(first, [speed] * count, "disk_read_bytes_s"),
        )
    return float(end)


def sentence(played: Played, rows: list[RankRow] = READS, **load: float) -> str:
    now = measured(played, **load)
    return starving_sentence([read_node_load(played.node, [GPU], now - 3600, now)], rows)


class TestSentence:
    def test_names_the_disk_at_its_limit(self, alpha: Played) -> None:
        assert sentence(alpha, used=30, disk=95 * MB, fastest=100 * MB) == (
            "In the last minutes the GPUs were used 30 % while their ranks read data. The disk of alpha was "
            "at its limit: 90.6 MiB/s of the 95.4 MiB/s that were measured there. Store the data in a "
            "smaller form, use nodes with more memory, which keeps it, or faster disks."
        )

    def test_advises_more_workers_where_nothing_is_at_its_limit(self, alpha: Played) -> None:
        text = sentence(alpha, used=30, disk=20 * MB, fastest=100 * MB)
        assert "Disk and network of the nodes can do more" in text
        assert "num_workers" in text

    def test_takes_a_disk_that_was_never_busy_for_none_at_its_limit(self, alpha: Played) -> None:
        assert "num_workers" in sentence(alpha, used=30, disk=5 * MB, fastest=5 * MB)

    def test_is_none_for_busy_gpus(self, alpha: Played) -> None:
        assert sentence(alpha, used=90, disk=95 * MB, fastest=100 * MB) == ""

    def test_is_none_for_ranks_that_read_nothing(self, alpha: Played) -> None:
        assert (
            sentence(alpha, [RankRow(0, "alpha", 1000.0, 0.0)], used=5, disk=95 * MB, fastest=100 * MB) == ""
        )

    def test_is_none_where_nothing_was_measured(self, alpha: Played) -> None:
        assert starving_sentence([read_node_load(alpha.node, [GPU], 0.0)], READS) == ""

    def test_counts_nothing_that_was_measured_before_the_ranks_were_warm(self, alpha: Played) -> None:
        now = measured(alpha, 0, lately=95)
        since = now - WARM_UP_S - MIN_WINDOW_S

        assert starving_sentence([read_node_load(alpha.node, [GPU], since, now)], READS) == ""

    def test_is_none_while_the_ranks_have_hardly_begun(self, alpha: Played) -> None:
        now = measured(alpha, 0)
        since = now - WARM_UP_S - MIN_WINDOW_S

        assert starving_sentence([read_node_load(alpha.node, [GPU], since, now)], READS) != ""
        assert starving_sentence([read_node_load(alpha.node, [GPU], since + 1, now)], READS) == ""


class TestPage:
    def test_shows_what_each_rank_reads_and_that_its_gpu_waits(self, alpha: Played) -> None:
        who = principal_of(make_contributor())
        run = launched(who, resources={"gpus_per_node": 1})
        alpha.ready(run)
        alpha.tell(run, "running", alive(0))
        reads = (RankRead(run.pk, 1, 0, 40 * MB, 30 * MB), RankRead("5f" * 16, 1, 0, 7 * MB, 7 * MB))
        # Numbers that follow within a second are dropped.
        later = timezone.now() + timedelta(seconds=2)
        heartbeat.apply(alpha.node, replace(beat(gpus=1), reads=reads), later)
        assert rank_rows(run, 1, [alpha.node]) == READS
        measured(alpha, 30, disk=95 * MB, fastest=100 * MB)
        page = client_of(who.user).get(f"/runs/{run.number}/gpus/").content.decode()
        assert "38 MiB/s" in page
        assert "In the last minutes" not in page
        Member.objects.filter(attempt__run=run).update(started_at=timezone.now() - timedelta(minutes=10))
        page = client_of(who.user).get(f"/runs/{run.number}/gpus/").content.decode()
        assert "The disk of alpha was at its limit" in page
