"""Where webhooks may go: not to every address, and not to every host."""

from __future__ import annotations

import pytest
from django.utils import timezone
from pytest_django import Settings

from tests.workspaces.notifications.builders import channel, event
from tests.workspaces.notifications.receiver import Receiver
from workspaces.models import Channel
from workspaces.notifications import delivery, outbox

pytestmark = pytest.mark.django_db


class TestReach:
    @pytest.mark.parametrize(
        "host", ["169.254.169.254", "[fe80::1]", "0", "[::ffff:169.254.169.254]", "[fd00:ec2::254]"]
    )
    def test_where_clouds_keep_credentials_no_webhook_goes(self, host: str) -> None:
        channel(f"http://{host}/latest/")
        outbox.post(event())
        delivery.tick(timezone.now())
        assert "may not reach" in Channel.objects.get().last_error

    def test_only_the_hosts_that_the_installation_allows(
        self, receivers: list[Receiver], settings: Settings
    ) -> None:
        receivers.append(Receiver())
        settings.WEBHOOK_HOSTS = ["hooks.example.org"]
        channel(receivers[0].url)
        outbox.post(event())
        assert delivery.tick(timezone.now()) == 0
        assert "is not one of the hosts" in Channel.objects.get().last_error

    def test_by_a_proxy_all_go_to_it_and_the_allowed_hosts_still_hold(
        self, receivers: list[Receiver], settings: Settings
    ) -> None:
        receivers.append(Receiver())
        settings.WEBHOOK_PROXY = receivers[0].url.removesuffix("/hook")
        settings.WEBHOOK_HOSTS = ["hooks.invalid"]
        channel("http://hooks.invalid/team")
        elsewhere = channel("http://other.invalid/team")
        outbox.post(event())
        assert delivery.tick(timezone.now()) == 1
        assert [got.path for got in receivers[0].got] == ["http://hooks.invalid/team"]
        elsewhere.refresh_from_db()
        assert "other.invalid is not one of the hosts" in elsewhere.last_error

    def test_a_name_that_nobody_knows_is_told(self) -> None:
        channel("http://nowhere.invalid/hook")
        outbox.post(event())
        delivery.tick(timezone.now())
        assert "nowhere.invalid is not known" in Channel.objects.get().last_error

    def test_its_own_name_is_asked_for_at_the_address_that_was_checked(
        self, receivers: list[Receiver]
    ) -> None:
        receivers.append(Receiver())
        channel(receivers[0].url.replace("127.0.0.1", "localhost"))
        outbox.post(event())
        delivery.tick(timezone.now())
        (got,) = receivers[0].got
        assert got.headers["host"].startswith("localhost:")
