"""Answers of Slurm's commands as text, also those of a newer Slurm and of a hostile user."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from clusters.backends.slurm.client import read_jobs
from clusters.backends.slurm.command_line import CommandLineClient
from clusters.backends.slurm.errors import SlurmError, SlurmFault, failed_call
from clusters.backends.slurm.job_list import job_ids_by_name, read_ended_jobs
from clusters.backends.slurm.nodes import parse_time_limit, read_nodes, read_partition
from clusters.backends.slurm.reasons import explain_reason
from clusters.backends.slurm.states import STATES, JobPhase, parse_state
from clusters.backends.slurm.submission import cancel_jobs, submit_job

ROW = (
    "7|RUNNING|0|1|n[1-2]|1795969737|1795973337|1795969730|ada|main|cpu=2,gres/gpu=4,gres/gpu:a100=4"
    "|N/A|None|\n"
)
NODE = (
    "NodeName=g1 CPUAlloc=2 CPUTot=64 Gres=gpu:a100:4(S:0-1),gpu:h100:2,nvme:1 GresDrain=N/A "
    "GresUsed=gpu:a100:1(IDX:0,2),gpu:h100:0(IDX:N/A) OS=Linux 6 #1 SMP Name=no RealMemory=500000 AllocMem=9 "
    "State=DOWN*+DRAIN+POWERED_DOWN ThreadsPerCore=1 Partitions=main,short Future=new "
    "Reason=State=IDLE [x] bad [root@1795969739]\n"
)


class Answers:
    """Commands whose answers are given by the first word of the call."""

    owner = "ada"

    def __init__(self, **answers: str | SlurmError) -> None:
        self.answers = answers
        self.calls: list[list[str]] = []

    def run(self, argv: Sequence[str], stdin: str = "", timeout_s: float = 0) -> str:
        self.calls.append([*argv])
        answer = self.answers[argv[0]]
        if isinstance(answer, SlurmError):
            raise answer
        return answer


class TestJobs:
    def test_a_running_one(self) -> None:
        (job,) = read_jobs(CommandLineClient(Answers(squeue=ROW)), [7], has_accounting=False).values()
        assert (job.job_id, job.state.phase, job.nodes, job.gpus) == (7, JobPhase.RUNNING, ("n1", "n2"), 4)
        assert (job.restart_count, job.exit_code, job.signal, job.reason) == (1, None, None, "None")
        assert (job.submitted_at, job.start_at, job.end_at) == (1795969730, 1795969737, 1795973337)

    def test_a_reason_with_the_separator(self) -> None:
        (job,) = read_jobs(
            CommandLineClient(Answers(squeue=ROW.replace("None", "a|b"))), [7], has_accounting=False
        ).values()
        assert job.reason == "a|b"

    def test_a_state_of_a_newer_slurm(self) -> None:
        text = ROW.replace("RUNNING", "HIBERNATING")
        (job,) = read_jobs(CommandLineClient(Answers(squeue=text)), [7], has_accounting=False).values()
        assert (job.state.phase, job.state.word) == (JobPhase.UNKNOWN, "HIBERNATING")
        assert not job.state.is_final

    @pytest.mark.parametrize(
        ("word", "shown"), [("RUNNING", "COMPLETING"), ("FAILED", "PREEMPTED"), ("CANCELLED", "CANCELLED")]
    )
    def test_one_that_has_to_make_room(self, word: str, shown: str) -> None:
        """Within its grace period it may end by itself, and Slurm calls it what its script ended as."""
        text = ROW.replace("RUNNING", word).replace("|N/A|", "|1795969740|")
        (job,) = read_jobs(CommandLineClient(Answers(squeue=text)), [7], has_accounting=False).values()
        assert job.state.word == shown

    @pytest.mark.parametrize("text", ["7|RUNNING\n", "x" + ROW, "hello\n", ROW.replace("n[1-2]", "n[1-")])
    def test_what_cannot_be_read_is_no_empty_answer(self, text: str) -> None:
        with pytest.raises(SlurmError, match="cannot read what squeue") as error:
            read_jobs(CommandLineClient(Answers(squeue=text)), [7], has_accounting=False)
        assert error.value.fault is SlurmFault.UNREADABLE

    def test_those_that_squeue_has_forgotten(self) -> None:
        sacct = "8|CANCELLED by 1000|0:15|n1|1|2|1|ada|main|gres/gpu=1|None\n"
        sacct += "9|RUNNING|0:0|n1|1|Unknown|1|ada|main||\n"
        commands = Answers(squeue=ROW, sacct=sacct)
        jobs = read_jobs(CommandLineClient(commands), [7, 8, 9], has_accounting=True)
        assert jobs.keys() == {7, 8}
        assert (jobs[8].canceled_by, jobs[8].exit_code, jobs[8].signal, jobs[8].gpus) == (1000, 0, 15, 1)
        assert [call[0] for call in commands.calls] == ["squeue", "sacct"]
        assert commands.calls[1][-1] == "8,9"

    def test_accounting_that_is_away_hides_no_others(self) -> None:
        away = failed_call("sacct", 1, "sacct: error: DBD: Unable to connect", is_remote=False)
        commands = Answers(squeue=ROW, sacct=away)
        assert read_jobs(CommandLineClient(commands), [7, 8], has_accounting=True).keys() == {7}
        with pytest.raises(SlurmError, match="slurmdbd"):
            read_ended_jobs(commands, [8])

    def test_one_that_slurm_does_not_know(self) -> None:
        unknown = failed_call("squeue", 1, "slurm_load_jobs error: Invalid job id specified", is_remote=False)
        assert read_jobs(CommandLineClient(Answers(squeue=unknown)), [7], has_accounting=False) == {}

    def test_none_are_never_asked_for(self) -> None:
        commands = Answers()
        assert (
            read_jobs(CommandLineClient(commands), [], has_accounting=False)
            == read_ended_jobs(commands, [])
            == {}
        )
        cancel_jobs(commands, [])
        assert commands.calls == []

    def test_many_take_few_calls(self) -> None:
        commands = Answers(squeue="")
        read_jobs(CommandLineClient(commands), range(1, 4002), has_accounting=False)
        assert len(commands.calls) == 3

    @pytest.mark.parametrize("name", ["a,b", "", "-x", "a b", "a\nb"])
    def test_a_name_that_would_mean_several(self, name: str) -> None:
        with pytest.raises(ValueError, match="several names"):
            job_ids_by_name(Answers(), name)

    @pytest.mark.parametrize(("answer", "number"), [("17\n", 17), ("17;east\n", 17)])
    def test_the_number_of_a_new_one(self, answer: str, number: int) -> None:
        assert submit_job(Answers(sbatch=answer), "#!/bin/sh\n") == number

    def test_no_number(self) -> None:
        with pytest.raises(SlurmError, match="instead of a job's number"):
            submit_job(Answers(sbatch="Welcome!\n"), "#!/bin/sh\n")


def test_every_state_has_a_sentence() -> None:
    for word, state in STATES.items():
        assert parse_state(word) == (state, None)
        assert state.sentence.endswith(".")
    assert parse_state("CANCELLED by 64101") == (STATES["CANCELLED"], 64101)
    assert parse_state("CANCELLED+")[0] is STATES["CANCELLED"]


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("None", ""),
        ("(null)", ""),
        ("Resources", "Waits until enough nodes"),
        ("ReqNodeNotAvail, UnavailableNodes:n[1-2]", "reserved. (UnavailableNodes:n[1-2])"),
        ("ReqNodeNotAvail,_May_be_reserved_for_other_job", "(_May_be_reserved_for_other_job)"),
        ("QOSMaxGRESPerUser", "The QOS allows no more GPUs or other devices of one user"),
        ("QOSGrpCpuLimit", "no more processors of all who share it"),
        (
            "QOSMaxWallDurationPerJobLimit",
            "no more time in one job (QOSMaxWallDurationPerJobLimit). Ask for less",
        ),
        ("QOSMinGRES", "The QOS demands more GPUs"),
        ("AssocGrpMemLimit", "The account allows no more memory"),
        ("AssocMaxJobsLimit", "The account allows no more jobs at once"),
        ("AssocGrpCPUMinutesLimit", "processors times minutes"),
        ("launch failed requeued held", "scontrol release"),
        ("SomethingNew", "Slurm's reason is: SomethingNew."),
    ],
)
def test_reasons(reason: str, sentence: str) -> None:
    assert sentence in explain_reason(reason)


class TestNodes:
    def test_one_with_several_models(self) -> None:
        (node,) = read_nodes(Answers(scontrol=NODE))
        assert (node.gpus, node.gpus_allocated) == ({"a100": 4, "h100": 2}, {"a100": 1, "h100": 0})
        assert (node.states, node.is_usable) == (("DOWN", "DRAIN", "POWERED_DOWN"), False)
        assert (node.reason, node.reason_by, node.reason_at) == ("State=IDLE [x] bad", "root", 1795969739)
        assert (node.cpus, node.memory_mb, node.partitions) == (64, 500000, ("main", "short"))

    def test_a_partition(self) -> None:
        text = "PartitionName=main MaxTime=1-02:00:00 State=UP TotalNodes=3\n"
        partition = read_partition(Answers(scontrol=text), "main")
        assert (partition.is_up, partition.max_time_s, partition.node_count) == (True, 93600, 3)

    def test_time_limits(self) -> None:
        assert [parse_time_limit(text) for text in ("UNLIMITED", "00:01:00")] == [None, 60]


@pytest.mark.parametrize(
    ("code", "stderr", "is_remote", "fault"),
    [
        (255, "ada@login: Permission denied (publickey).", True, SlurmFault.SSH_KEY),
        (255, "Host key verification failed.", True, SlurmFault.HOST_KEY),
        (255, "ssh: connect to host login port 22: Connection timed out", True, SlurmFault.UNREACHABLE),
        (127, "sh: 1: squeue: not found", True, SlurmFault.NO_COMMAND),
        (1, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)", False,
         SlurmFault.CONTROLLER_AWAY),
        (1, "error: Munge encode failed: Failed to access the socket", False, SlurmFault.MUNGE),
        (1, "sbatch: error: Batch job submission failed: Invalid qos", False, SlurmFault.REFUSED),
        (1, "", False, SlurmFault.REFUSED),
    ],
)  # fmt: skip
def test_failures(code: int, stderr: str, is_remote: bool, fault: SlurmFault) -> None:
    error = failed_call("squeue", code, f"{stderr}\x1b[31m\n", is_remote=is_remote)
    assert error.fault is fault
    assert str(error).isprintable()
