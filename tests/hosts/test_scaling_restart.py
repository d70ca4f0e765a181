"""The hub's worker dies in the middle of a call to a provider."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.providing import PROVISION, GrowingHosts, growing, submit
from tests.hub import eventually

pytestmark = [pytest.mark.hosts, pytest.mark.slow]


@pytest.fixture
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrowingHosts]:
    with growing(
        tmp_path_factory.mktemp("grown"), PROVIDER_TIMEOUT="20", PROVIDER_JOIN_TIMEOUT="45"
    ) as built:
        yield built


def test_a_restart_in_the_middle_of_a_call_loses_no_machine(hosts: GrowingHosts) -> None:
    hosts.script_of("provision", f"import time; time.sleep(3)\n{PROVISION}")
    run = submit(hosts)
    eventually(lambda: "provisioning" in hosts.states(), 30, "the provider is being asked")
    hosts.hub.kill("worker")
    assert hosts.runs.ended(run, 300)["state"] == "Completed", hosts.journal()
    eventually(lambda: hosts.states() == [], 90, "all of them go")
    assert hosts.agents() == 0
