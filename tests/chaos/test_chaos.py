"""Random troubles, then the invariants."""

from __future__ import annotations

import logging
import os
import random
import secrets
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.chaos.invariants import check_all, tokens_in_use
from tests.chaos.load import Load
from tests.chaos.servers import TROUBLES_OF_SERVERS, ChaosServers
from tests.chaos.troubles import TROUBLES, Trouble
from tests.chaos.world import ChaosHosts

log = logging.getLogger(__name__)
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
    installation = kind(tmp_path, frameworks_python)
    try:
        installation.start()
        survive(installation, troubles)
    finally:
        installation.stop()


def survive(installation: ChaosHosts, troubles: Sequence[Trouble]) -> None:
    log.warning("seed %s, %.0f s", SEED, SECONDS)
    chance, tokens = random.Random(SEED), set[str]()  # noqa: S311 - repeatable
    load = Load(installation, SEED)
    load.start()
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        time.sleep(chance.uniform(1, 5))
        tokens |= tokens_in_use(installation)
        trouble = chance.choice(troubles)
        log.warning("%s", trouble(installation, chance))
    installation.mend()
    load.close()
    log.warning("%s runs were submitted", len(load.submitted))
    assert load.submitted
    check_all(installation, load.submitted, tokens)
