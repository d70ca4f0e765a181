"""Every state and reason that a real Slurm shows of a job, as the hub reads them."""

from __future__ import annotations

import pytest

from clusters.backends.slurm.client import SlurmClient, read_jobs
from clusters.backends.slurm.command_line import CommandLineClient
from clusters.backends.slurm.errors import SlurmError, SlurmFault
from clusters.backends.slurm.reasons import explain_reason
from clusters.backends.slurm.states import JobPhase
from tests.hub import eventually
from tests.node.accounts import ADA
from tests.slurm.cluster import MEMORY_GROUPS
from tests.slurm.configuration import SLOW_START
from tests.slurm.people import STATE_S, ControllerCommands, Person

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.long]


class TestWaiting:
    def test_for_room(self, ada: Person, bo: Person) -> None:
        first = ada.submit(nodes=3, gpus_per_node=4, time_limit_s=600)
        end = ada.until(first, "RUNNING").end_at
        second = bo.submit(nodes=2, gpus_per_node=1)
        third = bo.submit(gpus_per_node=1)
        assert bo.until(second, "PENDING", "Resources").state.phase is JobPhase.WAITING
        status = bo.until(third, "PENDING", "Priority")
        assert (status.user, status.partition, status.gpus, status.nodes) == ("bo", "main", 1, ())
        assert ada.status(first).nodes == ("n1", "n2", "n3")
        assert ada.status(first).gpus == 12
        # Slurm's estimate: at the time limit of the job that has everything.
        eventually(lambda: bo.status(second).start_at == end, STATE_S, "there is an estimate")

    def test_held_and_released(self, ada: Person) -> None:
        holder = ada.submit(gpus_per_node=4, nodes=3)
        ada.until(holder, "RUNNING")
        job = ada.submit("true", gpus_per_node=1)
        ada.commands.run(["scontrol", "hold", str(job)])
        assert "release" in explain_reason(ada.until(job, "PENDING", "JobHeldUser").reason)
        ada.cluster.admin("scontrol", "hold", str(job))
        ada.until(job, "PENDING", "JobHeldAdmin")
        ada.cluster.admin("scontrol", "release", str(job))
        ada.client.cancel_jobs([holder])
        ada.until(job, "COMPLETED")

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (("Dependency=afterok:{other}",), "Dependency"),
            (("StartTime=now+3600",), "BeginTime"),
            (("Licenses=matlab",), "Licenses"),
            (("Partition=closed",), "PartitionDown"),
        ],
    )
    def test_for_something_else(self, ada: Person, bo: Person, change: tuple[str, ...], reason: str) -> None:
        other = ada.submit(nodes=3, gpus_per_node=4)
        bo.cluster.admin("scontrol", "update", f"job={other}", "Licenses=matlab")
        job = bo.submit(gpus_per_node=1)
        bo.cluster.admin("scontrol", "update", f"job={job}", *(word.format(other=other) for word in change))
        assert explain_reason(bo.until(job, "PENDING", reason).reason)

    def test_for_a_shorter_time_limit(self, ada: Person) -> None:
        job = ada.submit(partition="short", time_limit_s=600)
        assert "shorter one" in explain_reason(ada.until(job, "PENDING", "PartitionTimeLimit").reason)

    def test_for_a_job_that_failed(self, ada: Person) -> None:
        failed = ada.submit("exit 1")
        job = ada.submit("true")
        ada.cluster.admin("scontrol", "hold", str(job))
        ada.until(failed, "FAILED")
        ada.cluster.admin("scontrol", "update", f"job={job}", f"Dependency=afterok:{failed}")
        ada.cluster.admin("scontrol", "release", str(job))
        assert "Cancel it" in explain_reason(ada.until(job, "PENDING", "DependencyNeverSatisfied").reason)

    def test_for_a_drained_node(self, ada: Person) -> None:
        ada.cluster.admin("scontrol", "update", "node=n2", "state=drain", "reason=bad DIMM")
        try:
            job = ada.submit("true", nodes=3, gpus_per_node=1)
            status = ada.until(job, "PENDING", "ReqNodeNotAvail")
            assert "n2" in explain_reason(status.reason)
        finally:
            ada.cluster.admin("scontrol", "update", "node=n2", "state=resume")
        ada.until(job, "COMPLETED")

    def test_for_the_limit_of_a_qos(self, ada: Person) -> None:
        first = ada.submit(qos="small", gpus_per_node=1)
        ada.until(first, "RUNNING")
        second = ada.submit(qos="small", gpus_per_node=1)
        status = ada.until(second, "PENDING", "QOSMaxGRESPerUser")
        assert "no more GPUs or other devices of one user" in explain_reason(status.reason)


