"""A real slurmrestd: what it takes, and what its refusals are read as."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from clusters.backends.slurm.client import read_jobs
from clusters.backends.slurm.command_line import CommandLineClient
from clusters.backends.slurm.errors import SlurmError, SlurmFault
from clusters.backends.slurm.examination import CheckResult, examine
from clusters.backends.slurm.rest.http_calls import RestServer
from clusters.backends.slurm.rest.rest_client import RestClient
from clusters.backends.slurm.rest.tokens import parse_token
from clusters.backends.slurm.settings import SlurmSettings
from tests.hub import eventually
from tests.slurm.cluster import STARTED_S
from tests.slurm.people import PLAIN, STATE_S, Person
from tests.slurm.rest.rest_host import OBSERVER, RestHost

pytestmark = [pytest.mark.slurm, pytest.mark.slow]
LIMITED = replace(
    PLAIN, cpus_per_task=2, gpus_per_node=2, nodes=2, time_limit_s=300, qos="normal", account="team"
)


@pytest.fixture(scope="module")
def observer(rest: RestHost) -> RestClient:
    return rest.client(OBSERVER)


@pytest.fixture
def expired(rest: RestHost) -> RestClient:
    return rest.client("ada", rest.expired_token("ada"))


def fault_of(call: object, *arguments: object, **options: object) -> SlurmFault:
    with pytest.raises(SlurmError) as error:
        call(*arguments, **options)  # type: ignore[operator]
    return error.value.fault


class TestJobs:
    def test_get_all_that_their_script_asks_for(self, ada: Person, observer: RestClient) -> None:
        name = "run \"a\" 'b' $c"
        job = ada.client.submit(replace(LIMITED, name=name))
        ada.jobs.append(job)
        ada.until(job, "RUNNING")
        shown = ada.cluster.admin("scontrol", "show", "job", "-o", str(job))
        for text in (
            "Requeue=0", "TimeLimit=00:05:00", "NumNodes=2", "CPUs/Task=2", "NtasksPerN:B:S:C=1:",
            "MinMemoryNode=50M", "TresPerNode=gres:gpu:2", "Account=team", "QOS=normal", "UserId=ada(",
            "WorkDir=/tmp", "StdOut=/dev/null",
        ):  # fmt: skip
            assert text in shown
        assert observer.jobs_named(name) == [job]
        (status,) = read_jobs(observer, [job], has_accounting=True).values()
        assert (status.user, status.gpus, status.nodes) == ("ada", 4, ("n1", "n2"))
        assert job in [item.job_id for item in observer.queue_of("main")]

    def test_of_others_cannot_be_canceled(self, ada: Person, observer: RestClient, bo: Person) -> None:
        job = ada.submit()
        assert fault_of(bo.client.cancel_jobs, [job]) is SlurmFault.REFUSED
        assert fault_of(observer.cancel_jobs, [job]) is SlurmFault.REFUSED
        ada.client.cancel_jobs([999_999, job])
        eventually(lambda: ada.status(job).state.is_final, STATE_S, "it is canceled")

    def test_that_nobody_has(self, observer: RestClient) -> None:
        assert observer.jobs_of_controller([999_999]) == {}
        assert observer.jobs_of_controller([999_998, 999_999]) == {}
        assert observer.jobs_of_accounting([999_998, 999_999]) == {}

    def test_of_accounting_are_those_that_were_asked_for(self, ada: Person, observer: RestClient) -> None:
        jobs = [ada.submit("exit 3"), ada.submit("kill -9 $$"), ada.submit("true")]
        for job in jobs:
            ada.until_ended(job)
        wanted = jobs[:2]
        eventually(lambda: len(observer.jobs_of_accounting(wanted)) == 2, STATE_S, "they are known")
        ended = observer.jobs_of_accounting(wanted)
        assert [(ended[job].state.word, ended[job].signal) for job in wanted] == [
            ("FAILED", None),
            ("FAILED", 9),
        ]

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"partition": "gpus"}, "Invalid partition name"),
            ({"qos": "no-such-qos"}, "Invalid qos"),
            ({"gpus_per_node": 63}, "Requested node configuration is not available"),
        ],
    )
    def test_that_cannot_be(self, ada: Person, change: dict[str, object], words: str) -> None:
        with pytest.raises(SlurmError, match=f"Slurm refused: {words}") as error:
            ada.client.submit(replace(PLAIN, **change))  # type: ignore[arg-type]
        assert error.value.fault is SlurmFault.REFUSED


class TestTokens:
    def test_say_whose_they_are_and_when_they_end(self, rest: RestHost) -> None:
        claims = parse_token(rest.token("ada", 600))
        assert claims.account == "ada"
        assert 590 < claims.expires_at.timestamp() - time.time() < 610

    def test_that_have_expired_are_refused_for_all(self, expired: RestClient) -> None:
        for call, arguments in (
            (expired.submit, [PLAIN]),
            (expired.cancel_jobs, [[999_999]]),
            (expired.jobs_of_controller, [[999_998, 999_999]]),
            (expired.jobs_of_controller, [[999_999]]),
            (expired.jobs_of_accounting, [[999_999]]),
            (expired.all_nodes, []),
            (expired.partition, ["main"]),
            (expired.calls.check_token, []),
        ):
            assert fault_of(call, *arguments) is SlurmFault.TOKEN, call

    def test_of_others_are_refused(self, rest: RestHost) -> None:
        other = RestClient(replace(rest.client("ada").calls, account="bo"))
        assert fault_of(other.submit, PLAIN) is SlurmFault.TOKEN

    def test_with_another_signature_are_refused(self, rest: RestHost) -> None:
        token = rest.token("ada")
        assert fault_of(rest.client("ada", token[:-4] + "AAAA").calls.check_token) is SlurmFault.TOKEN

    def test_that_are_none(self, rest: RestHost) -> None:
        calls = rest.client("ada").calls
        assert fault_of(replace(calls, token="x").check_token) is SlurmFault.TOKEN
        assert fault_of(replace(calls, token="").check_token) is SlurmFault.TOKEN

    def test_that_are_good(self, observer: RestClient) -> None:
        observer.calls.check_token()


class TestServer:
    def test_of_another_authority_gets_no_token(self, rest: RestHost, observer: RestClient) -> None:
        other = RestClient(replace(observer.calls, server=RestServer(rest.url)))
        with pytest.raises(SlurmError, match="is not trusted") as error:
            other.all_nodes()
        assert error.value.fault is SlurmFault.UNREACHABLE

    def test_that_is_not_there(self, observer: RestClient) -> None:
        nobody = RestServer("http://127.0.0.1:9")
        with pytest.raises(SlurmError, match=r"cannot be reached at http://127\.0\.0\.1:9") as error:
            RestClient(replace(observer.calls, server=nobody)).all_nodes()
        assert error.value.fault is SlurmFault.UNREACHABLE

    def test_of_another_version_is_named(self, rest: RestHost, observer: RestClient) -> None:
        rest.restart_daemon("openapi/v0.0.37")
        try:
            with pytest.raises(SlurmError, match=r"speaks v0\.0\.37; TrainHub knows v0\.0\.38") as error:
                observer.greeting()
            assert error.value.fault is SlurmFault.VERSION
            assert fault_of(observer.all_nodes) is SlurmFault.VERSION
        finally:
            rest.restart_daemon()

    def test_without_accounting(self, rest: RestHost, observer: RestClient) -> None:
        rest.restart_daemon("openapi/v0.0.38")
        try:
            assert not observer.has_accounting()
            assert observer.all_nodes()
        finally:
            rest.restart_daemon()

    def test_that_is_killed_and_back(self, rest: RestHost, observer: RestClient) -> None:
        rest.kill_daemon()
        try:
            eventually(lambda: not rest.answers(), STARTED_S, "it is gone")
            # The proxy before it answers in its place.
            assert fault_of(observer.all_nodes) is SlurmFault.UNREACHABLE
        finally:
            rest.start_daemon()
        eventually(rest.answers, STARTED_S, "it is back")
        assert len(observer.all_nodes()) == 3

    def test_its_settings_can_be_tested(self, observer: RestClient) -> None:
        checks = {check.name: check for check in examine(SlurmSettings("main"), observer, may_submit=False)}
        assert {name for name, check in checks.items() if check.result is not CheckResult.OK} == {
            "submission", "visibility", "python",
        }  # fmt: skip
        assert checks["version"].sentence == "slurmrestd of Slurm 22.05.8 answers, and speaks v0.0.38."
        assert checks["partition"].sentence.startswith("The partition main is up; 3 of 3 nodes are usable")
        (*_, missing) = examine(SlurmSettings("gpus"), observer, may_submit=False)
        assert (missing.name, missing.result) == ("partition", CheckResult.ERROR)


def test_nodes_are_as_the_commands_show_them(ada: Person, observer: RestClient) -> None:
    cluster = ada.cluster
    ada.until(ada.submit(gpus_per_node=3), "RUNNING")
    cluster.admin("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=bad DIMM")
    try:
        ours = {node.name: node for node in observer.all_nodes()}
        theirs = {node.name: node for node in CommandLineClient(ada.commands).all_nodes()}
        assert ours == theirs
        assert observer.partition("short") == CommandLineClient(ada.commands).partition("short")
        assert observer.partition_names() == CommandLineClient(ada.commands).partition_names()
    finally:
        cluster.admin("scontrol", "update", "NodeName=n3", "State=RESUME")
        cluster.wait_for_node("n3", "idle")
