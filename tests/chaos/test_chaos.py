"""Random troubles, then the invariants."""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.chaos.invariants import check_all, tokens_in_use
from tests.chaos.load import Load
from tests.chaos.server_troubles import TROUBLES_OF_SERVERS
from tests.chaos.servers import ChaosServers
from tests.chaos.timeline import Timeline
from tests.chaos.troubles import TROUBLES, Trouble
from tests.chaos.world import ChaosHosts

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.long]
SECONDS = float(os.environ.get("TRAINHUB_CHAOS_SECONDS", "45"))
SEED = int(os.environ.get("TRAINHUB_CHAOS_SEED", "0")) or secrets.randbelow(10**6)


@pytest.mark.parametrize(
    ("kind", "troubles"), [(ChaosHosts, TROUBLES), (ChaosServers, TROUBLES_OF_SERVERS)], ids=["one", "two"]
)
def test_nothing_is_lost_doubled_or_left_over(
    tmp_path: Path, frameworks_python: str, kind: type[ChaosHosts], troubles: Sequence[Trouble]
) -> None:
    """On one server, and on two."""
    timeline = Timeline(tmp_path, SEED, SECONDS)
    installation = kind(tmp_path, frameworks_python)
    try:
        with timeline.explaining(installation):
            installation.start()
            survive(installation, troubles, timeline)
    finally:
        installation.stop()


def survive(installation: ChaosHosts, troubles: Sequence[Trouble], timeline: Timeline) -> None:
    chance, tokens = random.Random(SEED), set[str]()  # noqa: S311 - repeatable
    load = Load(installation, SEED)
    load.start()
    timeline.note("the load begins")
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        time.sleep(chance.uniform(1, 5))
        tokens |= tokens_in_use(installation)
        trouble = chance.choice(troubles)
        timeline.note(f"{trouble.__name__} ...")
        timeline.note(trouble(installation, chance))
    installation.mend()
    timeline.note("all is mended")
    load.close()
    timeline.note(f"{len(load.submitted)} runs were submitted, {len(tokens)} tokens of runs were in use")
    assert load.submitted
    check_all(installation, load.submitted, tokens, timeline.note)
