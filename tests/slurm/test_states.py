"""Every state and reason that a real Slurm shows of a job, as the hub reads them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clusters.backends.slurm.reasons import explain_reason
from clusters.backends.slurm.script import WarningSignal
from clusters.backends.slurm.states import JobPhase
from clusters.backends.slurm.submission import cancel_jobs
from tests.slurm.cluster import SlurmCluster
from tests.slurm.people import Person

pytestmark = [pytest.mark.slurm, pytest.mark.slow]
WARNED = "srun --signal=USR1@600 true"


@pytest.fixture(scope="module", autouse=True)
def minute(slurm: SlurmCluster) -> Iterator[tuple[Person, int]]:
    """A job with the shortest time limit that Slurm has, which passes while the other tests run."""
    person = Person(slurm, "ada")
    # Its task waits for the warning, and then has until the time limit.
    task = "trap 'echo warned' USR1; while :; do sleep 0.2; done"
    job = person.submit(
        f'srun --output=/tmp/warned-%j sh -c "{task}"',
        partition="short",
        time_limit_s=60,
        warning=WarningSignal("USR1", 40),
    )
    person.until(job, "RUNNING")
    yield person, job
    person.leave()


class TestWaiting:
    def test_for_room(self, ada: Person, bo: Person) -> None:
        first = ada.submit(nodes=3, gpus_per_node=4)
        ada.until(first, "RUNNING")
        second = bo.submit(nodes=2, gpus_per_node=1)
        third = bo.submit(gpus_per_node=1)
        assert bo.until(second, "PENDING", "Resources").state.phase is JobPhase.WAITING
        status = bo.until(third, "PENDING", "Priority")
        assert (status.user, status.partition, status.gpus, status.nodes) == ("bo", "main", 1, ())
        assert ada.status(first).nodes == ("n1", "n2", "n3")
        assert ada.status(first).gpus == 12

    def test_held_and_released(self, ada: Person) -> None:
        holder = ada.submit(gpus_per_node=4, nodes=3)
        ada.until(holder, "RUNNING")
        job = ada.submit("true", gpus_per_node=1)
        ada.commands.run(["scontrol", "hold", str(job)])
        assert "release" in explain_reason(ada.until(job, "PENDING", "JobHeldUser").reason)
        ada.cluster.admin("scontrol", "hold", str(job))
        ada.until(job, "PENDING", "JobHeldAdmin")
        ada.cluster.admin("scontrol", "release", str(job))
        cancel_jobs(ada.commands, [holder])
        ada.until(job, "COMPLETED")

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (("Dependency=afterok:{other}",), "Dependency"),
            (("StartTime=now+3600",), "BeginTime"),
            (("Licenses=matlab",), "Licenses"),
            (("Partition=short", "TimeLimit=10"), "PartitionTimeLimit"),
            (("Partition=closed",), "PartitionDown"),
            (("ReqNodeList=n2", "Features=none"), "ReqNodeNotAvail"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_for_something_else(self, ada: Person, bo: Person, change: tuple[str, ...], reason: str) -> None:
        if reason == "ReqNodeNotAvail":
            ada.cluster.admin("scontrol", "update", "node=n2", "state=drain", "reason=bad DIMM")
            change = change[:1]
        other = ada.submit(nodes=3, gpus_per_node=4)
        if reason == "Licenses":
            ada.cluster.admin("scontrol", "update", f"job={other}", "Licenses=matlab")
        job = bo.submit(gpus_per_node=1)
        bo.cluster.admin("scontrol", "update", f"job={job}", *(word.format(other=other) for word in change))
        try:
            status = bo.until(job, "PENDING", reason)
            assert explain_reason(status.reason)
        finally:
            ada.cluster.admin("scontrol", "update", "node=n2", "state=resume")
