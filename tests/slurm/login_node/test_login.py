"""A real Slurm through a login node, from Test to a job's end, and what goes wrong on the way."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusters.backends.slurm.client import read_jobs
from clusters.backends.slurm.command_line import CommandLineClient
from clusters.backends.slurm.commands import LocalCommands
from clusters.backends.slurm.errors import SlurmError, SlurmFault
from clusters.backends.slurm.examination import CheckResult, examine
from clusters.backends.slurm.host_keys import host_key_request, shown_host_key
from clusters.backends.slurm.hostlist import expand_hostlist
from clusters.backends.slurm.job_list import job_ids_by_name, read_queue
from clusters.backends.slurm.nodes import read_nodes
from clusters.backends.slurm.script import batch_script
from clusters.backends.slurm.settings import SlurmSettings, fingerprint
from clusters.backends.slurm.ssh_commands import KEY, KNOWN_HOSTS, SshCommands
from clusters.backends.slurm.states import JobPhase
from clusters.backends.slurm.submission import cancel_jobs, submit_job
from tests.environments.source_builds.ssh_server import make_key
from tests.hub import eventually
from tests.slurm.cluster import SlurmCluster, start_munged
from tests.slurm.host_ranges import LISTS, HostRanges, written
from tests.slurm.login import LoginHost
from tests.slurm.people import PLAIN, STATE_S, ControllerCommands, Person

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.long]
SETTINGS = SlurmSettings("main", "ada@login")


class TestOverSsh:
    def test_a_job_from_its_script_to_its_end(self, login: LoginHost, ada: Person) -> None:
        commands = login.commands("ada")
        body = 'echo "$(id -un) $WORD" > /tmp/ssh-$SLURM_JOB_ID'
        job = replace(PLAIN, body=(body,), environment={"WORD": 'it\'s "$(id)" `x`\n\\'})
        job_id = submit_job(commands, batch_script(job))
        status = ada.until_ended(job_id)
        assert (status.state.word, status.user) == ("COMPLETED", "ada")
        output = login.cluster.nodes[status.nodes[0]].folder / f"ssh-{job_id}"
        assert output.read_text() == 'ada it\'s "$(id)" `x`\n\\\n'

    def test_a_shared_connection_costs_little(self, login: LoginHost) -> None:
        commands = login.commands()
        commands.run(["sinfo", "--version"])
        start = time.monotonic()
        for _ in range(5):
            commands.run(["check"])
        assert time.monotonic() - start < 2.5
        names = {path.name for path in login.files.iterdir()} - {KEY, f"{KEY}.pub", KNOWN_HOSTS}
        assert len(names) == 1

    def test_variables_of_the_login_change_nothing(self, login: LoginHost) -> None:
        job_id = submit_job(login.commands("ada"), batch_script(PLAIN))
        status = read_jobs(CommandLineClient(login.commands("bo")), [job_id], has_accounting=True)[job_id]
        assert (status.user, status.partition) == ("ada", "main")
        cancel_jobs(login.commands("ada"), [job_id])


class TestRefusals:
    def refusal(self, commands: object) -> SlurmError:
        with pytest.raises(SlurmError) as error:
            commands.run(["squeue", "-h"])  # type: ignore[attr-defined]
        return error.value

    def test_of_another_key(self, login: LoginHost, tmp_path: Path) -> None:
        other = login.files_with(tmp_path / "other")
        error = self.refusal(login.commands(files=other))
        assert error.fault is SlurmFault.SSH_KEY
        assert "authorized_keys" in str(error)
        (other / KEY).unlink()
        assert self.refusal(login.commands(files=other)).fault is SlurmFault.SSH_KEY

    def test_by_a_host_with_another_key(self, login: LoginHost, tmp_path: Path) -> None:
        make_key(tmp_path / "new")
        line = " ".join((tmp_path / "new.pub").read_text().split()[:2])
        other = login.files_with(tmp_path / "other", host_key=line)
        error = self.refusal(login.commands(files=other))
        assert error.fault is SlurmFault.HOST_KEY
        assert "Ask its administrator" in str(error)
        (other / KNOWN_HOSTS).write_text("")
        assert self.refusal(login.commands(files=other)).fault is SlurmFault.HOST_KEY

    def test_the_key_that_a_host_shows_is_told_and_not_trusted(self, login: LoginHost) -> None:
        assert shown_host_key(login.host) == login.host_key_line()
        sentence = host_key_request(login.host)
        assert fingerprint(login.host_key_line()) in sentence
        assert sentence.endswith(f"enter this line: {login.host_key_line()}")
        assert "could not ask" in host_key_request(replace(login.host, port=1))

    def test_without_a_road_to_the_login_node(self, login: LoginHost, tmp_path: Path) -> None:
        commands = login.commands(files=login.files_with(tmp_path / "other"))
        closed = replace(commands, host=replace(commands.host, port=1))
        assert self.refusal(closed).fault is SlurmFault.UNREACHABLE
        unnamed = replace(commands, host=replace(commands.host, name="no-such-host.invalid"))
        assert self.refusal(unnamed).fault is SlurmFault.UNREACHABLE

    def test_by_a_login_node_that_is_cut_off(self, login: LoginHost) -> None:
        commands = login.commands()
        commands.run(["sinfo", "--version"])
        login.machine.cut()
        try:
            with pytest.raises(SlurmError) as error:
                commands.run(["sinfo", "--version"], timeout_s=2)
            assert error.value.fault is SlurmFault.TIMEOUT
            # The shared connection is given up after a while.
            eventually(lambda: self.refusal(commands).fault is SlurmFault.UNREACHABLE, STATE_S)
        finally:
            login.machine.heal()
        eventually(lambda: "slurm" in commands.run(["sinfo", "--version"]), STATE_S)
        login.cluster.wait_until_idle()

    def test_of_a_key_that_is_not_tied_to_the_wrapper(self, login: LoginHost, tmp_path: Path) -> None:
        files = login.files_with(tmp_path / "free")
        public = (files / f"{KEY}.pub").read_text()
        login.machine.run("sh", "-ec", f"echo '{public.strip()}' >> ~{login.host.user}/.ssh/authorized_keys")
        error = self.refusal(login.commands(files=files))
        assert error.fault is SlurmFault.WRAPPER
        assert "the whole line in ~/.ssh/authorized_keys" in str(error)

    def test_of_a_wrapper_that_is_missing_or_that_sudo_does_not_know(
        self, login: LoginHost, tmp_path: Path
    ) -> None:
        files = login.files_with(tmp_path / "missing")
        settings = login.settings(files, "missing")
        login.set_up(settings)
        login.machine.run("mkdir", "/srv/aside")
        for folder in ("/usr/local/sbin", "/etc/sudoers.d"):
            login.machine.run("sh", "-ec", f"mv {folder}/trainhub-* /srv/aside/")
            error = self.refusal(login.commands(files=files))
            assert error.fault is SlurmFault.WRAPPER, str(error)
            login.machine.run("sh", "-ec", f"mv /srv/aside/* {folder}/")

    def test_of_a_command_that_is_not_there(self) -> None:
        with pytest.raises(SlurmError, match="no command no-such-command") as error:
            LocalCommands().run(["no-such-command"])
        assert error.value.fault is SlurmFault.NO_COMMAND

    def test_after_the_time_limit_of_a_call(self) -> None:
        with pytest.raises(SlurmError, match=r"no answer within 0\.5 s") as error:
            LocalCommands().run(["sleep", "30"], timeout_s=0.5)
        assert error.value.fault is SlurmFault.TIMEOUT

    def test_of_another_munge_key_and_of_none(self, slurm: SlurmCluster) -> None:
        folder = slurm.folder / "munge-other"
        folder.mkdir(mode=0o755)
        start_munged(slurm.controller, folder / "munge.sock")
        for name in ("munge.sock", "none.sock"):
            conf = slurm.client_conf(AuthInfo=f"socket={folder / name}")
            error = self.refusal(ControllerCommands(slurm, "ada", conf))
            assert error.fault is SlurmFault.MUNGE, str(error)

    def test_in_the_words_of_slurm_before_anything_is_queued(self, ada: Person) -> None:
        cases = {
            "partition": ("nope", "Invalid partition name specified"),
            "account": ("nope", "Invalid account or account/partition combination specified"),
            "qos": ("nope", "Invalid qos specification"),
            "gres": ("tpu", "Invalid generic resource"),
        }
        for name, (value, words) in cases.items():
            with pytest.raises(SlurmError, match=words) as error:
                ada.submit(**{name: value, "gpus_per_node": 1})
            assert error.value.fault is SlurmFault.REFUSED
        assert read_queue(ada.commands, "main") == []

    def test_of_jobs_of_root(self, slurm: SlurmCluster) -> None:
        with pytest.raises(SlurmError, match="must not belong to root"):
            submit_job(ControllerCommands(slurm), batch_script(PLAIN))


class TestExamination:
    @pytest.fixture
    def commands(self, login: LoginHost) -> SshCommands:
        return login.commands("ada")

    def results(self, commands: SshCommands, **changes: object) -> dict[str, str]:
        settings = replace(SETTINGS, **changes)  # type: ignore[arg-type]
        return {
            check.name: f"{check.result}: {check.sentence}"
            for check in examine(settings, CommandLineClient(commands))
        }

    def test_of_good_settings(self, commands: SshCommands) -> None:
        checks = examine(SETTINGS, CommandLineClient(commands))
        assert {check.name for check in checks if check.result is not CheckResult.OK} == {"python"}
        names = ["version", "partition", "time", "gpus", "submission", "accounting", "python"]
        assert [check.name for check in checks] == names
        assert "12 GPUs" in checks[3].sentence

    def test_of_a_slurm_that_hides_jobs(self, commands: SshCommands, slurm: SlurmCluster) -> None:
        slurm.reconfigure(PrivateData="jobs,usage")
        try:
            eventually(lambda: "visibility" in self.results(commands), STATE_S, "it is said")
            sentence = self.results(commands)["visibility"]
        finally:
            slurm.reconfigure()
        assert sentence.startswith("warning: Slurm hides jobs and usage of others (PrivateData).")

    def test_as_the_account_that_only_looks(self, login: LoginHost) -> None:
        checks = {
            check.name: check
            for check in examine(SETTINGS, CommandLineClient(login.commands()), may_submit=False)
        }
        assert "checked when a person submits" in checks["submission"].sentence
        assert checks["accounting"].result is CheckResult.OK

    def test_of_bad_settings(self, commands: SshCommands) -> None:
        assert self.results(commands, partition="nope")["partition"].startswith(
            "error: Slurm has no partition"
        )
        assert self.results(commands, partition="closed")["partition"].startswith("error")
        assert self.results(commands, partition="short")["time"].startswith("error")
        results = self.results(commands, qos="nope", gres={"H100": "gpu:h100"})
        assert results["gpus"] == "error: No node has gpu:h100. The partition has: gpu."
        assert "Invalid qos specification" in results["submission"]

    def test_without_a_login(self, login: LoginHost, tmp_path: Path) -> None:
        (check,) = examine(
            SETTINGS, CommandLineClient(login.commands(files=login.files_with(tmp_path / "other")))
        )
        assert (check.name, check.result) == ("connection", CheckResult.ERROR)


def test_nodes_with_their_gpus_and_why_one_is_drained(ada: Person) -> None:
    ada.until(ada.submit(nodes=3, gpus_per_node=2), "RUNNING")
    ada.cluster.admin("scontrol", "update", "node=n2", "state=drain", "reason=bad DIMM Gres=gpu:9 | x")
    try:
        nodes = {node.name: node for node in read_nodes(ada.commands)}
    finally:
        ada.cluster.admin("scontrol", "update", "node=n2", "state=resume")
    assert [(node.gpus, node.gpus_allocated) for node in nodes.values()] == [({"": 4}, {"": 2})] * 3
    assert (nodes["n1"].states, nodes["n1"].is_usable, nodes["n1"].reason) == (("MIXED",), True, "")
    assert "main" in nodes["n1"].partitions
    drained = nodes["n2"]
    assert (drained.states, drained.is_usable) == (("MIXED", "DRAIN"), False)
    assert (drained.reason, drained.reason_by) == ("bad DIMM Gres=gpu:9 | x", "root")
    assert abs((drained.reason_at or 0) - time.time()) < 60
    assert (drained.cpus, drained.cpus_allocated, drained.memory_mb) == (4, 1, 4000)


def test_thousands_of_jobs_of_others(ada: Person, bo: Person) -> None:
    job = ada.submit()
    # sbatch takes such names, and commands that print names are misled by them.
    argv = ["sbatch", "--parsable", "--hold", "--array=1-900", "--job-name=a\n1|RUNNING|0"]
    bo.jobs += [int(bo.commands.run(argv, batch_script(PLAIN))) for _ in range(2)]
    ada.until(job, "RUNNING")
    start = time.process_time()
    queue = read_queue(ada.commands, "main")
    assert time.process_time() - start < 1
    assert [status.user for status in queue].count("bo") == 1800
    assert ada.status(job).job_id == job


@pytest.mark.parametrize(
    "name", ["it's", 'a "b" c', "$(id) `id` ${HOME}", "a\\b\\", "# x", "-p urgent", "a\n#SBATCH -p x"]
)
def test_names_of_jobs_are_only_text(ada: Person, name: str) -> None:
    job = ada.submit(name=name)
    assert ada.commands.run(
        ["squeue", "-h", "-j", str(job), "-o", "%P|%j"]
    ).strip() == "main|" + name.replace("\n", " ")


def test_a_job_whose_number_got_lost_is_recognised_by_its_name(ada: Person) -> None:
    job = ada.submit(name="run-17.1")
    ada.submit(name="run-17.11")
    assert job_ids_by_name(ada.commands, "run-17.1") == [job]
    assert job_ids_by_name(ada.commands, "run-18.1") == []


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lists=st.lists(LISTS, min_size=1, max_size=8))
def test_names_of_nodes_are_read_as_scontrol_does(slurm: SlurmCluster, lists: list[HostRanges]) -> None:
    text = ",".join(map(written, lists))
    assert slurm.admin("scontrol", "show", "hostnames", text).split() == expand_hostlist(text)


def test_a_node_that_is_cut_off(ada: Person) -> None:
    ada.cluster.reconfigure(SlurmdTimeout="2", MessageTimeout="2", TCPTimeout="1")
    job = ada.submit(nodes=3, gpus_per_node=1)
    ada.until(job, "RUNNING")
    ada.cluster.nodes["n3"].cut()
    try:
        status = ada.until(job, "NODE_FAIL")
        assert status.state.phase is JobPhase.LOST
        nodes = {node.name: node for node in read_nodes(ada.commands)}
        assert not nodes["n3"].is_usable
    finally:
        ada.cluster.nodes["n3"].heal()
        # A new slurmd reports at once; one that was cut off is asked only now and then.
        ada.cluster.reboot_node("n3")
        ada.cluster.wait_for_node("n3", "idle")
        ada.cluster.reconfigure()
