from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.workspaces.notifications.receiver import Receiver


@pytest.fixture
def receivers() -> Iterator[list[Receiver]]:
    found: list[Receiver] = []
    yield found
    for receiver in found:
        receiver.stop()
