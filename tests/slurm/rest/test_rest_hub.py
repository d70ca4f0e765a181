"""Runs of a hub that is no root and has no Slurm: it asks a slurmrestd with tokens of people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.attacks.server.separated import status, uid_of
from tests.hub import eventually
from tests.slurm.cluster import PROJECT
from tests.slurm.hub import CLUSTER, PATIENCE_S
from tests.slurm.login_node.plain_hub import HUB_ACCOUNT
from tests.slurm.people import Person
from tests.slurm.rest.rest_host import OBSERVER, RestHost
from tests.slurm.rest.rest_hub import ADDRESS, RestHub
from tests.slurm.runs.test_runs import ALONE, MEET, WAIT

pytestmark = [pytest.mark.slow, pytest.mark.slurm]
# Goes on until the test makes the file, in a folder that all nodes have.
PATIENT = """
import os, sys, time
print("here", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.1)
print("done", flush=True)
"""


@pytest.fixture(autouse=True)
def _leaves_nothing(slurm_hub: RestHub) -> Iterator[None]:
    yield
    slurm_hub.clear()


@pytest.fixture
def without_token(slurm_hub: RestHub) -> Iterator[RestHub]:
    """The owner's token has expired; afterwards there is a new one."""
    slurm_hub.end_token()
    yield slurm_hub
    slurm_hub.enter_token(slurm_hub.rest.token("ada"))


@pytest.fixture
def full(slurm_hub: RestHub, bo: Person) -> Iterator[Person]:
    """Somebody else has all nodes."""
    bo.until(bo.submit("sleep 600", nodes=3, gpus_per_node=4, cpus_per_task=4, memory_mb=4000), "RUNNING")
    yield bo
    bo.leave()
    slurm_hub.slurm.wait_until_idle()


@pytest.fixture
def signal(slurm_hub: RestHub) -> Iterator[Path]:
    """The file for which runs of the script PATIENT wait."""
    file = slurm_hub.logs / "rest-signal"
    yield file
    file.unlink(missing_ok=True)


def test_the_test_says_what_works_there(slurm_hub: RestHub) -> None:
    account = uid_of(HUB_ACCOUNT)
    assert all(status(slurm_hub.hub.pid(part), "Uid") == [str(account)] * 4 for part in ("web", "worker"))
    checks = slurm_hub.test()
    assert {name for name, check in checks.items() if check["result"] != "ok"} == {
        "submission", "visibility", "python",
    }  # fmt: skip
    assert f"the hub looks as {OBSERVER} until" in checks["token"]["sentence"]
    assert checks["accounts"]["sentence"] == "The hub can submit as ada."


def test_ranks_on_two_nodes_meet_as_the_persons_own_processes(slurm_hub: RestHub) -> None:
    run = slurm_hub.script(MEET, nodes=2, processes=2, resources={"gpus_per_node": 0})
    slurm_hub.completes(run)
    assert b"met [b'1']" in slurm_hub.runs.log(run, "70_driver_log_0.txt")
    alone = slurm_hub.script(ALONE)
    slurm_hub.completes(alone)
    assert slurm_hub.runs.log(alone).split()[0] == b"64101"


def test_a_run_waits_for_a_token_and_goes_on_with_it(without_token: RestHub) -> None:
    run = without_token.script(ALONE)
    sentence = without_token.waits(run, "The token of ada for Slurm expired at")
    assert "scontrol token lifespan=" in sentence
    assert f"/clusters/{CLUSTER}/#slurm-token" in sentence
    # It is the matter of one person: Slurm itself answers.
    assert (without_token.jobs(), without_token.trouble()) == ([], "")
    checks = without_token.test()
    assert checks["accounts"]["result"] == "warning"
    assert "expired" in checks["accounts"]["sentence"]
    without_token.enter_token(without_token.rest.token("ada"))
    without_token.completes(run)


@pytest.mark.parametrize(
    ("account", "words"),
    [("bo", "This is a token of bo"), ("root", "This is a token of root"), ("ada", "expired at")],
)
def test_another_token_is_refused(slurm_hub: RestHub, account: str, words: str) -> None:
    rest = slurm_hub.rest
    token = rest.token(account) if account != "ada" else rest.expired_token(account)
    answer = slurm_hub.runs.client.put(f"{ADDRESS}/slurm-token/", json={"token": token})
    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert words in answer.json()["errors"][0]["message"]


def test_a_token_of_another_slurm_is_refused(slurm_hub: RestHub) -> None:
    token = slurm_hub.rest.token("ada")
    forged = f"{token[:-4]}AAAA"
    answer = slurm_hub.runs.client.put(f"{ADDRESS}/slurm-token/", json={"token": forged})
    assert "Slurm does not accept the token of ada" in answer.json()["errors"][0]["message"]
    answer = slurm_hub.runs.client.put(f"{ADDRESS}/observer-token/", json={"token": forged})
    assert "Slurm does not accept the token of ada" in answer.json()["errors"][0]["message"]


