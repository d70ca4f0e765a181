"""A Slurm without accounting, and commands on the hub's own machine."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator

import pytest

from clusters.backends.slurm.client import read_jobs
from clusters.backends.slurm.commands import LocalCommands
from clusters.backends.slurm.errors import SlurmError, SlurmFault
from clusters.backends.slurm.examination import CheckResult, examine
from clusters.backends.slurm.script import batch_script
from clusters.backends.slurm.settings import SlurmSettings
from clusters.backends.slurm.submission import submit_job
from tests.hub import eventually
from tests.slurm.cluster import PROJECT, SlurmCluster
from tests.slurm.people import PLAIN, STATE_S, Person

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.long]
# What a hub does on a machine where people have accounts.
SUBMIT = """
import sys
from clusters.backends.slurm.commands import LocalCommands
from clusters.backends.slurm.errors import SlurmError
from clusters.backends.slurm.submission import submit_job
for account in sys.argv[2:]:
    try:
        print(submit_job(LocalCommands(account), sys.argv[1]))
    except SlurmError as error:
        print(error.fault, error)
"""


@pytest.fixture(scope="module")
def ada() -> Iterator[Person]:
    cluster = SlurmCluster(1, has_accounting=False)
    try:
        yield Person(cluster.start(), "ada")
    finally:
        cluster.stop()


def test_accounting_is_off(ada: Person) -> None:
    assert not ada.client.has_accounting()
    check = next(check for check in examine(SlurmSettings("main"), ada.client) if check.name == "accounting")
    assert check.result is CheckResult.WARNING
    assert "remembers ended jobs for 3600 s" in check.sentence


def test_a_canceled_job(ada: Person) -> None:
    job = ada.submit()
    ada.until(job, "RUNNING")
    ada.cluster.admin("scancel", str(job))
    status = ada.until(job, "CANCELLED")
    assert (status.canceled_by, status.signal) == (None, 15)


def test_the_hub_submits_as_the_account_of_a_person(ada: Person) -> None:
    controller = ada.cluster.controller
    environment = {**ada.cluster.environment(), "PYTHONPATH": str(PROJECT), "SECRET_KEY": "secret"}
    script = batch_script(PLAIN).replace("sleep 600", "env > /tmp/environment; id >> /tmp/environment")
    done = controller.run(sys.executable, "-c", SUBMIT, script, "bo", "root", "eve", "", env=environment)
    number, *refusals = done.stdout.splitlines()
    assert ada.until(int(number), "COMPLETED").user == "bo"
    report = (ada.cluster.nodes["n1"].folder / "environment").read_text()
    assert "uid=64102(bo) gid=64102(bo) groups=64102(bo),64110(team)" in report
    assert "USER=bo" in report
    assert "secret" not in report
    assert [refusal.split()[0] for refusal in refusals] == ["no_account"] * 3
    assert "no account 'eve'" in refusals[1]


def test_a_job_that_slurm_has_forgotten(ada: Person) -> None:
    ada.cluster.reconfigure(MinJobAge="2")
    job = ada.submit("true")
    ada.until(job, "COMPLETED")
    eventually(
        lambda: not read_jobs(ada.client, [job], has_accounting=False), STATE_S + 60, "the job is forgotten"
    )


class TestOfTheHubItself:
    def test_its_own_account_needs_no_change(self) -> None:
        assert LocalCommands().run(["id", "-u"]).strip() == str(os.geteuid())

    def test_nothing_runs_as_root_or_as_nobody_known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for account in ("root", ""):
            monkeypatch.setattr(os, "geteuid", lambda: 0)
            with pytest.raises(SlurmError, match="must not belong to root"):
                submit_job(LocalCommands(account), "#!/bin/sh\n")
        with pytest.raises(SlurmError, match="nothing of a person as root"):
            LocalCommands("root").run(["true"])
        monkeypatch.setattr(os, "geteuid", lambda: 64103)
        with pytest.raises(SlurmError, match="does not run as root") as error:
            LocalCommands("daemon").run(["true"])
        assert error.value.fault is SlurmFault.NO_ACCOUNT

    def test_a_call_that_hangs_ends_with_its_children(self) -> None:
        start = time.monotonic()
        with pytest.raises(SlurmError, match="no answer within"):
            LocalCommands().run(["sh", "-c", "sleep 60 & sleep 60"], timeout_s=0.3)
        assert time.monotonic() - start < 10
