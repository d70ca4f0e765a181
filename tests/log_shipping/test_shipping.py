"""Lines of runs on their way to a log system: each once, in order, with what is known about it."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

from jobs.log_shipping import batches, progress, rounds, targets
from jobs.log_shipping.line_reader import LineReader, LogSource
from jobs.log_shipping.models import LogProgress, LogTarget
from jobs.logs import log_store, log_timestamps
from jobs.models import AttemptNode
from tests.jobs import builders
from tests.log_shipping.conftest import Shipping
from tests.log_shipping.receiver import BadPush, Entry, LogReceiver
from tests.people import principal_of
from workspaces import process_caches

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


class TestLongLines:
    def test_a_long_line_comes_in_pieces_with_a_sign(self, shipping: Shipping, receiver: LogReceiver) -> None:
        line = "é" * 100_000
        shipping.kind("loki")
        shipping.say(f"{line}\nafter\n")
        shipping.ship()
        *pieces, last, after = receiver.texts()
        assert after == "after"
        assert all(piece.endswith("…") for piece in pieces)
        assert "".join(piece.strip("…") for piece in [*pieces, last]) == line
        assert last.startswith("…")

    def test_a_line_that_never_ends_is_shipped_while_it_grows(
        self, shipping: Shipping, receiver: LogReceiver
    ) -> None:
        for _ in range(3):
            shipping.say("x" * 50_000)
            shipping.ship()
        assert len(receiver.entries) == 2
        shipping.say("end\n")
        shipping.ship()
        assert "".join(text.strip("…") for text in receiver.texts()) == "x" * 150_000 + "end"

    def test_of_a_progress_bar_only_its_last_state_is_shipped(
        self, shipping: Shipping, receiver: LogReceiver
    ) -> None:
        shipping.say("".join(f"\r{percent} % {'#' * 1000}" for percent in range(100)))
        shipping.ship()
        assert receiver.texts() == []
        shipping.say("\r100 %\r\nnext\r\n")
        shipping.ship()
        assert receiver.texts() == ["100 %", "next"]

    def test_other_bytes_than_utf_8_are_replaced(self, shipping: Shipping, receiver: LogReceiver) -> None:
        shipping.kind("loki")
        shipping.say(b"\xff\x00\x1b[31mred\n")
        shipping.ship()
        assert receiver.texts() == ["\ufffd\x00\x1b[31mred"]


class TestFailures:
    def test_a_target_that_is_away_delays_lines_and_loses_none(
        self, shipping: Shipping, receiver: LogReceiver
    ) -> None:
        receiver.answers = [(503, {"Retry-After": "17"}, b"warming up")] * 2
        shipping.say("one\n")
        target = shipping.ship()
        assert target.failures == 1
        assert target.behind_bytes == 4
        assert target.behind_since is not None
        assert "Answered 503 Service Unavailable: warming up." in target.last_error
        assert timedelta(seconds=15) < target.try_at - timezone.now() <= timedelta(seconds=17)
        rounds.ship_due()
        assert receiver.requests == 1
        shipping.ship()
        target = shipping.ship()
        assert receiver.texts() == ["one"]
        assert (target.failures, target.failing_since, target.last_error, target.behind_bytes) == (
            0,
            None,
            "",
            0,
        )

    def test_pauses_grow_where_the_target_names_none(self, shipping: Shipping, receiver: LogReceiver) -> None:
        receiver.answers = [(502, {}, b"")] * 3
        shipping.say("one\n")
        pauses = [shipping.ship().try_at - timezone.now() for _ in range(3)]
        assert [round(pause.total_seconds()) for pause in pauses] == [2, 4, 8]

    @pytest.mark.parametrize("wait", ["Wed, 21 Oct 2015 07:28:00 GMT", "soon", "-5", "99999999"])
    def test_a_strange_retry_after_is_no_harm(
        self, shipping: Shipping, receiver: LogReceiver, wait: str
    ) -> None:
        receiver.answers = [(429, {"Retry-After": wait}, b"")]
        shipping.say("one\n")
        pause = shipping.ship().try_at - timezone.now()
        assert pause <= timedelta(hours=1)
        shipping.ship()
        assert receiver.texts() == ["one"]

    @KINDS
    def test_a_wrong_token_is_named_and_nothing_is_lost(
        self, shipping: Shipping, receiver: LogReceiver, kind: str
    ) -> None:
        receiver.token = "right"
        shipping.kind(kind, headers={"Authorization": "Bearer wrong"})
        shipping.say("one\n")
        target = shipping.ship()
        assert "401" in target.last_error
        assert "check the headers" in target.last_error
        assert "wrong" not in target.last_error
        shipping.kind(kind, headers={"Authorization": "Bearer right"})
        shipping.ship()
        assert receiver.texts() == ["one"]

    def test_nobody_listens(self, shipping: Shipping, receiver: LogReceiver) -> None:
        shipping.kind("otlp", url="http://127.0.0.1:9/v1/logs")
        shipping.say("one\n")
        assert "127.0.0.1:9 could not be reached" in shipping.ship().last_error

    def test_a_redirect_is_not_followed(self, shipping: Shipping, receiver: LogReceiver) -> None:
        receiver.answers = [(307, {"Location": "http://127.0.0.1:9/"}, b"")]
        shipping.say("one\n")
        assert "redirects are not followed" in shipping.ship().last_error

    @KINDS
    def test_a_line_that_is_refused_is_left_out_and_the_others_arrive(
        self, shipping: Shipping, receiver: LogReceiver, kind: str
    ) -> None:
        def check(entry: Entry) -> None:
            if entry.text == "bad":
                raise BadPush(400, "this entry is not to my taste")

        shipping.kind(kind)
        receiver.check = check
        shipping.say("".join("bad\n" if number == 13 else f"{number}\n" for number in range(30)))
        target = shipping.ship()
        numbers = [text for text in receiver.texts() if text.isdigit()]
        assert sorted(numbers, key=int) == [str(number) for number in range(30) if number != 13]
        notices = [text for text in receiver.texts() if text.startswith("[TrainHub]")]
        assert len(notices) == 1
        assert "not to my taste" in notices[0]
        assert (target.refused_lines, target.lines, target.failures) == (1, 29, 0)
        assert "not to my taste" in target.last_refusal

    def test_a_target_that_refuses_everything_loses_nothing(
        self, shipping: Shipping, receiver: LogReceiver
    ) -> None:
        def check(_: Entry) -> None:
            raise BadPush(400, "structured metadata is not allowed")

        receiver.check = check
        shipping.say("one\ntwo\n")
        target = shipping.ship()
        assert target.refused_lines == 0
        assert "structured metadata is not allowed" in target.last_error
        assert "check its settings" in target.last_error
        receiver.check = lambda _: None
        shipping.ship()
        assert receiver.texts() == ["one", "two"]

    def test_what_is_too_large_is_halved(self, shipping: Shipping, receiver: LogReceiver) -> None:
        receiver.answers = [(413, {}, b"")]
        shipping.say("one\ntwo\nthree\n")
        shipping.ship()
        assert receiver.texts() == ["one", "two", "three"]

    def test_lines_that_a_collector_dropped_are_counted(
        self, shipping: Shipping, receiver: LogReceiver
    ) -> None:
        answer = ExportLogsServiceResponse()
        answer.partial_success.rejected_log_records = 1
        answer.partial_success.error_message = "quota"
        receiver.answers = [(200, {}, answer.SerializeToString())]
        shipping.say("one\ntwo\n")
        target = shipping.ship()
        assert (target.lines, target.refused_lines, target.last_refusal) == (1, 1, "quota")


class TestPosition:
    def test_a_worker_that_dies_after_sending_repeats_one_batch(
        self, shipping: Shipping, receiver: LogReceiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def die(*_: object) -> None:
            raise SystemExit

        shipping.say("one\n")
        shipping.ship()
        with monkeypatch.context() as patch:
            patch.setattr(batches.progress, "settle", die)
            shipping.say("two\n")
            with pytest.raises(SystemExit):
                shipping.ship()
        shipping.say("three\n")
        shipping.ship()
        assert receiver.texts() == ["one", "two", "two", "three"]
        assert abs(receiver.entries[1].time_ns - receiver.entries[2].time_ns) < 1_000_000_000

    def test_two_workers_at_once_record_a_line_once(
        self, shipping: Shipping, receiver: LogReceiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settle = progress.settle
        others: list[int] = []

        def overtaken(*args: Any) -> None:
            if not others:
                others.append(1)
                rounds.ship_target(shipping.target)
            settle(*args)

        monkeypatch.setattr(batches.progress, "settle", overtaken)
        shipping.say("one\n")
        target = shipping.ship()
        assert target.lines == 1
        shipping.say("two\n")
        assert shipping.ship().lines == 2

    def test_parts_of_a_log_that_a_node_sends_again_are_shipped_once(
        self, shipping: Shipping, receiver: LogReceiver
    ) -> None:
        shipping.say("one\ntwo\n")
        shipping.ship()
        shipping.played.log(shipping.run, "70_driver_log.txt", 0, b"one\ntwo\nthree\n")
        shipping.ship()
        assert receiver.texts() == ["one", "two", "three"]

    def test_bytes_of_a_node_that_was_away_are_shipped_after_the_end(
        self, shipping: Shipping, receiver: LogReceiver
    ) -> None:
        shipping.say("one\n")
        shipping.end()
        AttemptNode.objects.update(settled_at=None)
        shipping.ship()
        assert not LogProgress.objects.get().is_over
        log_store.append(shipping.run.pk, 1, "70_driver_log.txt", 4, b"late")
        AttemptNode.objects.update(settled_at=timezone.now())
        shipping.ship()
        assert receiver.texts() == ["one", "late"]
        assert LogProgress.objects.get().is_over

    def test_a_purged_run_is_no_harm(self, shipping: Shipping, receiver: LogReceiver) -> None:
        shipping.say("one\n")
        log_store.remove_run(shipping.run.pk)
        assert shipping.ship().failures == 0


class TestSince:
    def test_runs_that_began_before_are_not_shipped(self, shipping: Shipping, receiver: LogReceiver) -> None:
        shipping.say("old\n")
        LogTarget.objects.all().delete()
        shipping.ship()
        assert receiver.texts() == []
        targets.start_from(shipping.target, timezone.now() - timedelta(days=1))
        shipping.ship()
        assert receiver.texts() == ["old"]

    def test_what_waits_can_be_skipped(self, shipping: Shipping, receiver: LogReceiver) -> None:
        receiver.answers = [(503, {}, b"")]
        shipping.say("old\n")
        shipping.ship()
        targets.start_from(shipping.target, timezone.now())
        shipping.ship()
        assert receiver.texts() == []

    def test_settings_that_name_nothing_ship_nothing(
        self, shipping: Shipping, receiver: LogReceiver, settings: Any
    ) -> None:
        settings.LOG_DESTINATION = None
        shipping.say("one\n")
        shipping.ship()
        assert receiver.requests == 0
        shipping.kind("otlp")
        shipping.ship()
        assert receiver.texts() == ["one"]


def test_a_backlog_of_long_and_short_runs_stays_within_lokis_hour(
    shipping: Shipping, receiver: LogReceiver
) -> None:
    shipping.kind("loki")
    name, day_ms = "70_driver_log.txt", 24 * 3_600_000
    start_ms = int(time.time() * 1000) - day_ms
    other = builders.launched(_submitter(shipping))
    shipping.played.claim(other)
    for run, step_ms in ((shipping.run, 60_000), (other, 1_000)):
        end = 0
        for number in range(400):
            data = f"{number}\n".encode()
            log_store.append(run.pk, 1, name, end, data)
            log_timestamps.record_arrival(
                (run.pk, 1, name), end, end + len(data), start_ms + number * step_ms
            )
            end += len(data)
    log_timestamps.flush_attempt(shipping.run.pk, 1)
    log_timestamps.flush_attempt(other.pk, 1)
    target = shipping.ship()
    assert receiver.refusals == []
    assert target.lines == 800


def _submitter(shipping: Shipping) -> Any:
    assert shipping.run.created_by is not None
    return principal_of(shipping.run.created_by)


@pytest.mark.parametrize("step", [1, 2, 3, 7, 64])
def test_lines_do_not_depend_on_how_bytes_arrive(step: int) -> None:
    """However a log grows, the pieces of its lines make up the same text."""
    process_caches.clear_all()
    data = ("short\n" + "é" * 900 + "\n" + "old\rnew\r\n" + "\n" + "y" * 3000 + "z").encode()
    source = LogSource("w", "e", f"{step:032x}", 1, 1, "70_driver_log.txt", "driver", "n", 0)
    log_store.remove_run(source.run)
    at, texts = 0, []
    for begin in range(0, len(data), step * 50):
        chunk = data[begin : begin + step * 50]
        log_store.append(source.run, 1, source.log, begin, chunk)
        is_over = begin + len(chunk) == len(data)
        reader = LineReader(source, at, is_over=is_over, max_line_bytes=1024)
        while lines := reader.read_lines(2**63, 2**20, 100):
            texts += [line.text for line in lines]
            at = reader.at
        at = reader.at
    log_store.remove_run(source.run)
    assert "\n".join(texts).replace("…\n…", "") == "short\n" + "é" * 900 + "\nnew\n\n" + "y" * 3000 + "z"
