"""Lines of runs on their way to a log system: each once, in order, with what is known about it."""

from __future__ import annotations

import time

import pytest

from jobs.log_shipping import targets
from jobs.log_shipping.models import LogProgress
from jobs.logs import log_store, log_timestamps
from tests.log_shipping.conftest import Shipping
from tests.log_shipping.receiver import LogReceiver

pytestmark = pytest.mark.django_db
KINDS = pytest.mark.parametrize("kind", ["otlp", "loki"])


@KINDS
def test_each_line_arrives_once_in_order_with_its_time(
    shipping: Shipping, receiver: LogReceiver, kind: str
) -> None:
    shipping.kind(kind)
    before = time.time_ns()
    shipping.say("one\ntwo\ntwo\nthr")
    shipping.ship()
    assert receiver.texts() == ["one", "two", "two"]
    shipping.say("ee\n\nfour")
    shipping.ship()
    shipping.end()
    target = shipping.ship()
    assert receiver.texts() == ["one", "two", "two", "three", "", "four"]
    times = [entry.time_ns for entry in receiver.entries]
    assert times == sorted(set(times))
    assert before - 2_000_000 <= times[0] <= times[-1] <= time.time_ns() + 2_000_000
    assert (target.lines, target.refused_lines, target.behind_bytes, target.failures) == (6, 0, 0, 0)
    shipping.ship()
    assert len(receiver.entries) == 6
    assert LogProgress.objects.get().is_over


def test_a_collector_gets_everything_that_is_known_about_a_line(
    shipping: Shipping, receiver: LogReceiver
) -> None:
    shipping.kind("otlp", labels={"site": "north"})
    shipping.say("hello\n")
    shipping.ship()
    (entry,) = receiver.entries
    run = shipping.run
    assert entry.trace_id == run.pk
    assert entry.labels == {
        "service.name": "trainhub",
        "site": "north",
        "trainhub.hub": targets.hub_name(),
        "trainhub.workspace": run.workspace.slug,
        "trainhub.experiment": run.experiment.name,
        "trainhub.run.id": run.pk,
        "trainhub.run.number": run.number,
        "trainhub.attempt": 1,
        "trainhub.log": "70_driver_log.txt",
        "trainhub.stream": "driver",
        "trainhub.node": "alpha",
        "trainhub.rank": 0,
    }


def test_what_has_no_bounds_is_no_label_of_loki(shipping: Shipping, receiver: LogReceiver) -> None:
    shipping.kind("loki", labels={"site": "north"})
    shipping.say("hello\n")
    shipping.ship()
    (entry,) = receiver.entries
    assert entry.labels == {
        "service_name": "trainhub",
        "hub": targets.hub_name(),
        "workspace": shipping.run.workspace.slug,
        "stream": "driver",
        "site": "north",
    }
    assert entry.about == {
        "experiment": shipping.run.experiment.name,
        "run_id": shipping.run.pk,
        "run_number": str(shipping.run.number),
        "attempt": "1",
        "log": "70_driver_log.txt",
        "node": "alpha",
        "rank": "0",
        "trace_id": shipping.run.pk,
    }


def test_logs_of_nodes_are_shipped_and_files_of_scripts_are_not(
    shipping: Shipping, receiver: LogReceiver
) -> None:
    shipping.say("installing\n", "20_environment_build_log.txt")
    shipping.say("copying\n", "55_preparation_log.txt")
    shipping.say("secret\n", "logs/own.txt")
    shipping.ship()
    streams = {entry.text: entry.labels["trainhub.stream"] for entry in receiver.entries}
    assert streams == {"installing": "environment", "copying": "preparation"}


def test_equal_lines_of_ranks_that_arrive_together_are_all_taken(
    shipping: Shipping, receiver: LogReceiver
) -> None:
    shipping.kind("loki")
    attempt, now_ms = shipping.run.attempts.get(), int(time.time() * 1000)
    for rank in range(1, 8):
        name = f"70_driver_log_{rank}.txt"
        attempt.members.create(node=shipping.played.node, rank=rank, local_rank=rank, log_name=name)
        log_store.append(shipping.run.pk, 1, name, 0, b"epoch 1\n")
        log_timestamps.record_arrival((shipping.run.pk, 1, name), 0, 8, now_ms)
    shipping.ship()
    assert receiver.texts() == ["epoch 1"] * 7
    assert {entry.about["rank"] for entry in receiver.entries} == {str(rank) for rank in range(1, 8)}
