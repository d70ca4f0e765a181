"""A cluster of no nodes brings up hosts through its provider for a run that needs them, and lets them go when
they are idle."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.hosts.providing import CLUSTER, HELLO, PROVISION, RELEASE, THREE, GrowingHosts, growing, submit
from tests.hub import eventually

pytestmark = [pytest.mark.hosts, pytest.mark.slow]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrowingHosts]:
    with growing(
        tmp_path_factory.mktemp("grown"), PROVIDER_TIMEOUT="30", PROVIDER_JOIN_TIMEOUT="45"
    ) as built:
        yield built


@pytest.fixture(autouse=True)
def _well_again(hosts: GrowingHosts) -> Iterator[None]:
    """Every test ends with a provider that works and no machine left."""
    yield
    hosts.script_of("provision", PROVISION)
    hosts.script_of("release", RELEASE)
    hosts.hub.cancel_all()
    eventually(lambda: hosts.states() == [], 90, "all machines are gone")


def sentence(hosts: GrowingHosts, run: str) -> str:
    return str(hosts.runs.detail(run)["sentence"])


def in_journal(hosts: GrowingHosts, words: str, seconds: float = 60) -> None:
    eventually(lambda: words in hosts.journal(), seconds, f"the journal says {words!r}")


class TestGrowing:
    def test_three_hosts_come_for_a_run_and_go_again(self, hosts: GrowingHosts) -> None:
        assert (hosts.states(), hosts.agents()) == ([], 0)
        run = submit(hosts)
        eventually(
            lambda: sentence(hosts, run).startswith("Scaling up: "), 20, "the run says what it waits for"
        )
        ended = hosts.runs.ended(run, 120)
        assert ended["state"] == "Completed", (ended["sentence"], hosts.journal())
        for rank in range(3):
            assert f"rank {rank} of 3".encode() in hosts.runs.log(run, f"70_driver_log_{rank}.txt")
        assert len({member["node"] for member in hosts.runs.members(run)}) == 3
        assert len(hosts.called("provision")) == 3
        eventually(lambda: hosts.states() == [], 60, "idle nodes go")
        assert hosts.agents() == 0
        assert len(hosts.called("release")) == 3
        assert hosts.cluster()["nodes"] == []
        assert hosts.runs.members(run)[0]["node"], "the history of the run stays"

    def test_a_run_that_can_never_fit_is_refused_at_once(self, hosts: GrowingHosts) -> None:
        source = {"type": "snapshot", "id": hosts.runs.snapshot(main_py=HELLO)}
        four = {**THREE, "process_count": 4, "node_count": 4}
        spec = {
            "source": source,
            "script": "main.py",
            "resources": {"cluster": CLUSTER},
            "distribution": four,
        }
        answer = hosts.runs.client.post("/api/v1/runs/", json=spec)
        assert answer.status_code == httpx.codes.BAD_REQUEST
        assert "grows to 3 nodes" in answer.text


# tests/clusters/provisioning tries these, too, without hosts.
@pytest.mark.long
class TestBadProviders:
    def test_one_that_fails_is_named_and_the_run_starts_once_it_works(self, hosts: GrowingHosts) -> None:
        hosts.script_of("provision", "sys.exit('no quota left')")
        run = submit(hosts, distribution=None)
        eventually(lambda: "no quota left" in sentence(hosts, run), 60, "the run says why")
        in_journal(hosts, "no quota left")
        hosts.script_of("provision", PROVISION)
        assert hosts.runs.ended(run, 120)["state"] == "Completed"

    def test_one_that_hangs_is_ended_and_keeps_no_other_run_waiting(self, hosts: GrowingHosts) -> None:
        hosts.script_of("provision", "import time; (here / 'hangs').touch(); time.sleep(600)")
        run = submit(hosts)
        eventually((hosts.folder / "hangs").exists, 30, "the provider is asked")
        other = hosts.runs.script("print('other')", resources={"cluster": "local"})
        assert hosts.runs.ended(other, 30)["state"] == "Completed", "launches go on"
        in_journal(hosts, "did not answer in time", 90)
        hosts.script_of("provision", PROVISION)
        assert hosts.runs.ended(run, 150)["state"] == "Completed"

    def test_one_that_lies_is_found_out(self, hosts: GrowingHosts) -> None:
        """It says that machines are made, and none comes; later that one is released, and it goes on
        reporting."""
        hosts.script_of("provision", "print(json.dumps({'id': 'thin air'}))")
        run = submit(hosts, distribution=None)
        in_journal(hosts, "no node joined", 100)
        eventually(lambda: hosts.called("release"), 30, "what may have been made is released")
        hosts.script_of("provision", PROVISION)
        hosts.script_of("release", "record_call(lie=True); print('{}')")
        assert hosts.runs.ended(run, 150)["state"] == "Completed"
        in_journal(hosts, "its node still reports", 60)
        eventually(lambda: hosts.states() == [], 60, "the node is revoked and its machine given up")
        assert hosts.cluster()["nodes"] == []
        hosts.script_of("release", RELEASE)
