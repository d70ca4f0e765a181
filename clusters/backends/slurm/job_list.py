"""Jobs as squeue and sacct write them: many with one call."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from clusters.backends.slurm.commands import SlurmCommands
from clusters.backends.slurm.errors import SlurmError, SlurmFault
from clusters.backends.slurm.hostlist import expand_hostlist
from clusters.backends.slurm.job_status import JobStatus, count_gpus
from clusters.backends.slurm.settings import NAME
from clusters.backends.slurm.states import grace_state, parse_state

# A line of arguments has its limit, also that of a shell behind ssh.
MAX_IDS_PER_CALL = 2000
SEPARATOR = "|"
# No names or comments of jobs: whoever submits can put line breaks there, and with them rows of others. The
# reason comes last, as its text is free.
_SQUEUE_FIELDS = (
    "JobID",
    "State",
    "exit_code",
    "RestartCnt",
    "NodeList",
    "StartTime",
    "EndTime",
    "SubmitTime",
    "UserName",
    "Partition",
    "tres-alloc",
    "PreemptTime",
    "Reason",
)
# With a suffix and without a size, squeue shortens nothing.
_SQUEUE = ("squeue", "-h", "-t", "all", "-O", ",".join(f"{name}:{SEPARATOR}" for name in _SQUEUE_FIELDS))
_SACCT_FIELDS = "JobIDRaw,State,ExitCode,NodeList,Start,End,Submit,User,Partition,AllocTRES,Reason"
_SACCT = ("sacct", "-n", "-P", "-X", f"--delimiter={SEPARATOR}", "-o", _SACCT_FIELDS)
_NO_SUCH_JOB = "Invalid job id specified"


def read_ended_jobs(commands: SlurmCommands, job_ids: Collection[int]) -> dict[int, JobStatus]:
    """Returns the jobs of whose end accounting has heard. Raises SlurmError."""
    jobs: dict[int, JobStatus] = {}
    for chunk in _chunks(job_ids):
        jobs |= {job.job_id: job for job in _read_sacct(commands, chunk) if job.state.is_final}
    return jobs


def read_queue(commands: SlurmCommands, partition: str) -> list[JobStatus]:
    """Returns all waiting and running jobs of the partition, those of others too; each task of a job array is
    one, and those that wait share their array's number."""
    argv = [*_SQUEUE, "-r", "-p", partition, "--states=PENDING,CONFIGURING,RUNNING,SUSPENDED,COMPLETING"]
    return list(_parse_squeue(commands.run(argv)))


def job_ids_by_name(commands: SlurmCommands, name: str) -> list[int]:
    """Returns the jobs with exactly this name: what a submission without an answer has queued."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} would be read as several names or as an option")
    argv = ["squeue", "-h", "-t", "all", f"--name={name}", "-o", "%A"]
    return [int(line) for line in commands.run(argv).split()]


def read_controller_jobs(commands: SlurmCommands, job_ids: Collection[int]) -> dict[int, JobStatus]:
    """Returns the jobs that the controller knows. Raises SlurmError."""
    jobs: dict[int, JobStatus] = {}
    for chunk in _chunks(job_ids):
        jobs |= {job.job_id: job for job in _read_squeue(commands, chunk)}
    return jobs


def _chunks(job_ids: Collection[int]) -> Iterator[Sequence[int]]:
    """Never an empty one: `squeue -j ''` lists the jobs of everybody."""
    ordered = sorted(job_ids)
    for start in range(0, len(ordered), MAX_IDS_PER_CALL):
        yield ordered[start : start + MAX_IDS_PER_CALL]


def _read_squeue(commands: SlurmCommands, job_ids: Sequence[int]) -> Iterator[JobStatus]:
    try:
        text = commands.run([*_SQUEUE, "-j", ",".join(map(str, job_ids))])
    except SlurmError as error:
        # So it answers if it was asked for one job alone. Of several, it leaves out the unknown ones.
        if error.fault is SlurmFault.REFUSED and _NO_SUCH_JOB in str(error):
            return iter(())
        raise
    return _parse_squeue(text)


def _parse_squeue(text: str) -> Iterator[JobStatus]:
    for line in text.splitlines():
        values = line.split(SEPARATOR, len(_SQUEUE_FIELDS) - 1)
        if len(values) != len(_SQUEUE_FIELDS) or not values[0].strip().isdecimal():
            raise _unreadable("squeue", line)
        row = dict(zip(_SQUEUE_FIELDS, (value.strip() for value in values), strict=True))
        state, _ = parse_state(row["State"])
        if _number(row["PreemptTime"]):
            state = grace_state(state)
        # As wait() reports it.
        status = _number(row["exit_code"]) or 0
        yield JobStatus(
            int(row["JobID"]),
            state,
            row["Reason"].removesuffix(SEPARATOR).strip(),
            _nodes("squeue", row["NodeList"]),
            count_gpus(row["tres-alloc"]),
            row["UserName"],
            row["Partition"],
            _number(row["SubmitTime"]),
            _number(row["StartTime"]),
            _number(row["EndTime"]),
            restart_count=_number(row["RestartCnt"]),
            exit_code=status >> 8 if state.is_final else None,
            signal=(status & 0x7F) or None if state.is_final else None,
        )


def _read_sacct(commands: SlurmCommands, job_ids: Sequence[int]) -> Iterator[JobStatus]:
    return _parse_sacct(commands.run([*_SACCT, "-j", ",".join(map(str, job_ids))]))


def _parse_sacct(text: str) -> Iterator[JobStatus]:
    names = _SACCT_FIELDS.split(",")
    for line in text.splitlines():
        values = line.split(SEPARATOR, len(names) - 1)
        if len(values) != len(names) or not values[0].isdecimal():
            raise _unreadable("sacct", line)
        row = dict(zip(names, (value.strip() for value in values), strict=True))
        state, canceled_by = parse_state(row["State"])
        code, _, signal = row["ExitCode"].partition(":")
        yield JobStatus(
            int(row["JobIDRaw"]),
            state,
            row["Reason"],
            _nodes("sacct", row["NodeList"]),
            count_gpus(row["AllocTRES"]),
            row["User"],
            row["Partition"],
            _number(row["Submit"]),
            _number(row["Start"]),
            _number(row["End"]),
            exit_code=_number(code) if state.is_final else None,
            signal=_number(signal) or None if state.is_final else None,
            canceled_by=canceled_by,
        )


def _number(text: str) -> int | None:
    """Returns None for N/A, NONE, Unknown and whatever else stands in the place of a number."""
    return int(text) if text.isdecimal() else None


def _nodes(program: str, text: str) -> tuple[str, ...]:
    if text in ("", "(null)", "None assigned"):
        return ()
    try:
        return tuple(expand_hostlist(text))
    except ValueError as error:
        raise _unreadable(program, str(error)) from None


def _unreadable(program: str, line: str) -> SlurmError:
    return SlurmError(
        SlurmFault.UNREADABLE,
        f"TrainHub cannot read what {program} writes: {line[:200]!r}. If login files print it, "
        f"let them do so in terminals only; otherwise report it with Slurm's version ({program} --version).",
    )
