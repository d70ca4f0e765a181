"""What a log system may answer, and what becomes of the lines."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.utils import timezone
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

from jobs.log_shipping import log_requests, rounds
from tests.log_shipping.conftest import Shipping
from tests.log_shipping.receiver import BadPush, Entry, LogReceiver

pytestmark = pytest.mark.django_db
KINDS = pytest.mark.parametrize("kind", ["otlp", "loki"])


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

    def test_a_target_that_does_not_answer_in_time(
        self, shipping: Shipping, receiver: LogReceiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        is_over = threading.Event()

        def stall(_: Entry) -> None:
            is_over.wait(30)

        receiver.check = stall
        shipping.say("one\n")
        with monkeypatch.context() as patch:
            patch.setattr(log_requests, "WITHIN_S", 0.2)
            assert "did not answer within" in shipping.ship().last_error
        is_over.set()

    def test_an_answer_without_end_is_cut(self, shipping: Shipping, receiver: LogReceiver) -> None:
        receiver.answers = [(500, {"Content-Type": "text/plain"}, b"<b>no</b> " * 100_000)]
        shipping.say("one\n")
        error = shipping.ship().last_error
        assert "<b>no</b>" in error
        assert len(error) < 400

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
        shipping.say("".join("bad\n" if number == 13 else f"{number}\n" for number in range(1000)))
        target = shipping.ship()
        numbers = [text for text in receiver.texts() if text.isdigit()]
        assert sorted(numbers, key=int) == [str(number) for number in range(1000) if number != 13]
        assert receiver.requests < 30
        notices = [text for text in receiver.texts() if text.startswith("[TrainHub]")]
        assert len(notices) == 1
        assert "not to my taste" in notices[0]
        assert (target.refused_lines, target.lines, target.failures) == (1, 999, 0)
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
