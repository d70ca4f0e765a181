"""What a hub may do on a login node whose operator gave its key the wrapper as forced command."""

from __future__ import annotations

import ast
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from clusters.backends.slurm import login_wrapper
from clusters.backends.slurm.client import read_jobs
from clusters.backends.slurm.command_line import CommandLineClient
from clusters.backends.slurm.errors import SlurmError, SlurmFault
from clusters.backends.slurm.examination import CheckResult, examine
from clusters.backends.slurm.job_list import job_ids_by_name, read_queue
from clusters.backends.slurm.login_wrapper import is_allowed
from clusters.backends.slurm.script import batch_script
from clusters.backends.slurm.settings import SlurmSettings
from clusters.backends.slurm.ssh_commands import SshCommands
from clusters.backends.slurm.submission import cancel_jobs, submit_job
from tests.hub import eventually
from tests.slurm.login import LoginHost
from tests.slurm.people import PLAIN, STATE_S


@pytest.mark.slurm
@pytest.mark.slow
class TestOnALoginNode:
    def test_a_job_belongs_to_its_person(self, login: LoginHost) -> None:
        ada, bo = login.commands("ada"), login.commands("bo")
        job_id = submit_job(ada, batch_script(replace(PLAIN, name="wrapped")))
        read = read_jobs(CommandLineClient(bo), [job_id], has_accounting=True)
        assert (read[job_id].user, job_ids_by_name(bo, "wrapped")) == ("ada", [job_id])
        assert job_id in [job.job_id for job in read_queue(bo, "main")]
        with pytest.raises(SlurmError, match="Access/permission denied"):
            cancel_jobs(bo, [job_id])
        cancel_jobs(ada, [job_id])
        eventually(
            lambda: read_jobs(CommandLineClient(ada), [job_id], has_accounting=True)[job_id].state.is_final,
            STATE_S,
            "it ends",
        )

    def test_its_settings_can_be_tested(self, login: LoginHost) -> None:
        checks = examine(SlurmSettings("main"), CommandLineClient(login.commands("ada")))
        assert {check.name for check in checks if check.result is not CheckResult.OK} == {"python"}

    @pytest.mark.parametrize("person", ["hub", "root", "daemon", "eve", "-u", "ada;id"])
    def test_nobody_else(self, login: LoginHost, person: str) -> None:
        with pytest.raises(SlurmError, match="trainhub-login: ") as error:
            login.commands(person).run(["sbatch", "--parsable"], batch_script(PLAIN))
        assert error.value.fault is SlurmFault.NO_ACCOUNT

    def test_no_other_command(self, login: LoginHost) -> None:
        for argv in (["id"], ["sh", "-c", "id"], ["sbatch", "--parsable", "/tmp/x"], ["srun", "id"]):
            with pytest.raises(SlurmError, match="only TrainHub's calls") as error:
                login.commands("ada").run(argv)
            assert error.value.fault is SlurmFault.WRAPPER

    def test_the_hubs_own_account_only_looks(self, login: LoginHost) -> None:
        own = login.commands()
        assert read_queue(own, "main") == []
        for argv in (["sbatch", "--parsable"], ["scancel", "1"]):
            with pytest.raises(SlurmError, match="account of the system") as error:
                own.run(argv, batch_script(PLAIN))
            assert error.value.fault is SlurmFault.NO_ACCOUNT

    def test_accounts_are_checked_there(self, login: LoginHost) -> None:
        head, *lines = login.commands().run(["check", "ada", "hub", "eve", "root"]).splitlines()
        assert head == f"trainhub-login {login_wrapper.VERSION}"
        assert lines == [
            "ada\t",
            "hub\thub is not in the group team",
            "eve\tthere is no account eve here",
            "root\troot is an account of the system",
        ]

    def test_a_relay_that_nodes_do_not_reach(self, login: LoginHost) -> None:
        address = login.machine.address
        for account, host, port, words in (
            ("", address, "9999", f"does not listen at {address}:9999"),
            ("", "192.0.2.1", "9999", "192.0.2.1 is no address of this machine"),
            ("", address, "22", "this is no address of a relay"),
            ("ada", address, "9999", "only TrainHub's calls"),
        ):
            with pytest.raises(SlurmError, match=words) as error:
                login.commands(account).run(["relay", host, port])
            assert error.value.fault in (SlurmFault.WRAPPER, SlurmFault.UNREACHABLE)

    def test_without_a_group_it_serves_the_account_that_logs_in(
        self, login: LoginHost, tmp_path: Path
    ) -> None:
        files = login.files_with(tmp_path / "ada")
        login.set_up(login.settings(files, account="ada"))
        own = SshCommands(replace(login.host, user="ada"), str(files))
        job_id = submit_job(own, batch_script(PLAIN))
        assert read_jobs(CommandLineClient(own), [job_id], has_accounting=True)[job_id].user == "ada"
        cancel_jobs(own, [job_id])
        with pytest.raises(SlurmError, match="without a group only ada can have jobs, not bo") as error:
            submit_job(replace(own, account="bo"), batch_script(PLAIN))
        assert error.value.fault is SlurmFault.NO_ACCOUNT

    def test_another_key_takes_the_place_of_the_old_one(self, login: LoginHost, tmp_path: Path) -> None:
        old, new = (login.files_with(tmp_path / name) for name in ("old", "new"))
        for files in (old, new):
            login.set_up(login.settings(files, "rotated"))
        assert login.commands(files=new).run(["check"])
        with pytest.raises(SlurmError, match="does not accept the hub's key"):
            login.commands(files=old).run(["check"])


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
