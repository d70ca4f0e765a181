"""S20 and the row "SSRF": a webhook that reaches what its author does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.utils import timezone
from pytest_django import Settings

from tests.people import make_workspace
from tests.workspaces.notifications.receiver import Receiver, close, status
from workspaces.models import Channel
from workspaces.notifications import delivery, outbox
from workspaces.notifications.addresses import may_reach
from workspaces.notifications.events import Event
from workspaces.notifications.url_policy import UrlError, check_url

METADATA = "169.254.169.254"
NEVER = [
    METADATA,
    "169.254.0.23",
    "0.0.0.0",  # noqa: S104
    "0.1.2.3",
    "224.0.0.1",
    "239.255.255.250",
    "255.255.255.255",
    "240.0.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fd00:c1::a9fe:a9fe",
    "fd00:42::42",
    "::ffff:169.254.169.254",
    "::169.254.169.254",
    "::ffff:100.100.100.200",
    "::ffff:0.0.0.0",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::168.63.129.16",
    "64:ff9b:1::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "2002:a83f:8110::1",
    "2001:0:a9fe:a9fe::1",
    "2001:0:1:1:0:0:5601:5601",
    "fe80::5efe:a9fe:a9fe",
    "2001:db8::5efe:169.254.169.254",
    "2001:db8::200:5efe:169.254.169.254",
]
LOOPBACK = [
    "127.0.0.1",
    "127.8.8.8",
    "::1",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::127.0.0.1",
    "2002:7f00:1::1",
]
OTHERS = [
    "10.0.0.7",
    "192.168.1.4",
    "172.16.0.1",
    "93.184.215.14",
    "2606:2800:21f::1",
    "fd12::1",
    "64:ff9b::10.0.0.7",
]


class TestAddresses:
    @pytest.mark.parametrize("address", NEVER)
    def test_credentials_of_clouds_and_addresses_of_nobody_are_refused(
        self, settings: Settings, address: str
    ) -> None:
        settings.IS_ON_LOOPBACK_ONLY, settings.WEBHOOK_HOSTS = True, [address]
        assert not may_reach(address, address, 80)

    @pytest.mark.parametrize("address", LOOPBACK)
    def test_the_loopback_of_an_open_hub_is_refused(self, settings: Settings, address: str) -> None:
        settings.IS_ON_LOOPBACK_ONLY = False
        assert not may_reach(address, address, 8711)

    @pytest.mark.parametrize("address", LOOPBACK)
    def test_a_hub_for_this_machine_alone_reaches_its_programs_but_not_itself(
        self, settings: Settings, address: str
    ) -> None:
        settings.IS_ON_LOOPBACK_ONLY, settings.OWN_PORTS = True, {8000}
        assert may_reach(address, address, 8711)
        assert not may_reach(address, address, 8000)

    def test_an_operator_may_name_a_host_on_the_loopback(self, settings: Settings) -> None:
        settings.IS_ON_LOOPBACK_ONLY, settings.OWN_PORTS, settings.WEBHOOK_HOSTS = (
            False,
            {8000},
            ["localhost"],
        )
        assert may_reach("127.0.0.1", "localhost", 8711)
        assert not may_reach("127.0.0.1", "localhost", 8000)
        assert not may_reach("127.0.0.1", "other.example", 8711)

    @pytest.mark.parametrize("address", OTHERS)
    def test_receivers_on_the_teams_network_are_reached(self, settings: Settings, address: str) -> None:
        settings.IS_ON_LOOPBACK_ONLY = False
        assert may_reach(address, address, 443)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_SET",
        "ftp://127.0.0.1/",
        "unix:///run/valkey.sock",
        "//127.0.0.1/",
        "http://user:pw@127.0.0.1/",
        "http://127.0.0.1:0/",
        "http://[::1/",
        "http://ho st/",
        "http://host/\n",
        "http:///nothing",
    ],
)
def test_other_schemes_passwords_and_broken_addresses_are_refused(url: str) -> None:
    with pytest.raises(UrlError):
        check_url(url)


@pytest.mark.django_db
class TestDelivery:
    @pytest.fixture
    def receiver(self) -> Iterator[Receiver]:
        found = Receiver()
        yield found
        found.stop()

    def deliver(self, target: str) -> Channel:
        workspace = make_workspace()
        channel = Channel.objects.create(
            workspace=workspace, kind="webhook", name="x", target=target, events=["run.failed"]
        )
        body = {"event": "run.failed", "text": "t", "url": "http://hub/"}
        outbox.post(
            Event("run.failed", "run:1", timezone.now(), ("run.failed",), (workspace.pk,), lambda _: body)
        )
        delivery.tick(timezone.now())
        channel.refresh_from_db()
        return channel

    @pytest.mark.parametrize(
        "host", ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "[::ffff:a9fe:a9fe]"]
    )
    def test_other_spellings_of_the_metadata_address_are_refused(self, host: str) -> None:
        assert "may not reach" in self.deliver(f"http://{host}/latest/meta-data/").last_error

    def test_a_program_on_the_machine_of_an_open_hub_gets_nothing(
        self, receiver: Receiver, settings: Settings
    ) -> None:
        settings.IS_ON_LOOPBACK_ONLY = False
        for host in ("127.0.0.1", "localhost", "2130706433"):
            channel = self.deliver(receiver.url.replace("127.0.0.1", host))
            assert "WEBHOOK_HOSTS" in channel.last_error
            channel.delete()
        assert receiver.got == []

    def test_the_hub_sends_nothing_to_its_own_ports(self, receiver: Receiver, settings: Settings) -> None:
        settings.OWN_PORTS = {receiver.server_address[1]}
        assert "may not reach" in self.deliver(receiver.url).last_error
        assert receiver.got == []

    def test_a_redirect_is_not_followed(self, receiver: Receiver) -> None:
        receiver.answer = status(302, Location=f"http://{METADATA}/latest/")
        assert "redirects are not followed" in self.deliver(receiver.url).last_error

    def test_a_closed_port_and_a_port_that_speaks_otherwise_look_the_same(self, receiver: Receiver) -> None:
        receiver.answer = close
        other = self.deliver(receiver.url)
        error = other.last_error
        other.delete()
        tls = self.deliver(receiver.url.replace("http://", "https://"))
        assert tls.last_error == error
        tls.delete()
        assert self.deliver("http://127.0.0.1:9/hook").last_error == error
