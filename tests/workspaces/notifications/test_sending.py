"""Deliveries to a real receiver: arrives once; what fails is tried later and later; what hangs holds up
nobody else."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.core import mail
from django.utils import timezone

from tests.people import make_contributor
from tests.workspaces.notifications.builders import channel, event
from tests.workspaces.notifications.receiver import Answer, Receiver, close, flood, hang, status, trickle
from workspaces import tasks
from workspaces.models import Channel, Delivery, Membership
from workspaces.notifications import channels, delivery, outbox, webhook

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def send_later(step: timedelta = timedelta(seconds=1)) -> datetime:
    """The moment of the next try, and a little more."""
    now = Channel.objects.latest("try_at").try_at + step
    delivery.tick(max(now, timezone.now()))
    return now


class TestArrival:
    def test_a_webhook_gets_the_json_once(self, receivers: list[Receiver]) -> None:
        receivers.append(Receiver())
        channel(receivers[0].url)
        for _ in range(2):
            outbox.post(event())
            delivery.tick(timezone.now())
        (got,) = receivers[0].got
        assert got.body == {"event": "run.failed", "text": "[failed] run:1", "url": "http://hub/runs/1/"}
        assert got.headers["x-trainhub-delivery"] == str(Delivery.objects.get().pk)
        assert Delivery.objects.get().state == "sent"

    def test_it_is_signed_where_there_is_a_secret(self, receivers: list[Receiver]) -> None:
        receivers.append(Receiver())
        channel(receivers[0].url, secret="s3cret")
        outbox.post(event())
        delivery.tick(timezone.now())
        (got,) = receivers[0].got
        assert got.headers["x-trainhub-signature"] == webhook.signature(
            "s3cret", got.headers["x-trainhub-timestamp"], got.raw
        )

    def test_a_mail_has_the_sentence_and_the_link(self) -> None:
        channel("ann@example.org", kind="mail")
        outbox.post(event())
        delivery.tick(timezone.now())
        (letter,) = mail.outbox
        assert (letter.to, letter.subject) == (["ann@example.org"], "TrainHub: [failed] run:1")
        assert "http://hub/runs/1/" in str(letter.body)

    def test_two_channels_each_get_it(self, receivers: list[Receiver]) -> None:
        receivers += [Receiver(), Receiver()]
        for receiver in receivers:
            channel(receiver.url)
        outbox.post(event())
        assert delivery.tick(timezone.now()) == 2
        assert [len(receiver.got) for receiver in receivers] == [1, 1]


class TestFailure:
    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            (status(500), "Answered 500 Internal Server Error."),
            (status(404), "Answered 404 Not Found."),
            (status(599), "Answered 599."),
            (status(302, Location="http://127.0.0.1:1/"), "redirects are not followed"),
            (close, "Could not be delivered within 1 s"),
            (hang, "Could not be delivered within 1 s"),
            (trickle, "Could not be delivered within 1 s"),
        ],
        ids=["500", "404", "599", "redirect", "closes", "hangs", "trickles"],
    )
    def test_is_told_and_tried_again(
        self, receivers: list[Receiver], monkeypatch: pytest.MonkeyPatch, answer: Answer, words: str
    ) -> None:
        monkeypatch.setattr(webhook, "WITHIN_S", 1.0)
        receivers.append(Receiver(answer))
        channel(receivers[0].url)
        outbox.post(event())
        delivery.tick(timezone.now())
        found = Channel.objects.get()
        assert words in found.last_error
        assert (found.failures, found.paused_at, found.busy_until) == (1, None, None)
        assert channels.state_of(found) == "failing"
        assert delivery.tick(timezone.now()) == 0
        assert len(receivers[0].got) == 1
        receivers[0].answer = status(204)
        send_later()
        found.refresh_from_db()
        assert (found.failures, found.failing_since, found.last_error) == (0, None, "")
        assert Delivery.objects.get().state == "sent"

    def test_nobody_at_the_address_is_told(self) -> None:
        channel("http://127.0.0.1:9/hook")
        outbox.post(event())
        delivery.tick(timezone.now())
        assert "Could not be delivered within 5 s" in Channel.objects.get().last_error

    def test_a_body_without_end_is_not_read(self, receivers: list[Receiver]) -> None:
        receivers.append(Receiver(flood))
        channel(receivers[0].url)
        outbox.post(event())
        assert delivery.tick(timezone.now()) == 1

    def test_pauses_grow_up_to_an_hour_and_after_a_day_the_channel_is_paused(self) -> None:
        channel("http://127.0.0.1:9/hook")
        outbox.post(event())
        start = now = timezone.now()
        pauses = []
        while Channel.objects.get().paused_at is None:
            delivery.tick(now)
            then = Channel.objects.get().try_at
            pauses.append(round((then - now).total_seconds()))
            now = then
        assert pauses[:8] == [30, 60, 120, 240, 480, 960, 1920, 3600]
        assert max(pauses) == 3600
        paused_at = Channel.objects.get().paused_at
        assert paused_at is not None
        assert DAY <= paused_at - start < DAY + timedelta(hours=2)
        assert Delivery.objects.get().state == "failed"
        assert outbox.post(event("run:2")) == 0

    def test_one_that_is_gone_for_good_is_paused_at_once(self, receivers: list[Receiver]) -> None:
        receivers.append(Receiver(status(410)))
        channel(receivers[0].url)
        outbox.post(event())
        delivery.tick(timezone.now())
        assert Channel.objects.get().paused_at is not None

    def test_one_message_that_is_refused_holds_up_no_other(self, receivers: list[Receiver]) -> None:
        def picky(handler: object) -> None:
            status(400 if len(receivers[0].got) == 1 else 200)(handler)  # type: ignore[arg-type]

        receivers.append(Receiver(picky))
        channel(receivers[0].url)
        outbox.post(event("run:1"))
        outbox.post(event("run:2"))
        delivery.tick(timezone.now())
        assert list(Delivery.objects.order_by("pk").values_list("state", flat=True)) == ["waiting", "sent"]
        assert Channel.objects.get().failures == 0

    def test_our_own_fault_is_told_and_logged_and_holds_up_no_other_channel(
        self, receivers: list[Receiver], caplog: pytest.LogCaptureFixture
    ) -> None:
        receivers.append(Receiver())
        broken = channel("ann@example.org\nBcc: eve@example.org", kind="mail")
        channel(receivers[0].url)
        outbox.post(event())
        assert delivery.tick(timezone.now()) == 1
        broken.refresh_from_db()
        assert "TrainHub itself failed" in broken.last_error
        assert "BadHeaderError" in caplog.text
        assert mail.outbox == []


class TestRetention:
    def test_deliveries_of_the_last_month_and_those_that_still_wait_are_kept(self) -> None:
        ops = channel("http://127.0.0.1:9/hook")
        now = timezone.now()
        for state, days in (("sent", 31), ("failed", 31), ("waiting", 31), ("sent", 29)):
            Delivery.objects.create(
                channel=ops,
                key=f"{state} {days}",
                state=state,
                event="run.failed",
                body={},
                created_at=now - timedelta(days=days),
            )
        tasks.forget_deliveries()
        assert [row.key for row in Delivery.objects.order_by("pk")] == ["waiting 31", "sent 29"]


class TestOthers:
    def test_of_two_rounds_at_once_in_one_process_one_sends(self, receivers: list[Receiver]) -> None:
        receivers.append(Receiver())
        channel(receivers[0].url)
        outbox.post(event())
        with delivery._ticking:
            assert delivery.tick(timezone.now()) == 0
        assert delivery.tick(timezone.now()) == 1

    def test_one_that_hangs_delays_no_other_channel(
        self, receivers: list[Receiver], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(webhook, "WITHIN_S", 1.0)
        receivers += [Receiver(hang), Receiver()]
        for receiver in receivers:
            channel(receiver.url)
        for number in range(5):
            outbox.post(event(f"run:{number}"))
        delivery.tick(timezone.now())
        assert [len(receiver.got) for receiver in receivers] == [1, 5]

    def test_another_worker_leaves_a_channel_alone_that_is_being_served(
        self, receivers: list[Receiver]
    ) -> None:
        receivers.append(Receiver())
        now = timezone.now()
        channel(receivers[0].url, busy_until=now + timedelta(seconds=30))
        outbox.post(event(at=now))
        assert delivery.tick(now) == 0
        assert delivery.tick(now + timedelta(seconds=31)) == 1

    def test_who_is_no_member_any_more_is_told_nothing(self, receivers: list[Receiver]) -> None:
        receivers.append(Receiver())
        person = make_contributor()
        channel(receivers[0].url, user=person)
        outbox.post(event())
        Membership.objects.filter(user=person).delete()
        assert delivery.tick(timezone.now()) == 0
        assert outbox.post(event("run:2")) == 0
