"""What a hub may do on a login node whose operator gave its key the wrapper as forced command."""

from __future__ import annotations

import ast
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from clusters.backends.slurm import login_wrapper
from clusters.backends.slurm.errors import SlurmError, SlurmFault
from clusters.backends.slurm.examination import CheckResult, examine
from clusters.backends.slurm.job_list import job_ids_by_name, read_jobs, read_queue
from clusters.backends.slurm.login_wrapper import is_allowed
from clusters.backends.slurm.script import batch_script
from clusters.backends.slurm.settings import SlurmSettings
from clusters.backends.slurm.submission import cancel_jobs, submit_job
from tests.hub import eventually
from tests.slurm.login import LoginNode
from tests.slurm.people import PLAIN, STATE_S


@pytest.mark.slurm
@pytest.mark.slow
class TestOnALoginNode:
    def test_a_job_belongs_to_its_person(self, login: LoginNode) -> None:
        ada, bo = login.wrapped("ada"), login.wrapped("bo")
        job_id = submit_job(ada, batch_script(replace(PLAIN, name="wrapped")))
        read = read_jobs(bo, [job_id], has_accounting=True)
        assert (read[job_id].user, job_ids_by_name(bo, "wrapped")) == ("ada", [job_id])
        assert job_id in [job.job_id for job in read_queue(bo, "main")]
        with pytest.raises(SlurmError, match="Access/permission denied"):
            cancel_jobs(bo, [job_id])
        cancel_jobs(ada, [job_id])
        eventually(
            lambda: read_jobs(ada, [job_id], has_accounting=True)[job_id].state.is_final, STATE_S, "it ends"
        )

    def test_its_settings_can_be_tested(self, login: LoginNode) -> None:
        checks = examine(SlurmSettings("main"), login.wrapped("ada"))
        assert {check.name for check in checks if check.result is not CheckResult.OK} == {"python"}

    @pytest.mark.parametrize("person", ["hub", "root", "daemon", "eve", "-u", "ada;id"])
    def test_nobody_else(self, login: LoginNode, person: str) -> None:
        with pytest.raises(SlurmError, match="trainhub-login") as error:
            login.wrapped(person).run(["sbatch", "--parsable"], batch_script(PLAIN))
        assert error.value.fault is SlurmFault.NO_ACCOUNT

    def test_no_other_command(self, login: LoginNode) -> None:
        for argv in (["id"], ["sh", "-c", "id"], ["sbatch", "--parsable", "/tmp/x"], ["srun", "id"]):
            with pytest.raises(SlurmError, match="only TrainHub's calls"):
                login.wrapped("ada").run(argv)


def test_the_wrapper_needs_no_newer_python() -> None:
    ast.parse(Path(login_wrapper.__file__).read_text(), feature_version=(3, 6))


@pytest.mark.parametrize(
    "line",
    [
        "sbatch",
        "sbatch --parsable --wrap=id",
        "sbatch --uid=0 --parsable",
        "scancel",
        "scancel -u ada",
        "scancel '1 2'",
        "scontrol update job=1",
        "scontrol show job 1",
        "scontrol show node -M x",
        "squeue -M x",
        "squeue -j ''",
        "sacct -f /etc/shadow",
        "sacct -c",
        "sinfo -N",
        "/usr/bin/squeue",
        "env squeue",
        "squeue '$(id)'",
    ],
)
def test_calls_that_are_refused(line: str) -> None:
    assert not is_allowed(shlex.split(line))