def test_a_token_is_entered_by_the_line_of_the_documents(slurm_hub: RestHub) -> None:
    text = (PROJECT / "docs" / "slurm.md").read_text()
    (block,) = [part for part in text.split("```") if "curl -f -X PUT" in part]
    line = block.replace("https://trainhub.example:8000", slurm_hub.hub.url)
    account = ["setpriv", "--reuid=ada", "--regid=ada", "--init-groups"]
    authority = slurm_hub.rest.folder / "hub-ca.pem"
    authority.write_text((slurm_hub.hub.own_folder / "tls" / "ca.pem").read_text())
    slurm_hub.end_token()
    done = slurm_hub.rest.machine.run(
        *account, "sh", "-ec", line,
        env={
            **slurm_hub.slurm.environment(),
            "TRAINHUB_API_TOKEN": slurm_hub.hub.owner_token(),
            "CURL_CA_BUNDLE": str(authority),
        },
    )  # fmt: skip
    assert json.loads(done.stdout)["account"] == "ada"
    slurm_hub.completes(slurm_hub.script(ALONE))


def test_a_token_that_expires_while_a_run_is_queued(slurm_hub: RestHub, full: Person) -> None:
    run = slurm_hub.script(ALONE)
    slurm_hub.waits(run, "is in Slurm's queue")
    slurm_hub.end_token()
    try:
        full.leave()
        slurm_hub.completes(run)
    finally:
        slurm_hub.enter_token(slurm_hub.rest.token("ada"))


def test_a_running_run_is_canceled_without_a_token(slurm_hub: RestHub) -> None:
    run = slurm_hub.script(WAIT)
    slurm_hub.starts(run)
    slurm_hub.end_token()
    try:
        slurm_hub.cancel(run)
        assert slurm_hub.ended(run)["state"] == "Canceled"
        eventually(lambda: not slurm_hub.jobs(), PATIENCE_S, "its job ends by itself")
    finally:
        slurm_hub.enter_token(slurm_hub.rest.token("ada"))


def test_a_cancel_without_a_token_is_carried_out_with_the_next_one(slurm_hub: RestHub, full: Person) -> None:
    run = slurm_hub.script(ALONE)
    slurm_hub.waits(run, "is in Slurm's queue")
    job = slurm_hub.job(run)
    slurm_hub.end_token()
    slurm_hub.cancel(run)
    assert slurm_hub.ended(run)["state"] == "Canceled"

    def says_so() -> bool:
        messages = [event["message"] for event in slurm_hub.runs.get(f"/runs/{run}/events/")]
        return any(f"job {job} could not be canceled yet" in message for message in messages)

    eventually(says_so, PATIENCE_S, "the run says that Slurm could not be told")
    assert slurm_hub.state(job) == "PENDING"
    slurm_hub.enter_token(slurm_hub.rest.token("ada"))
    eventually(lambda: slurm_hub.state(job) == "CANCELLED", PATIENCE_S, "it is carried out")


def test_a_canceled_job_that_starts_ends_by_itself(slurm_hub: RestHub, full: Person) -> None:
    run = slurm_hub.script(WAIT)
    slurm_hub.waits(run, "is in Slurm's queue")
    job = slurm_hub.job(run)
    slurm_hub.end_token()
    try:
        slurm_hub.cancel(run)
        slurm_hub.ended(run)
        full.leave()
        eventually(lambda: slurm_hub.state(job) == "FAILED", PATIENCE_S, "it ends")
    finally:
        slurm_hub.enter_token(slurm_hub.rest.token("ada"))


@pytest.mark.long
def test_slurmrestd_is_killed_and_back(slurm_hub: RestHub, rest: RestHost, signal: Path) -> None:
    run = slurm_hub.script(PATIENT, arguments=[str(signal)])
    slurm_hub.starts(run)
    rest.kill_daemon()
    try:
        eventually(lambda: "slurmrestd cannot be reached" in slurm_hub.trouble(), PATIENCE_S, "it is noted")
        assert slurm_hub.runs.detail(run)["state"] == "Running"
        later = slurm_hub.script(ALONE)
        slurm_hub.waits(later, "slurmrestd cannot be reached")
        signal.touch()
        slurm_hub.completes(run)
    finally:
        rest.start_daemon()
    slurm_hub.completes(later)
    eventually(lambda: not slurm_hub.trouble(), PATIENCE_S, "the trouble is over")


@pytest.mark.long
def test_an_observer_without_a_token_takes_nothing_for_ended(slurm_hub: RestHub, signal: Path) -> None:
    run = slurm_hub.script(PATIENT, arguments=[str(signal)])
    slurm_hub.starts(run)
    slurm_hub.runs.client.delete(f"{ADDRESS}/observer-token/").raise_for_status()
    try:
        eventually(lambda: "#observer-token" in slurm_hub.trouble(), PATIENCE_S, "it is noted")
        assert slurm_hub.runs.detail(run)["state"] == "Running"
    finally:
        slurm_hub.prepare_login()
    signal.touch()
    slurm_hub.completes(run)


@pytest.mark.long
def test_a_time_limit_ends_a_run(slurm_hub: RestHub) -> None:
    run = slurm_hub.script(WAIT, limits={"timeout_s": 60})
    assert slurm_hub.ended(run)["state"] == "Failed"
    eventually(lambda: not slurm_hub.jobs(), PATIENCE_S, "its job has ended")