class TestEnds:
    # As accounting calls them.
    ada_account: int | str = ADA
    root_account: int | str = 0

    def test_well(self, ada: Person) -> None:
        job = ada.submit("true")
        status = ada.until(job, "COMPLETED")
        assert (status.exit_code, status.signal, status.restart_count) == (0, None, 0)
        times = [status.submitted_at, status.start_at, status.end_at]
        assert times == sorted(filter(None, times))

    def test_with_another_exit_code(self, ada: Person) -> None:
        status = ada.until(ada.submit("exit 7"), "FAILED")
        assert (status.exit_code, status.signal, status.reason) == (7, None, "NonZeroExitCode")

    def test_by_a_signal(self, ada: Person) -> None:
        status = ada.until(ada.submit("kill -9 $$"), "FAILED")
        assert (status.exit_code, status.signal) == (0, 9)

    def test_canceled_by_its_owner_and_by_somebody_else(self, ada: Person, bo: Person) -> None:
        own, other, waiting = (ada.submit() for _ in range(3))
        ada.until(other, "RUNNING")
        with pytest.raises(SlurmError, match="Access/permission denied") as refusal:
            bo.client.cancel_jobs([other])
        assert refusal.value.fault is SlurmFault.REFUSED
        ada.client.cancel_jobs([own, 999_999])
        bo.cluster.admin("scancel", str(other), str(waiting))
        expected = {own: self.ada_account, other: self.root_account, waiting: self.root_account}

        def canceled_by() -> bool:
            jobs = read_jobs(ada.client, expected, has_accounting=True)
            return {job_id: job.canceled_by for job_id, job in jobs.items()} == expected

        # The end reaches accounting a moment after the controller knows it.
        eventually(canceled_by, STATE_S, "accounting says who canceled")
        ada.client.cancel_jobs([own])

    @pytest.mark.skipif(not MEMORY_GROUPS.is_dir(), reason="needs control groups of version 1 for memory")
    def test_for_want_of_memory(self, ada: Person) -> None:
        job = ada.submit("head -c 300000000 /dev/zero | tail -n 1 | wc", memory_mb=100)
        status = ada.until(job, "OUT_OF_MEMORY")
        assert status.state.phase is JobPhase.FAILED

    def test_for_want_of_a_node_that_can_do_it(self, ada: Person) -> None:
        with pytest.raises(SlurmError, match="Requested node configuration is not available"):
            ada.submit(gpus_per_node=1, memory_mb=10**9)


