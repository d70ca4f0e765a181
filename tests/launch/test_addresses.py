from __future__ import annotations

import pytest

from trainhub_launch.addresses import is_loopback


@pytest.mark.parametrize(
    ("host", "is_it"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("hub.localhost", True),
        ("", False),
        ("10.0.0.1", False),
        ("hub.example.org", False),
    ],
)
def test_addresses_know_this_machine_itself(host: str, is_it: bool) -> None:
    assert is_loopback(host) is is_it