class TestInterruptions:
    def impatient_client(self, ada: Person) -> SlurmClient:
        conf = ada.cluster.client_conf(MessageTimeout="1")
        return CommandLineClient(ControllerCommands(ada.cluster, "ada", conf))

    def test_configuring_while_its_nodes_are_made_ready(self, ada: Person) -> None:
        job = ada.submit(name=SLOW_START)
        assert ada.until(job, "CONFIGURING").state.phase is JobPhase.STARTING
        ada.until(job, "RUNNING")

    def test_past_its_deadline(self, ada: Person) -> None:
        ada.until(ada.submit(nodes=3, gpus_per_node=4), "RUNNING")
        job = ada.submit(gpus_per_node=1, time_limit_s=60)
        ada.cluster.admin("scontrol", "update", f"job={job}", "Deadline=now+62")
        assert ada.until(job, "DEADLINE").state.phase is JobPhase.FAILED

    def test_suspended_and_resumed(self, ada: Person) -> None:
        job = ada.submit("sleep 1")
        ada.until(job, "RUNNING")
        ada.cluster.admin("scontrol", "suspend", str(job))
        assert ada.until(job, "SUSPENDED").state.phase is JobPhase.SUSPENDED
        ada.cluster.admin("scontrol", "resume", str(job))
        ada.until(job, "COMPLETED")

    def test_requeued(self, ada: Person) -> None:
        job = ada.submit(can_requeue=True)
        ada.until(job, "RUNNING")
        ada.cluster.admin("scontrol", "requeue", str(job))
        status = ada.until(job, "PENDING", "BeginTime")
        assert (status.restart_count, status.nodes) == (1, ())
        # At once, its script would be removed by the end of the first attempt.
        ada.cluster.admin("scontrol", "update", f"job={job}", "StartTime=now+2")
        assert ada.until(job, "RUNNING").restart_count == 1

    def test_requeued_and_held(self, ada: Person) -> None:
        job = ada.submit(can_requeue=True)
        ada.until(job, "RUNNING")
        ada.cluster.admin("scontrol", "requeuehold", "State=SpecialExit", str(job))
        status = ada.until(job, "SPECIAL_EXIT")
        assert status.state.phase is JobPhase.WAITING
        assert explain_reason(status.reason)

    def test_preempted_and_back_in_the_queue(self, ada: Person, bo: Person) -> None:
        job = ada.submit(nodes=3, gpus_per_node=4, can_requeue=True)
        ada.until(job, "RUNNING")
        bo.until(bo.submit("true", nodes=3, gpus_per_node=4, partition="urgent"), "COMPLETED")
        assert ada.until(job, "PENDING", "BeginTime").restart_count == 1

    def test_preempted_for_good(self, ada: Person, bo: Person) -> None:
        job = ada.submit(nodes=3, gpus_per_node=4, partition="spare")
        ada.until(job, "RUNNING")
        bo.until(bo.submit("true", nodes=3, gpus_per_node=4, partition="urgent"), "COMPLETED")
        assert ada.until(job, "PREEMPTED").state.phase is JobPhase.LOST

    def test_completing_while_a_task_does_not_end(self, ada: Person) -> None:
        job = ada.submit("trap '' TERM; while :; do sleep 0.1; done")
        ada.until(job, "RUNNING")
        ada.client.cancel_jobs([job])
        assert ada.until(job, "COMPLETING").state.phase is JobPhase.ENDING
        ada.until(job, "CANCELLED")

    def test_accounting_is_away_for_a_while(self, ada: Person) -> None:
        job = ada.submit("true")
        ada.until(job, "COMPLETED")
        ada.cluster.kill_accounting()
        try:
            with pytest.raises(SlurmError, match="slurmdbd") as error:
                ada.client.jobs_of_accounting([job])
            assert error.value.fault is SlurmFault.CONTROLLER_AWAY
            assert ada.status(job).state.word == "COMPLETED"
        finally:
            ada.cluster.start_accounting()
        assert eventually(lambda: ada.client.jobs_of_accounting([job]), STATE_S, "accounting has heard of it")

    def test_the_controller_is_away_for_a_while(self, ada: Person) -> None:
        job = ada.submit()
        ada.until(job, "RUNNING")
        # Of a job of the last seconds, slurmctld itself would know nothing any more.
        ada.cluster.wait_for_saved_state()
        ada.cluster.kill_controller()
        with pytest.raises(SlurmError, match="controller") as error:
            read_jobs(self.impatient_client(ada), [job], has_accounting=True)
        assert error.value.fault is SlurmFault.CONTROLLER_AWAY
        ada.cluster.start_controller()
        eventually(ada.cluster.is_up, STATE_S, "slurmctld is back")
        assert ada.status(job).state.phase is JobPhase.RUNNING


def test_a_time_limit_comes_with_a_warning(minute: tuple[Person, int]) -> None:
    person, job = minute
    status = person.until_ended(job)
    assert (status.state.word, status.reason) == ("TIMEOUT", "TimeLimit")
    assert (status.end_at or 0) - (status.start_at or 0) >= 60
    machine = person.cluster.nodes[status.nodes[0]]
    assert (machine.folder / f"warned-{job}").read_text().startswith("warned\n")
